{{/* The daemon's configuration as YAML: what the chart knows, and `config` over it. */}}
{{- define "syncer.config" -}}
{{- $clusters := include "vsyncer.clusters" . | fromJsonArray -}}
{{- if not $clusters -}}
{{- fail "virtualClusters: name a virtual cluster: --set 'virtualClusters[0].name=shop,virtualClusters[0].hostNamespace=vc-shop,virtualClusters[0].kubeconfigSecret.name=shop-kubeconfig'" -}}
{{- end -}}
{{- if gt (len $clusters) 1 -}}
{{- fail "virtualClusters: has too many entries: this chart serves one virtual cluster; the chart fleet serves several" -}}
{{- end -}}
{{- if and (gt (int .Values.replicas) 1) (eq (dig "leaderElection" "enabled" true .Values.config | toString) "false") -}}
{{- fail "config.leaderElection.enabled: several replicas would all write; leave it out, or set the value `replicas` to 1" -}}
{{- end -}}
{{- /* Beside the copies, where each release for this virtual cluster finds it, so that one of them alone writes. */ -}}
{{- $home := default .Release.Namespace (first $clusters).hostNamespace -}}
{{- $known := dict
  "apiVersion" "vsyncer.dev/v1alpha1"
  "kind" "SyncerConfig"
  "virtualClusters" $clusters
  "leaderElection" (dict "enabled" true "namespace" $home)
-}}
{{- mergeOverwrite $known (deepCopy .Values.config) | toYaml -}}
{{- end -}}

{{/* The dict for the templates of _daemon.tpl, as YAML without root and values. */}}
{{- define "syncer.daemon" -}}
{{- $config := include "syncer.config" . | fromYaml -}}
{{- merge (dict "name" (include "vsyncer.fullname" .) "config" $config) (include "vsyncer.clusters.places" . | fromJson) | toYaml -}}
{{- end -}}
