{{/* `helm test` of the daemon: its configuration is valid with its plugins, and with its rights it reads both sides; with virtual clusters in
     Secrets, these are listed instead. It takes the dict of _daemon.tpl. */}}
{{- define "vsyncer.test" -}}
---
apiVersion: v1
kind: Pod
metadata:
  name: {{ .name }}-test
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "vsyncer.labels" (dict "root" .root "part" "test" "serves" .serves) | nindent 4 }}
  annotations:
    helm.sh/hook: test
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  restartPolicy: Never
  serviceAccountName: {{ include "vsyncer.daemon.account" . }}
  automountServiceAccountToken: true
  enableServiceLinks: false
  securityContext:
    {{- include "vsyncer.podSecurityContext" . | nindent 4 }}
  {{- include "vsyncer.placement" . | trim | nindent 2 }}
  {{- $daemon := . }}
  {{- $secrets := default list .config.virtualClusterSecrets }}
  # Each step after the one before it.
  initContainers:
  {{- with (include "vsyncer.plugins.initContainers" . | trim) }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- range $index, $entry := $secrets }}
  - name: secrets-{{ $index }}
    {{- include "vsyncer.kubectl" $daemon.root | nindent 4 }}
    args:
    - --namespace={{ .namespace }}
    - get
    - secrets
    - {{ printf "--selector=%s" (default "vsyncer.dev/virtual-cluster" .selector) | quote }}
    - --output=name
    volumeMounts:
    - {name: tmp, mountPath: /tmp}
  {{- else }}
  - name: config-validate
    {{- include "vsyncer.daemon.command" . | nindent 4 }}
    args: [config, validate]
  {{- if le (len (default list .config.virtualClusters)) 1 }}
  - name: plugins-list
    {{- include "vsyncer.daemon.command" . | nindent 4 }}
    args: [plugins, list]
  {{- end }}
  {{- end }}
  containers:
  {{- if $secrets }}
  - name: config-validate
    {{- include "vsyncer.daemon.command" . | nindent 4 }}
    args: [config, validate]
  {{- else }}
  - name: dry-run
    {{- include "vsyncer.daemon.command" . | nindent 4 }}
    args: [run, --once, --dry-run, --no-leader-elect]
  {{- end }}
  volumes:
  {{- include "vsyncer.daemon.volumes" . | nindent 2 }}
{{- end -}}
