{{/* With `fleet.enabled`: one daemon for all virtual clusters, which its replicas share. */}}

{{/* Refuse values that a fleet can't have. */}}
{{- define "syncer.fleet.check" -}}
{{- if hasKey .Values.config "virtualClusterSecrets" -}}
{{- fail "config.virtualClusterSecrets: the chart sets it; take it out, and set the value `fleet.virtualClusterSecrets`" -}}
{{- end -}}
{{- range list "enabled" "shards" -}}
{{- if hasKey (default dict $.Values.config.leaderElection) . -}}
{{- fail (printf "config.leaderElection.%s: the chart sets it; take it out (the number of shards is the value `fleet.leaderElection.shards`)" .) -}}
{{- end -}}
{{- end -}}
{{- if not (or .Values.virtualClusters .Values.fleet.virtualClusterSecrets) -}}
{{- fail "fleet.virtualClusterSecrets: name a namespace with Secrets: --set 'fleet.virtualClusterSecrets[0].namespace=shop,fleet.virtualClusterSecrets[0].hostNamespaces={shop-virtual-cluster-workloads}'; or list virtualClusters" -}}
{{- end -}}
{{- if .Values.uninstall.enabled -}}
{{- fail "uninstall.enabled: the copies of a fleet stay; leave it out" -}}
{{- end -}}
{{- end -}}

{{/* The daemon's configuration, as JSON: what the chart knows, and `config` over it. */}}
{{- define "syncer.fleet.config" -}}
{{- $election := dict
  "enabled" true
  "namespace" .Release.Namespace
  "name" (include "vsyncer.fullname" .)
  "shards" .Values.fleet.leaderElection.shards
-}}
{{- $known := dict
  "apiVersion" "vsyncer.dev/v1alpha1"
  "kind" "SyncerConfig"
  "virtualClusters" (include "syncer.clusters" . | fromJsonArray)
  "virtualClusterSecrets" .Values.fleet.virtualClusterSecrets
  "leaderElection" $election
  "control" (dict "socket" "/tmp/vsyncer.sock")
  "page" (dict "address" (include "vsyncer.daemon.page" .Values))
-}}
{{- mergeOverwrite $known (deepCopy .Values.config) | toJson -}}
{{- end -}}

{{/* The daemon, as those of "syncer.daemons". Virtual clusters join, leave and change in running daemons. */}}
{{- define "syncer.fleet" -}}
{{- include "syncer.fleet.check" . -}}
{{- $config := include "syncer.fleet.config" . | fromJson -}}
{{- $listed := include "syncer.clusters.places" .Values.virtualClusters | fromJson -}}
{{- $namespaces := $listed.namespaces -}}
{{- $secrets := list -}}
{{- range .Values.fleet.virtualClusterSecrets -}}
{{- $namespaces = concat $namespaces .hostNamespaces -}}
{{- $secrets = append $secrets .namespace -}}
{{- end -}}
{{- dict
  "name" (include "vsyncer.fullname" .)
  "config" $config
  "starting" (pick $config "control" "gracePeriod" "health" "host" "leaderElection" "log" "metrics" "page" "workers")
  "kubeconfigs" $listed.kubeconfigs
  "namespaces" (uniq $namespaces)
  "secretNamespaces" $secrets
  "resources" .Values.fleet.resources
| toJson -}}
{{- end -}}
