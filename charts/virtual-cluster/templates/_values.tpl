{{/* What the chart knows of its virtual cluster. */}}

{{/* The virtual cluster's name, which is part of the names of all copies. */}}
{{- define "virtual-cluster.cluster" -}}
{{- default (include "vsyncer.fullname" .) .Values.cluster -}}
{{- end -}}

{{/* The host namespace of the copies. */}}
{{- define "virtual-cluster.workloads" -}}
{{- $name := default (printf "%s-workloads" (include "vsyncer.fullname" .)) .Values.workloads.namespace -}}
{{- if eq $name .Release.Namespace -}}
{{- fail (printf "workloads.namespace: %q is the release's namespace, where the control plane and its keys are; name another one" $name) -}}
{{- end -}}
{{- if or (eq $name "default") (hasPrefix "kube-" $name) -}}
{{- fail (printf "workloads.namespace: %q is the host's own; name one for this tenant alone" $name) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/* The daemon's configuration as YAML: what the chart knows, and `syncer.config` over it. */}}
{{- define "virtual-cluster.config" -}}
{{- $user := deepCopy .Values.syncer.config -}}
{{- range list "apiVersion" "kind" "cluster" "virtual" "virtualClusters" -}}
{{- if hasKey $user . -}}
{{- fail (printf "syncer.config.%s: the chart sets it; take it out (the virtual cluster's name is the value `cluster`)" .) -}}
{{- end -}}
{{- end -}}
{{- if hasKey (default dict $user.host) "namespace" -}}
{{- fail "syncer.config.host.namespace: take it out, and set `workloads.namespace`" -}}
{{- end -}}
{{- $cluster := include "virtual-cluster.cluster" . -}}
{{- $known := dict
  "apiVersion" "vsyncer.dev/v1alpha1"
  "kind" "SyncerConfig"
  "cluster" $cluster
  "virtual" (dict "kubeconfig" (printf "%s/%s/config" (include "vsyncer.daemon.kubeconfigs" .) $cluster))
  "host" (dict "namespace" (include "virtual-cluster.workloads" .))
  "networking" (dict "apiServer" (dict "service" (printf "%s/%s" .Release.Namespace (include "vsyncer.fullname" .))))
  "kubelet" (dict "enabled" true)
  "leaderElection" (dict "enabled" true "namespace" .Release.Namespace)
  "page" (dict "address" (include "vsyncer.daemon.page" .Values.syncer))
-}}
{{- if and .Values.workloads.networkPolicy.enabled (dig "sync" "toHost" "networkPolicies" "enabled" false $user) -}}
{{- if not (dig "sync" "toHost" "networkPolicies" "allowedCIDRs" dict $user) -}}
{{- $allowed := dict "allowedCIDRs" (include "virtual-cluster.openRanges" . | fromYaml) -}}
{{- $known = mergeOverwrite $known (dict "sync" (dict "toHost" (dict "networkPolicies" $allowed))) -}}
{{- end -}}
{{- end -}}
{{- if .Values.scheduler.enabled -}}
{{- $placed := dict
  "toHost" (dict "pods" (dict "scheduler" "virtual"))
  "fromHost" (dict "nodes" (dict "enabled" true) "storageClasses" (dict "enabled" true) "csiNodes" (dict "enabled" true))
  "fake" (dict "persistentVolumes" (dict "nodeAffinity" true))
-}}
{{- $known = mergeOverwrite $known (dict "sync" $placed) -}}
{{- end -}}
{{- $config := mergeOverwrite $known $user -}}
{{- if and (or .Values.restore.snapshot (include "virtual-cluster.restored" .)) .Values.restore.hold -}}
{{- $config = mergeOverwrite $config (dict "patrol" (dict "breaker" (dict "percent" 0 "count" 0))) -}}
{{- end -}}
{{- $config | toYaml -}}
{{- end -}}

{{/* The dict for the templates of _daemon.tpl, as YAML without root and values. */}}
{{- define "virtual-cluster.daemon" -}}
{{- $name := include "vsyncer.fullname" . -}}
{{- dict
  "name" (printf "%s-syncer" $name)
  "config" (include "virtual-cluster.config" . | fromYaml)
  "kubeconfigs" (list (dict "name" (include "virtual-cluster.cluster" .) "secret" (printf "%s-daemon" $name)))
  "namespaces" (list (include "virtual-cluster.workloads" .))
| toYaml -}}
{{- end -}}

{{/* The Service of the virtual cluster's name server, as NAMESPACE/NAME. */}}
{{- define "virtual-cluster.dnsService" -}}
{{- dig "networking" "dns" "service" "kube-system/kube-dns" .Values.syncer.config -}}
{{- end -}}

{{/* The ranges of addresses that workloads.networkPolicy opens at all ports, as the daemon takes them for the tenant's own policies. */}}
{{- define "virtual-cluster.openRanges" -}}
{{- $found := dict -}}
{{- range $direction, $peers := dict "ingress" "from" "egress" "to" -}}
{{- $ranges := list -}}
{{- range get $.Values.workloads.networkPolicy $direction -}}
{{- if not .ports -}}
{{- range get . $peers -}}
{{- with .ipBlock -}}{{- $ranges = append $ranges . -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $_ := set $found $direction $ranges -}}
{{- end -}}
{{- $found | toYaml -}}
{{- end -}}

{{/* The DNS domain of the virtual cluster's Services. */}}
{{- define "virtual-cluster.clusterDomain" -}}
{{- dig "networking" "clusterDomain" "cluster.local" .Values.syncer.config -}}
{{- end -}}

{{/* The value of a flag of the control plane that runs, where Helm reads it: (dict "root" $ "flag" "data-dir"). */}}
{{- define "virtual-cluster.running" -}}
{{- $flag := printf "--%s=" .flag -}}
{{- $plane := lookup "apps/v1" "StatefulSet" .root.Release.Namespace (printf "%s-control-plane" (include "vsyncer.fullname" .root)) -}}
{{- range dig "spec" "template" "spec" "initContainers" list $plane -}}
{{- range .command -}}
{{- if hasPrefix $flag . -}}{{- trimPrefix $flag . -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The name of the snapshot that etcd's data are from, if any: the value's, else that of etcd as it is. A restore that still runs, and
     may fail, changes nothing yet. */}}
{{- define "virtual-cluster.restored" -}}
{{- $folder := "/var/lib/etcd/restored-" -}}
{{- $running := include "virtual-cluster.running" (dict "root" . "flag" "data-dir") -}}
{{- if and .Values.restore.snapshot (not .Values.restore.running) -}}
{{- .Values.restore.snapshot -}}
{{- else if hasPrefix $folder $running -}}
{{- trimPrefix $folder $running -}}
{{- end -}}
{{- end -}}

{{/* The range of ClusterIPs: that of the value, else the running API server's, else the host's, else the usual one. */}}
{{- define "virtual-cluster.serviceRange" -}}
{{- $running := include "virtual-cluster.running" (dict "root" . "flag" "service-cluster-ip-range") -}}
{{- if .Values.apiServer.serviceClusterIPRange -}}
{{- .Values.apiServer.serviceClusterIPRange -}}
{{- else if $running -}}
{{- $running -}}
{{- else -}}
{{- $found := dict -}}
{{- if .Capabilities.APIVersions.Has "networking.k8s.io/v1/ServiceCIDR" -}}
{{- $found = lookup "networking.k8s.io/v1" "ServiceCIDR" "" "kubernetes" -}}
{{- end -}}
{{- join "," (dig "spec" "cidrs" (list "10.96.0.0/12") $found) -}}
{{- end -}}
{{- end -}}

{{/* The names of the members of etcd. */}}
{{- define "virtual-cluster.members" -}}
{{- $name := printf "%s-control-plane" (include "vsyncer.fullname" .) -}}
{{- $members := list -}}
{{- range until (int .Values.controlPlane.replicas) -}}
{{- $members = append $members (printf "%s-%d" $name .) -}}
{{- end -}}
{{- join "," $members -}}
{{- end -}}

{{/* Flags of a program, as items of YAML: a dict of the chart's, and one of the user's, which wins. A list repeats the flag. */}}
{{- define "virtual-cluster.flags" -}}
{{- $flags := mergeOverwrite (deepCopy .own) (deepCopy .user) -}}
{{- range $name := keys $flags | sortAlpha -}}
{{- $value := get $flags $name -}}
{{- if not (kindIs "slice" $value) -}}{{- $value = list $value -}}{{- end -}}
{{- range $value }}
- {{ printf "--%s=%v" $name (ternary (. | toString) . (kindIs "float64" .)) | quote }}
{{- end -}}
{{- end -}}
{{- end -}}
