{{/* What Prometheus and Grafana need of the daemon, in both charts; each template takes the dict of _daemon.tpl. A library's files are read by the
     chart that depends on it. */}}

{{- define "vsyncer.monitoring" -}}
{{- $monitoring := .root.Values.monitoring }}
{{- $operator := "monitoring.coreos.com/v1" }}
{{- $job := printf "%s-metrics" .name }}
{{- $labels := include "vsyncer.labels" (dict "root" .root "part" "syncer" "serves" .serves) }}
{{- if contains ":" (dig "metrics" "address" ":8080" .config | toString) }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $job }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  ports:
  - name: metrics
    port: 8080
    targetPort: metrics
  selector:
    {{- include "vsyncer.selector" (dict "root" .root "part" "syncer" "serves" .serves) | nindent 4 }}
{{- if and $monitoring.serviceMonitor.enabled (.root.Capabilities.APIVersions.Has (printf "%s/ServiceMonitor" $operator)) }}
---
apiVersion: {{ $operator }}
kind: ServiceMonitor
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
    {{- with $monitoring.serviceMonitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  selector:
    matchLabels:
      {{- include "vsyncer.selector" (dict "root" .root "part" "syncer" "serves" .serves) | nindent 6 }}
  endpoints:
  - port: metrics
    interval: {{ $monitoring.serviceMonitor.interval }}
{{- end }}
{{- if and (dig "podMonitor" "enabled" false $monitoring) (.root.Capabilities.APIVersions.Has (printf "%s/PodMonitor" $operator)) }}
---
apiVersion: {{ $operator }}
kind: PodMonitor
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
    {{- with $monitoring.podMonitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  selector:
    matchLabels:
      {{- include "vsyncer.selector" (dict "root" .root "part" "syncer" "serves" .serves) | nindent 6 }}
  podMetricsEndpoints:
  - port: metrics
    interval: {{ $monitoring.podMonitor.interval }}
    # The alerts and the dashboard know the job by this name.
    relabelings:
    - {targetLabel: job, replacement: {{ $job }}}
{{- end }}
{{- if and $monitoring.rules.enabled (.root.Capabilities.APIVersions.Has (printf "%s/PrometheusRule" $operator)) }}
---
apiVersion: {{ $operator }}
kind: PrometheusRule
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
    {{- with $monitoring.rules.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- $mine := printf "job=%q,namespace=%q" $job .root.Release.Namespace }}
  {{- .root.Subcharts.library.Files.Get "files/alerts.yaml" | replace "job=\"syncer\"" $mine | nindent 2 }}
{{- end }}
{{- if $monitoring.dashboard.enabled }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .name }}-dashboard
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
    {{- with $monitoring.dashboard.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $monitoring.dashboard.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
data:
  {{- $place := printf "%s/%s" .root.Release.Namespace .name }}
  {{- $dashboard := .root.Subcharts.library.Files.Get "files/dashboard.json" | fromJson }}
  {{- $_ := set $dashboard "uid" (printf "vsyncer-%s" ($place | sha256sum | trunc 12)) }}
  {{- $_ := set $dashboard "title" (printf "vsyncer: %s" $place) }}
  {{- $chosen := dict "namespace" .root.Release.Namespace "job" $job }}
  {{- range $variable := $dashboard.templating.list }}
  {{- with get $chosen $variable.name }}
  {{- $_ := set $variable "current" (dict "text" . "value" .) }}
  {{- end }}
  {{- end }}
  {{ .name }}.json: |
    {{- toPrettyJson $dashboard | nindent 4 }}
{{- end }}
{{- end }}
{{- end -}}
