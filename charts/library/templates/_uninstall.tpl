{{/* What `helm uninstall` runs first, in both charts. */}}

{{/* The annotations of a Job of the uninstall, of a weight; one that fails stays, for its log. */}}
{{- define "vsyncer.uninstall.hook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* The annotations of the rights that exist during the uninstall alone, also of one that fails. */}}
{{- define "vsyncer.uninstall.rights" -}}
{{ include "vsyncer.uninstall.hook" -1 }},hook-failed
{{- end -}}

{{/* How long a Job of the uninstall may take, less than the five minutes that Helm waits for each. */}}
{{- define "vsyncer.uninstall.seconds" -}}
280
{{- end -}}

{{/* One Job ends the daemon, the other runs `syncer uninstall`. Takes the dict of _daemon.tpl, with "hook" the name of the Jobs, "cluster" the virtual
     cluster's, and "arguments" of the command; with "weight", after those with less. */}}
{{- define "vsyncer.uninstall" -}}
{{- $labels := include "vsyncer.labels" (dict "root" .root "part" "uninstall" "serves" .serves) -}}
{{- $home := dig "leaderElection" "namespace" "" .config | default .root.Release.Namespace -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .hook }}-end
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
  annotations:
    {{- include "vsyncer.uninstall.rights" . | nindent 4 }}
automountServiceAccountToken: false
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .hook }}-end
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
  annotations:
    {{- include "vsyncer.uninstall.rights" . | nindent 4 }}
rules:
- apiGroups: [apps]
  resources: [deployments]
  resourceNames: [{{ .name }}]
  verbs: [get]
- apiGroups: [apps]
  resources: [deployments/scale]
  resourceNames: [{{ .name }}]
  verbs: [get, patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .hook }}-end
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
  annotations:
    {{- include "vsyncer.uninstall.rights" . | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .hook }}-end}
subjects:
- {kind: ServiceAccount, name: {{ .hook }}-end, namespace: {{ .root.Release.Namespace }}}
---
# The daemon's account may do all that this needs, but for this.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .hook }}
  namespace: {{ $home }}
  labels:
    {{- $labels | nindent 4 }}
  annotations:
    {{- include "vsyncer.uninstall.rights" . | nindent 4 }}
rules:
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ dig "leaderElection" "name" "" .config | default (printf "vsyncer-%s" .cluster) }}]
  verbs: [delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .hook }}
  namespace: {{ $home }}
  labels:
    {{- $labels | nindent 4 }}
  annotations:
    {{- include "vsyncer.uninstall.rights" . | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .hook }}}
subjects:
- {kind: ServiceAccount, name: {{ include "vsyncer.daemon.account" . }}, namespace: {{ .root.Release.Namespace }}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .hook }}-end
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
  annotations:
    {{- include "vsyncer.uninstall.hook" (default 0 .weight | int) | nindent 4 }}
spec:
  backoffLimit: 3
  activeDeadlineSeconds: {{ include "vsyncer.uninstall.seconds" . }}
  template:
    metadata:
      labels:
        {{- $labels | nindent 8 }}
    spec:
      restartPolicy: Never
      serviceAccountName: {{ .hook }}-end
      automountServiceAccountToken: true
      enableServiceLinks: false
      securityContext:
        {{- include "vsyncer.podSecurityContext" .root | nindent 8 }}
      {{- include "vsyncer.placement" (dict "root" .root "values" .root.Values.jobs) | trim | nindent 6 }}
      initContainers:
      - name: end
        {{- include "vsyncer.kubectl" .root | nindent 8 }}
        args: [--namespace={{ .root.Release.Namespace }}, scale, deployment/{{ .name }}, --replicas=0]
        volumeMounts:
        - {name: tmp, mountPath: /tmp}
      containers:
      - name: wait
        {{- include "vsyncer.kubectl" .root | nindent 8 }}
        args:
        - --namespace={{ .root.Release.Namespace }}
        - wait
        - pod
        - --for=delete
        - --selector=vsyncer.dev/part=syncer,app.kubernetes.io/instance={{ .root.Release.Name }}{{ with .serves }},vsyncer.dev/serves={{ . }}{{ end }}
        - --timeout=2m
        volumeMounts:
        - {name: tmp, mountPath: /tmp}
      volumes:
      - name: tmp
        emptyDir: {sizeLimit: 64Mi}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .hook }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
  annotations:
    {{- include "vsyncer.uninstall.hook" (add1 (default 0 .weight)) | nindent 4 }}
spec:
  backoffLimit: 3
  activeDeadlineSeconds: {{ include "vsyncer.uninstall.seconds" . }}
  template:
    metadata:
      labels:
        {{- $labels | nindent 8 }}
    spec:
      restartPolicy: Never
      serviceAccountName: {{ include "vsyncer.daemon.account" . }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      securityContext:
        {{- include "vsyncer.podSecurityContext" .root | nindent 8 }}
      {{- include "vsyncer.placement" (dict "root" .root "values" .root.Values.jobs) | trim | nindent 6 }}
      {{- with (include "vsyncer.plugins.initContainers" . | trim) }}
      initContainers:
      {{- . | nindent 6 }}
      {{- end }}
      containers:
      - name: uninstall
        {{- include "vsyncer.daemon.command" . | nindent 8 }}
        args: {{ concat (list "uninstall" "--yes") .arguments | toJson }}
      volumes:
      {{- include "vsyncer.daemon.volumes" . | nindent 6 }}
{{- end -}}
