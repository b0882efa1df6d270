{{/* The daemons: dicts for the templates of _daemon.tpl without root and values, as a list in JSON. */}}
{{- define "syncer.daemons" -}}
{{- if .Values.fleet.enabled -}}
[{{ include "syncer.fleet" . }}]
{{- else -}}
{{- include "syncer.daemons.each" . -}}
{{- end -}}
{{- end -}}

{{/* One for each virtual cluster. */}}
{{- define "syncer.daemons.each" -}}
{{- if .Values.fleet.virtualClusterSecrets -}}
{{- fail "fleet.virtualClusterSecrets: set fleet.enabled, too; virtual clusters of Secrets take one daemon for all" -}}
{{- end -}}
{{- $clusters := include "syncer.clusters" . | fromJsonArray -}}
{{- if not $clusters -}}
{{- fail "virtualClusters: name a virtual cluster: --set 'virtualClusters[0].name=shop,virtualClusters[0].hostNamespace=vc-shop,virtualClusters[0].kubeconfigSecret.name=shop-kubeconfig'" -}}
{{- end -}}
{{- $election := default dict .Values.config.leaderElection -}}
{{- if and (gt (int .Values.replicas) 1) (eq (dig "enabled" true $election | toString) "false") -}}
{{- fail "config.leaderElection.enabled: several replicas would all write; leave it out, or set the value `replicas` to 1" -}}
{{- end -}}
{{- if gt (len $clusters) 1 -}}
{{- if .Values.config.virtualClusterSecrets -}}
{{- fail "config.virtualClusterSecrets: each daemon would serve them; leave it out (with the value `fleet.enabled`, one daemon serves all)" -}}
{{- end -}}
{{- if $election.name -}}
{{- fail "config.leaderElection.name: each virtual cluster has a daemon with a Lease of its own; leave it out" -}}
{{- end -}}
{{- if and .Values.serviceAccount.create .Values.serviceAccount.name -}}
{{- fail "serviceAccount.name: each virtual cluster has a daemon with an account of its own; leave it out" -}}
{{- end -}}
{{- end -}}
{{- $daemons := dict -}}
{{- range $index, $cluster := $clusters -}}
{{- if hasKey $daemons .name -}}
{{- fail (printf "virtualClusters[%d].name: an entry before it is named %s, too" $index .name) -}}
{{- end -}}
{{- /* Beside the copies, where each release for this virtual cluster finds it, so that one of them alone writes. */ -}}
{{- $known := dict
  "apiVersion" "vsyncer.dev/v1alpha1"
  "kind" "SyncerConfig"
  "virtualClusters" (list .)
  "leaderElection" (dict "enabled" true "namespace" (default $.Release.Namespace .hostNamespace))
  "page" (dict "address" (include "vsyncer.daemon.page" $.Values))
-}}
{{- $daemon := dict
  "name" (include "syncer.name" (dict "root" $ "serves" .name))
  "serves" .name
  "config" (mergeOverwrite $known (deepCopy $.Values.config))
-}}
{{- $places := include "syncer.clusters.places" (list (index $.Values.virtualClusters $index)) | fromJson -}}
{{- $_ := set $daemons .name (merge $daemon $places) -}}
{{- end -}}
{{- $sorted := list -}}
{{- range keys $daemons | sortAlpha -}}
{{- if and (hasSuffix "-dashboard" .) (hasKey $daemons (trimSuffix "-dashboard" .)) -}}
{{- fail (printf "virtualClusters: %s is also the name of the dashboard of %s; give one of them another" . (trimSuffix "-dashboard" .)) -}}
{{- end -}}
{{- $sorted = append $sorted (get $daemons .) -}}
{{- end -}}
{{- toJson $sorted -}}
{{- end -}}

{{/* The name of the objects of the daemon for a virtual cluster; those that are made of it, such as the names of Jobs, must be labels, too. */}}
{{- define "syncer.name" -}}
{{- $name := printf "%s-%s" (include "vsyncer.fullname" .root) .serves -}}
{{- if gt (len $name) 49 -}}
{{- $name = printf "%s-%s" (trunc 40 $name | trimSuffix "-") (sha256sum $name | trunc 8) -}}
{{- end -}}
{{- $name -}}
{{- end -}}
