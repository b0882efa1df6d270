{{/* The daemon's configuration as YAML: what the chart knows, and `config` over it. */}}
{{- define "fleet.config" -}}
{{- if hasKey .Values.config "virtualClusterSecrets" -}}
{{- fail "config.virtualClusterSecrets: the chart sets it; take it out, and set the value `virtualClusterSecrets`" -}}
{{- end -}}
{{- range list "enabled" "shards" -}}
{{- if hasKey (default dict $.Values.config.leaderElection) . -}}
{{- fail (printf "config.leaderElection.%s: the chart sets it; take it out (the number of shards is the value `leaderElection.shards`)" .) -}}
{{- end -}}
{{- end -}}
{{- $clusters := include "vsyncer.clusters" . | fromJsonArray -}}
{{- if not (or $clusters .Values.virtualClusterSecrets) -}}
{{- fail "virtualClusterSecrets: name a namespace with Secrets: --set 'virtualClusterSecrets[0].namespace=shop,virtualClusterSecrets[0].hostNamespaces={shop-virtual-cluster-workloads}'; or list virtualClusters" -}}
{{- end -}}
{{- $election := dict "enabled" true "namespace" .Release.Namespace "name" (include "vsyncer.fullname" .) "shards" .Values.leaderElection.shards -}}
{{- $known := dict
  "apiVersion" "vsyncer.dev/v1alpha1"
  "kind" "SyncerConfig"
  "virtualClusters" $clusters
  "virtualClusterSecrets" .Values.virtualClusterSecrets
  "leaderElection" $election
  "control" (dict "socket" "/tmp/vsyncer.sock")
-}}
{{- mergeOverwrite $known (deepCopy .Values.config) | toYaml -}}
{{- end -}}

{{/* The dict for the templates of _daemon.tpl, as YAML without root and values. Virtual clusters join, leave and change in running daemons. */}}
{{- define "fleet.daemon" -}}
{{- $config := include "fleet.config" . | fromYaml -}}
{{- $listed := include "vsyncer.clusters.places" .Values.virtualClusters | fromJson -}}
{{- $namespaces := $listed.namespaces -}}
{{- $secrets := list -}}
{{- range .Values.virtualClusterSecrets -}}{{- $namespaces = concat $namespaces .hostNamespaces -}}{{- $secrets = append $secrets .namespace -}}{{- end -}}
{{- dict
  "name" (include "vsyncer.fullname" .)
  "config" $config
  "starting" (pick $config "control" "gracePeriod" "health" "host" "leaderElection" "log" "metrics" "workers")
  "kubeconfigs" $listed.kubeconfigs
  "namespaces" (uniq $namespaces)
  "secretNamespaces" $secrets
| toYaml -}}
{{- end -}}
