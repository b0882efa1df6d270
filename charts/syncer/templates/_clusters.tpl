{{/* The virtual clusters of the value `virtualClusters`, with their kubeconfigs in Secrets of the release's namespace. */}}

{{/* Refuse what the chart itself puts into the daemon's configuration. */}}
{{- define "syncer.clusters.check" -}}
{{- range list "apiVersion" "kind" "cluster" "virtual" "virtualClusters" -}}
{{- if hasKey $.Values.config . -}}
{{- fail (printf "config.%s: the chart sets it; take it out (virtual clusters are the value `virtualClusters`)" .) -}}
{{- end -}}
{{- end -}}
{{- if hasKey (default dict .Values.config.host) "namespace" -}}
{{- fail "config.host.namespace: take it out, and set `hostNamespace` of the entry of `virtualClusters`" -}}
{{- end -}}
{{- end -}}

{{/* The entries of the daemon's configuration, as JSON. */}}
{{- define "syncer.clusters" -}}
{{- include "syncer.clusters.check" . -}}
{{- $clusters := list -}}
{{- range $index, $entry := .Values.virtualClusters -}}
{{- $secret := required (printf "virtualClusters[%d].kubeconfigSecret: name the Secret with the kubeconfig" $index) $entry.kubeconfigSecret -}}
{{- $name := required (printf "virtualClusters[%d].name: name the virtual cluster" $index) $entry.name -}}
{{- $kubeconfig := printf "%s/%s/%s" (include "vsyncer.daemon.kubeconfigs" $) $name (default "config" $secret.key) -}}
{{- $common := dig "translator" "single-namespace" (default dict $.Values.config.names) -}}
{{- $translator := dig "translator" $common (default dict $entry.names) -}}
{{- if and (not $entry.hostNamespace) (has $translator (list "per-namespace" "single-namespace" "vcluster-compat")) -}}
{{- fail (printf "virtualClusters[%d].hostNamespace: name the namespace on the host for the copies" $index) -}}
{{- end -}}
{{- $own := dict "kubeconfig" $kubeconfig -}}
{{- if not (hasKey $entry "waitForKubeconfig") -}}
{{- $_ := set $own "waitForKubeconfig" true -}}
{{- end -}}
{{- $clusters = append $clusters (merge $own (omit $entry "kubeconfigSecret")) -}}
{{- end -}}
{{- toJson $clusters -}}
{{- end -}}

{{/* The kubeconfigs and host namespaces of a list of entries, for the dict of _daemon.tpl, as JSON. */}}
{{- define "syncer.clusters.places" -}}
{{- $kubeconfigs := list -}}
{{- $namespaces := list -}}
{{- range . -}}
{{- $kubeconfigs = append $kubeconfigs (dict "name" .name "secret" .kubeconfigSecret.name "optional" true) -}}
{{- $namespaces = append $namespaces (default "" .hostNamespace) -}}
{{- end -}}
{{- dict "kubeconfigs" $kubeconfigs "namespaces" (compact $namespaces | uniq) | toJson -}}
{{- end -}}

{{/* Where the pods run, as YAML of the value: by default, on nodes of their own if possible. Takes (dict "root" $ "serves" CLUSTER), as _names.tpl. */}}
{{- define "syncer.clusters.apart" -}}
{{- $labels := include "vsyncer.selector" (dict "root" .root "part" "syncer" "serves" .serves) | fromYaml -}}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $labels) -}}
{{- $apart := dict "podAntiAffinity" (dict "preferredDuringSchedulingIgnoredDuringExecution" (list (dict "weight" 100 "podAffinityTerm" $term))) -}}
{{- dict "affinity" (default $apart .root.Values.affinity) | toYaml -}}
{{- end -}}
