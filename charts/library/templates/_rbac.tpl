{{/* The rights of the daemon: what `syncer rbac` prints for the same configuration. Rights that an option brings are in _rights.tpl,
     which hack/generate writes; those that name what the configuration names are made here. */}}

{{/* The roles of a side, each with its binding. Takes a dict: "config" the daemon's configuration, "side" host or virtual, "subject" that of
     the bindings, "labels" of all objects, "plugins" whether the daemon has syncers of plugins (whose rights are the value `extraRules`). */}}
{{- define "syncer.rbac" -}}
{{- $given := . -}}
{{- $table := include "syncer.options" . | fromJson -}}
{{- $role := dict "subject" .subject "labels" .labels -}}
{{- $clusters := include "syncer.rbac.clusters" .config | fromJsonArray -}}
{{- $first := first $clusters -}}
{{- $election := default dict .config.leaderElection -}}
{{- $home := $election.namespace | default (first $first.homes) -}}
{{- $lease := $election.name | default (printf "vsyncer-%s" $first.lease) -}}
{{- $roles := dict -}}
{{- range $cluster := $clusters -}}
{{- $layers := list $cluster.entry $given.config -}}
{{- $rights := include "syncer.rbac.needed" (dict "layers" $layers "table" $table "plugins" $given.plugins "side" $given.side) | fromJson -}}
{{- $name := printf "vsyncer-%s" $cluster.name -}}
{{- range $at := $cluster.homes -}}
{{- range $row := $rights.rows -}}
{{- $places := list (printf "cluster/%s" $name) -}}
{{- if eq $given.side "host" -}}
{{- $places = include "syncer.rbac.places" (dict "row" $row "places" (ternary (list $at) list $rights.fixed)) | fromJsonArray -}}
{{- end -}}
{{- range $place := $places -}}
{{- $wide := hasPrefix "cluster/" $place -}}
{{- $key := $place -}}
{{- if eq $place "cluster/" -}}{{- $key = printf "cluster/%s" (ternary $lease (printf "%s.%s" $lease $home) (empty $home)) -}}
{{- else if hasPrefix "namespace/" $place -}}{{- $key = printf "%s/%s" $place $name -}}{{- end -}}
{{- $rows := default list (get $roles $key) -}}
{{- $new := ternary (set (deepCopy $row) "namespaces" list) $row $wide -}}
{{- if not (has $new $rows) -}}{{- $_ := set $roles $key (append $rows $new) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq .side "host" -}}
{{- range default list .config.virtualClusterSecrets -}}
{{- /* RBAC can't narrow it to labels. */ -}}
{{- $right := include "syncer.rbac.right" (list "host" "" "secrets" true list "get" "list" "watch") | fromJson -}}
{{- $_ := set $roles (printf "namespace/%s/%s.secrets" .namespace $lease) (list $right) -}}
{{- end -}}
{{- end -}}
{{- range $key := keys $roles | sortAlpha -}}
{{- $parts := splitList "/" $key -}}
{{- $rows := get $roles $key -}}
{{- $namespace := "" -}}
{{- if eq (first $parts) "namespace" -}}{{- $namespace = index $parts 1 -}}{{- end -}}
{{- if eq (first $parts) "cluster" -}}{{- $rows = include "syncer.rbac.joined" (dict "rows" $rows "side" $given.side) | fromJsonArray -}}{{- end -}}
{{- $title := last $parts -}}
{{- if eq $key "lease" -}}
{{- $title = printf "%s.lease" $lease -}}
{{- $namespace = $home -}}
{{- $right := first $rows -}}
{{- if gt (int (default 1 $election.shards)) 1 -}}
{{- /* Replicas that share a fleet have Leases with names of their own, and delete those of dead ones. */ -}}
{{- $rows = list (merge (dict "verbs" (list "get" "list" "create" "patch" "delete")) $right) -}}
{{- else -}}
{{- /* RBAC can't narrow a right to create to a name. */ -}}
{{- $rows = list (merge (dict "verbs" (list "create")) $right) (merge (dict "verbs" (without $right.verbs "create") "names" (list $lease)) $right) -}}
{{- end -}}
{{- end -}}
{{- include "syncer.rbac.role" (merge (dict "name" $title "namespace" $namespace "rows" $rows) $role) -}}
{{- end -}}
{{- end -}}

{{/* The virtual clusters of a configuration, each with its "name" in those of roles, "lease" in that of the Lease, "homes" its host namespaces, and its
     "entry" of the configuration. One stands for all of the Secrets of an entry of `virtualClusterSecrets`. */}}
{{- define "syncer.rbac.clusters" -}}
{{- $found := list -}}
{{- if .cluster -}}
{{- $found = append $found (dict "name" .cluster "lease" .cluster "homes" (list (dig "host" "namespace" "" .)) "entry" dict) -}}
{{- end -}}
{{- range default list .virtualClusters -}}
{{- $found = append $found (dict "name" .name "lease" .name "homes" (list (default "" .hostNamespace)) "entry" .) -}}
{{- end -}}
{{- $seen := dict -}}
{{- range default list .virtualClusterSecrets -}}
{{- $count := add1 (int (get $seen .namespace)) -}}
{{- $_ := set $seen .namespace $count -}}
{{- $name := printf "secrets.%s%s" .namespace (ternary (printf ".%d" $count) "" (gt $count 1)) -}}
{{- $found = append $found (dict "name" $name "lease" .namespace "homes" .hostNamespaces "entry" .) -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* "rows": the rights on a side that the layers of a configuration take; "fixed": whether its copies stay in host namespaces that are known. */}}
{{- define "syncer.rbac.needed" -}}
{{- $table := .table -}}
{{- $layers := .layers -}}
{{- $options := dict -}}
{{- range $path, $default := $table.defaults -}}
{{- $_ := set $options $path (include "syncer.rbac.option" (dict "layers" $layers "path" (splitList "." $path) "default" $default) | fromJson).value -}}
{{- end -}}
{{- $translator := get $options "names.translator" -}}
{{- if not (has $translator $table.translators) -}}
{{- fail (printf "names.translator: the rights for %q aren't known here: set rbac.create to false, and apply what `syncer rbac` prints" $translator) -}}
{{- end -}}
{{- include "syncer.rbac.known" (dict "layers" $layers "table" $table "plugins" .plugins) -}}
{{- $rows := include "syncer.rights" $options | fromYamlArray -}}
{{- $given := dict "layers" $layers "options" $options "table" $table -}}
{{- range list "syncer.rbac.named" "syncer.rbac.kinds" "syncer.rbac.custom" -}}
{{- $rows = concat $rows (include . $given | fromJsonArray) -}}
{{- end -}}
{{- $joined := include "syncer.rbac.joined" (dict "rows" $rows "side" .side) | fromJsonArray -}}
{{- dict "rows" $joined "fixed" (has $translator $table.fixed) | toJson -}}
{{- end -}}

{{/* {"value": the value of an option}: that of the first layer that has it. */}}
{{- define "syncer.rbac.option" -}}
{{- $value := .default -}}
{{- $path := .path -}}
{{- range reverse .layers -}}
{{- $there := true -}}
{{- $at := . -}}
{{- range $step := $path -}}
{{- if and $there (kindIs "map" $at) (hasKey $at $step) -}}{{- $at = get $at $step -}}{{- else -}}{{- $there = false -}}{{- end -}}
{{- end -}}
{{- if and $there (not (kindIs "invalid" $at)) -}}{{- $value = $at -}}{{- end -}}
{{- end -}}
{{- dict "value" $value | toJson -}}
{{- end -}}

{{/* Refuse a configuration with sections of kinds that nobody syncs, of a dict as "syncer.rbac" takes it. */}}
{{- define "syncer.rbac.check" -}}
{{- $given := . -}}
{{- $table := include "syncer.options" . | fromJson -}}
{{- range include "syncer.rbac.clusters" .config | fromJsonArray -}}
{{- include "syncer.rbac.known" (dict "layers" (list .entry $given.config) "table" $table "plugins" $given.plugins) -}}
{{- end -}}
{{- end -}}

{{/* Refuse sections of kinds that nobody syncs. */}}
{{- define "syncer.rbac.known" -}}
{{- $given := . -}}
{{- range $layer := .layers -}}
{{- range $direction := list "toHost" "fromHost" "fake" -}}
{{- range $kind := keys (dig "sync" $direction dict $layer | default dict) -}}
{{- $section := printf "sync.%s.%s" $direction $kind -}}
{{- if not (or $given.plugins (hasKey $given.table.defaults (printf "%s.enabled" $section))) -}}
{{- fail (printf "%s: there is no such kind; that of a plugin takes the value `plugins`" $section) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A right, as an item of a list in JSON: (list SIDE GROUP RESOURCE NAMESPACED NAMESPACES VERB…). */}}
{{- define "syncer.rbac.right" -}}
{{- dict "side" (index . 0) "group" (index . 1) "resource" (index . 2) "namespaced" (index . 3) "namespaces" (index . 4) "names" list "verbs" (slice . 5) | toJson -}}
{{- end -}}

{{/* Rights that name what an option contains. */}}
{{- define "syncer.rbac.named" -}}
{{- $options := .options -}}
{{- $rights := list -}}
{{- range $way, $side := dict "toHost" "host" "fromHost" "virtual" -}}
{{- $section := printf "sync.%s.customResourceDefinitions" $way -}}
{{- if and (get $options (printf "%s.enabled" $section)) (eq (get $options (printf "%s.onRemoval" $section)) "delete-if-unused") -}}
{{- $names := get $options (printf "%s.%s" $section (ternary "names" "allow" (eq $way "toHost"))) -}}
{{- if regexMatch "[*?[]" (join "" $names) -}}{{- $names = list "*.*" -}}{{- end -}}
{{- range $names -}}
{{- $plural := first (splitList "." .) -}}
{{- $rights = append $rights (list $side (trimPrefix (printf "%s." $plural) .) $plural false list "list") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $items := include "syncer.rbac.list" $rights | fromJsonArray -}}
{{- range $kind := list "configMaps" "secrets" "services" -}}
{{- $section := printf "sync.fromHost.%s" $kind -}}
{{- if get $options (printf "%s.enabled" $section) -}}
{{- $hosts := keys (get $options (printf "%s.mappings.byName" $section)) -}}
{{- if and $hosts (eq $kind "services") -}}
{{- /* The slices of a Service have names that its host chooses. */ -}}
{{- $namespaces := list -}}
{{- range $hosts | sortAlpha -}}{{- $namespaces = append $namespaces (first (splitList "/" .)) -}}{{- end -}}
{{- $items = append $items (include "syncer.rbac.right" (list "host" "discovery.k8s.io" "endpointslices" true (uniq $namespaces) "get" "list" "watch") | fromJson) -}}
{{- end -}}
{{- $items = concat $items (include "syncer.rbac.listed" (dict "resource" (lower $kind) "keys" $hosts) | fromJsonArray) -}}
{{- end -}}
{{- end -}}
{{- $storage := get $options "sync.fromHost.csiStorageCapacities.namespaces" -}}
{{- if and $storage (get $options "sync.fromHost.csiStorageCapacities.enabled") -}}
{{- $items = append $items (include "syncer.rbac.right" (list "host" "storage.k8s.io" "csistoragecapacities" true $storage "get" "list" "watch") | fromJson) -}}
{{- end -}}
{{- $published := get $options "sync.toHost.publishedServices.namespaces" -}}
{{- if and $published (get $options "sync.toHost.publishedServices.enabled") -}}
{{- range list (list "" "services") (list "discovery.k8s.io" "endpointslices") -}}
{{- $items = append $items (include "syncer.rbac.right" (list "host" (first .) (last .) true $published "get" "list" "watch" "create" "patch" "delete") | fromJson) -}}
{{- end -}}
{{- end -}}
{{- $service := get $options "networking.apiServer.service" -}}
{{- if and $service (get $options "sync.toHost.pods.enabled") -}}
{{- $key := splitList "/" $service -}}
{{- $right := include "syncer.rbac.right" (list "host" "" "services" true (list (first $key)) "get") | fromJson -}}
{{- $items = append $items (set $right "names" (list (last $key))) -}}
{{- end -}}
{{- toJson $items -}}
{{- end -}}

{{/* Rights to read objects of the host: of a "resource", by their "keys" as namespace/name, where * stands for all names. */}}
{{- define "syncer.rbac.listed" -}}
{{- $resource := .resource -}}
{{- $whole := list -}}
{{- $names := dict -}}
{{- range .keys | sortAlpha -}}
{{- $key := splitList "/" . -}}
{{- $namespace := first $key -}}
{{- if eq (last $key) "*" -}}
{{- $whole = append $whole $namespace -}}
{{- else -}}
{{- $_ := set $names $namespace (append (default list (get $names $namespace)) (last $key)) -}}
{{- end -}}
{{- end -}}
{{- $items := list -}}
{{- if $whole -}}
{{- $items = append $items (include "syncer.rbac.right" (list "host" "" $resource true $whole "get" "list" "watch") | fromJson) -}}
{{- end -}}
{{- range $namespace, $found := $names -}}
{{- if not (has $namespace $whole) -}}
{{- $right := include "syncer.rbac.right" (list "host" "" $resource true (list $namespace) "get" "list" "watch") | fromJson -}}
{{- $items = append $items (set $right "names" $found) -}}
{{- end -}}
{{- end -}}
{{- toJson $items -}}
{{- end -}}

{{- define "syncer.rbac.list" -}}
{{- $items := list -}}
{{- range . -}}{{- $items = append $items (include "syncer.rbac.right" .) -}}{{- end -}}
[{{ join "," $items }}]
{{- end -}}

{{/* Rights to patch what comes up (`patches.up`) and what has another owner (`authority`), of built-in kinds. */}}
{{- define "syncer.rbac.kinds" -}}
{{- $given := . -}}
{{- $rights := list -}}
{{- range $section, $kind := .table.kinds -}}
{{- if and $kind.syncs (has (get $given.options "names.translator") $kind.translators) (get $given.options (printf "%s.enabled" $section)) -}}
{{- $path := splitList "." $section -}}
{{- $patched := include "syncer.rbac.patched" (dict "layers" $given.layers "path" $path) | fromJsonArray -}}
{{- range $patched -}}
{{- $rights = append $rights (list "virtual" $kind.group (printf "%s%s" $kind.plural .) $kind.namespaced list "patch") -}}
{{- end -}}
{{- $authority := (include "syncer.rbac.option" (dict "layers" $given.layers "path" (append $path "authority") "default" dict) | fromJson).value -}}
{{- if without (values $authority) "virtual" -}}
{{- range $kind.authorityTakes -}}
{{- if not (get $given.options (printf "%s.enabled" .)) -}}
{{- fail (printf "%s.authority: the rights that it takes without %s aren't known here: set %s.enabled to true; or rbac.create to false, and apply what `syncer rbac` prints" $section . .) -}}
{{- end -}}
{{- end -}}
{{- $rights = append $rights (list "virtual" $kind.group $kind.plural $kind.namespaced list "patch") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "syncer.rbac.list" $rights -}}
{{- end -}}

{{/* What `patches.up` of a section, and the paths "up", take a right to patch: "" the object, "/status" its status. */}}
{{- define "syncer.rbac.patched" -}}
{{- $paths := default list .up -}}
{{- range (include "syncer.rbac.option" (dict "layers" .layers "path" (concat .path (list "patches" "up")) "default" list) | fromJson).value -}}
{{- $paths = append $paths .path -}}
{{- end -}}
{{- include "syncer.rbac.subresources" $paths -}}
{{- end -}}

{{/* What a right to patch these paths takes: "" the object, "/status" its status. */}}
{{- define "syncer.rbac.subresources" -}}
{{- $found := list -}}
{{- range . -}}
{{- $found = append $found (ternary "/status" "" (eq (regexFind "[^/.[]+" .) "status")) -}}
{{- end -}}
{{- uniq $found | toJson -}}
{{- end -}}

{{/* Rights of the entries of `sync.custom`. */}}
{{- define "syncer.rbac.custom" -}}
{{- $given := . -}}
{{- $rights := list -}}
{{- $names := list -}}
{{- range .layers -}}{{- $names = concat $names (keys (dig "sync" "custom" dict . | default dict)) -}}{{- end -}}
{{- range $name := uniq $names -}}
{{- $entry := include "syncer.rbac.entry" (dict "layers" $given.layers "name" $name) | fromJson -}}
{{- if $entry.enabled -}}
{{- $path := list "sync" "custom" $name -}}
{{- $plural := first (splitList "." $name) -}}
{{- $group := trimPrefix (printf "%s." $plural) $name -}}
{{- $cluster := eq $entry.scope "Cluster" -}}
{{- $patched := include "syncer.rbac.patched" (dict "layers" $given.layers "path" $path "up" $entry.up) | fromJsonArray -}}
{{- if eq $entry.direction "fromHost" -}}
{{- $from := keys $entry.namespaces | sortAlpha -}}
{{- if or (empty $entry.scope) (eq (empty $from) (eq $entry.scope "Cluster")) -}}
{{- $rights = append $rights (list "host" $group $plural (not (empty $from)) $from "get" "list" "watch") -}}
{{- $rights = append $rights (list "virtual" $group $plural true list "get" "list" "watch" "create" "patch" "delete") -}}
{{- range $patched -}}
{{- $rights = append $rights (list "virtual" $group (printf "%s%s" $plural .) true list "patch") -}}
{{- end -}}
{{- end -}}
{{- else -}}
{{- $rights = append $rights (list "host" $group $plural (not $cluster) list "get" "list" "watch" "create" "patch" "delete") -}}
{{- $rights = append $rights (list "virtual" $group $plural true list "get" "list" "watch") -}}
{{- range include "syncer.rbac.subresources" $entry.down | fromJsonArray -}}
{{- $rights = append $rights (list "host" $group (printf "%s%s" $plural .) (not $cluster) list "patch") -}}
{{- end -}}
{{- if without (values $entry.authority) "virtual" -}}{{- $patched = append $patched "" -}}{{- end -}}
{{- if and (ne $entry.onHostDeletion "recreate") (ne $entry.onDelete "retain") -}}
{{- $patched = append $patched "" -}}
{{- if eq $entry.onHostDeletion "propagate" -}}
{{- $rights = append $rights (list "virtual" $group $plural true list "delete") -}}
{{- $rights = append $rights (list "host" "apiextensions.k8s.io" "customresourcedefinitions" false list "get") -}}
{{- end -}}
{{- end -}}
{{- range $patched -}}
{{- $rights = append $rights (list "virtual" $group (printf "%s%s" $plural .) true list "patch") -}}
{{- end -}}
{{- range $related := $entry.related -}}
{{- if and (eq (default "virtual" $related.origin) "host") (ne (toJson $related.enabled) "false") -}}
{{- $target := include "syncer.rbac.target" (merge (dict "name" $related.resource) $given) | fromJson -}}
{{- if and $cluster $target.namespaced (not (hasKey $entry.references (default "" $related.by.reference))) -}}
{{- fail (printf "sync.custom.%s.related: the kind has no namespace, so it isn't known where its %s belong; find them by.reference, with a path of references" $name $related.resource) -}}
{{- end -}}
{{- $rights = append $rights (list "host" $target.group $target.plural $target.namespaced list "get" "list" "watch") -}}
{{- $rights = append $rights (list "virtual" $target.group $target.plural true list "get" "list" "watch" "create" "patch" "delete") -}}
{{- $up := ternary (list "status") list $target.status -}}
{{- range dig "patches" "up" list $related -}}{{- $up = append $up .path -}}{{- end -}}
{{- range include "syncer.rbac.subresources" $up | fromJsonArray -}}
{{- $rights = append $rights (list "virtual" $target.group (printf "%s%s" $target.plural .) true list "patch") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "syncer.rbac.list" $rights -}}
{{- end -}}

{{/* An entry of `sync.custom` with the defaults of the options that matter. */}}
{{- define "syncer.rbac.entry" -}}
{{- $given := . -}}
{{- $entry := dict -}}
{{- $defaults := dict "enabled" true "direction" "toHost" "scope" "" "down" (list "spec") "up" false "onDelete" "delete" "onHostDeletion" "recreate" "authority" dict "namespaces" dict "related" list "references" dict -}}
{{- range $option, $default := $defaults -}}
{{- $path := list "sync" "custom" $given.name $option -}}
{{- $_ := set $entry $option (include "syncer.rbac.option" (dict "layers" $given.layers "path" $path "default" $default) | fromJson).value -}}
{{- end -}}
{{- if kindIs "bool" $entry.up -}}
{{- $_ := set $entry "up" (ternary (list "spec" "status") (list "status") (eq $entry.direction "fromHost")) -}}
{{- end -}}
{{- toJson $entry -}}
{{- end -}}

{{/* The resource that `related` names by its kind, or by plural and group. */}}
{{- define "syncer.rbac.target" -}}
{{- $name := .name -}}
{{- $plural := first (splitList "." $name) -}}
{{- $entry := include "syncer.rbac.entry" (dict "layers" .layers "name" $name) | fromJson -}}
{{- $isNamespaced := and (ne $entry.scope "Cluster") (or (ne $entry.direction "fromHost") (not (empty $entry.namespaces))) -}}
{{- /* The daemon knows nothing of an entry that is off. */ -}}
{{- $namespaced := or (not $entry.enabled) $isNamespaced -}}
{{- $target := dict "group" (ternary "" (trimPrefix (printf "%s." $plural) $name) (eq $plural $name)) "plural" $plural "namespaced" $namespaced -}}
{{- $options := .options -}}
{{- range $section, $kind := .table.kinds -}}
{{- if and (eq .kind $name) (not .madeFor) -}}
{{- if and (hasPrefix "sync.toHost." $section) (not (get $options (printf "%s.enabled" $section))) -}}
{{- fail (printf "sync.custom: related names %s, which isn't synced: set %s.enabled to true, or write %s" $name $section .plural) -}}
{{- end -}}
{{- $target = pick . "group" "plural" "namespaced" -}}
{{- end -}}
{{- end -}}
{{- /* These have data; of a kind that isn't synced, the daemon knows the plural alone, and takes a ConfigMap for any kind with a status. */ -}}
{{- $contents := list "secrets" -}}
{{- if get $options "sync.toHost.configMaps.enabled" -}}{{- $contents = append $contents "configmaps" -}}{{- end -}}
{{- set $target "status" (not (and (empty $target.group) (has $target.plural $contents))) | toJson -}}
{{- end -}}

{{/* The rights of a side with each resource once, the verbs in the customary order. */}}
{{- define "syncer.rbac.joined" -}}
{{- $side := .side -}}
{{- $found := dict -}}
{{- range .rows -}}
{{- if eq .side $side -}}
{{- $namespaces := default list .namespaces -}}
{{- $key := printf "%s|%s|%t|%s|%s" .group .resource .namespaced (join "," $namespaces) (join "," .names) -}}
{{- $before := default (dict "verbs" list) (get $found $key) -}}
{{- $_ := set $found $key (dict "side" $side "group" .group "resource" .resource "namespaced" .namespaced "namespaces" $namespaces "names" .names "verbs" (concat $before.verbs .verbs | uniq)) -}}
{{- end -}}
{{- end -}}
{{- $rights := list -}}
{{- range $key := keys $found | sortAlpha -}}
{{- $right := get $found $key -}}
{{- $known := list "get" "list" "watch" "create" "update" "patch" "delete" -}}
{{- $verbs := list -}}
{{- range $known -}}{{- if has . $right.verbs -}}{{- $verbs = append $verbs . -}}{{- end -}}{{- end -}}
{{- range $right.verbs | sortAlpha -}}{{- if not (has . $known) -}}{{- $verbs = append $verbs . -}}{{- end -}}{{- end -}}
{{- $rights = append $rights (set $right "verbs" $verbs) -}}
{{- end -}}
{{- toJson $rights -}}
{{- end -}}

{{/* The roles on the host that a right belongs in: lease, namespace/NAMESPACE, or cluster/. */}}
{{- define "syncer.rbac.places" -}}
{{- $row := .row -}}
{{- $places := .places -}}
{{- if and (eq $row.group "coordination.k8s.io") (eq $row.resource "leases") -}}
{{- list "lease" | toJson -}}
{{- else -}}
{{- $own := $row.namespaces -}}
{{- if not $own -}}{{- $own = $places -}}{{- end -}}
{{- $reads := and (empty $row.group) (eq $row.resource "namespaces") (eq (join "," $row.verbs) "get") (not (empty $places)) -}}
{{- if or (and (not $row.namespaced) (not $reads)) (empty $own) -}}
{{- list "cluster/" | toJson -}}
{{- else -}}
{{- $found := list -}}
{{- range $own -}}{{- $found = append $found (printf "namespace/%s" .) -}}{{- end -}}
{{- toJson $found -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A role and its binding. */}}
{{- define "syncer.rbac.role" -}}
{{- $rules := dict -}}
{{- range .rows -}}
{{- $key := printf "%s|%s|%s" .group (join "," .verbs) (join "," .names) -}}
{{- $rule := default (dict "resources" list) (get $rules $key) -}}
{{- $rule = dict "apiGroups" (list .group) "resources" (append $rule.resources .resource | uniq) "verbs" .verbs -}}
{{- if .names -}}{{- $_ := set $rule "resourceNames" .names -}}{{- end -}}
{{- $_ := set $rules $key $rule -}}
{{- end -}}
{{- $kind := ternary "ClusterRole" "Role" (empty .namespace) -}}
{{- $metadata := dict "name" .name -}}
{{- if .namespace -}}{{- $_ := set $metadata "namespace" .namespace -}}{{- end -}}
{{- with .labels -}}{{- $_ := set $metadata "labels" . -}}{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  {{- toYaml $metadata | nindent 2 }}
rules:
{{- range $key := keys $rules | sortAlpha }}
{{ list (get $rules $key) | toYaml }}
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  {{- toYaml $metadata | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ .name }}
subjects:
{{ list .subject | toYaml }}
{{ end -}}
