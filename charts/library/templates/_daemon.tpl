{{/* The daemon, in both charts. Each template takes (dict "root" $ "values" VALUES "name" NAME "config" CONFIG "namespaces" LIST "kubeconfigs" LIST):
     VALUES: the daemon's section of the values
     NAME: the name of its objects
     CONFIG: its configuration, a dict
     NAMESPACES: the host namespaces of the copies that are known beforehand
     KUBECONFIGS: of the virtual clusters, each (dict "name" CLUSTER "secret" SECRET); with "optional" true, a pod doesn't wait for the Secret
     With "resources", those are its containers' in place of the values'.
     With "serves" CLUSTER, the only virtual cluster that it serves, another daemon of the release serves another.
     With "starting", a part of the configuration, only a change of that restarts the daemon; it follows others by itself. */}}

{{/* The name of its ServiceAccount: its own, or one that exists. */}}
{{- define "vsyncer.daemon.account" -}}
{{- if .values.serviceAccount.create -}}
{{- default .name .values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name: name the daemon's ServiceAccount, as serviceAccount.create is false" .values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The folder with one for each virtual cluster, in which the keys of its Secret are files. */}}
{{- define "vsyncer.daemon.kubeconfigs" -}}
/etc/vsyncer/virtual
{{- end -}}

{{/* The address of the daemon's page by its values: in the pod alone, where port-forward reaches it; "0" is off. */}}
{{- define "vsyncer.daemon.page" -}}
{{- ternary "127.0.0.1:8082" "0" .page.enabled -}}
{{- end -}}

{{/* The port of the page by the daemon's configuration; empty if it is off. */}}
{{- define "vsyncer.daemon.pagePort" -}}
{{- $address := dig "page" "address" "0" . | toString -}}
{{- if contains ":" $address -}}{{- last (splitList ":" $address) -}}{{- end -}}
{{- end -}}

{{- define "vsyncer.daemon.image" -}}
{{- include "vsyncer.image" (dict "image" .values.image "tag" .root.Chart.AppVersion) -}}
{{- end -}}

{{/* Volumes, mounts and environment of each container that runs a command of the daemon's image with its configuration. */}}
{{- define "vsyncer.daemon.volumes" -}}
- name: config
  configMap:
    name: {{ .name }}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- range .kubeconfigs }}
- name: virtual-{{ .name }}
  secret:
    secretName: {{ .secret }}
    defaultMode: 0440
    {{- if .optional }}
    optional: true
    {{- end }}
{{- end }}
{{- include "vsyncer.plugins.volumes" . }}
{{- with .values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "vsyncer.daemon.mounts" -}}
- name: config
  mountPath: /etc/vsyncer/config
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- range .kubeconfigs }}
- name: virtual-{{ .name }}
  mountPath: {{ include "vsyncer.daemon.kubeconfigs" . }}/{{ .name }}
  readOnly: true
{{- end }}
{{- include "vsyncer.plugins.mounts" . }}
{{- with .values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "vsyncer.daemon.env" -}}
- name: SYNCER_CONFIG
  value: /etc/vsyncer/config/syncer.yaml
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- with .values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The fields of a container that runs a command of the daemon's image with its configuration, but its name and arguments. */}}
{{- define "vsyncer.daemon.command" -}}
image: {{ include "vsyncer.daemon.image" . }}
imagePullPolicy: {{ .values.image.pullPolicy }}
env:
{{- include "vsyncer.daemon.env" . | nindent 0 }}
resources:
  {{- toYaml (default .values.resources .resources) | nindent 2 }}
securityContext:
  {{- include "vsyncer.securityContext" . | nindent 2 }}
volumeMounts:
{{- include "vsyncer.daemon.mounts" . | nindent 0 }}
{{- end -}}

{{- define "vsyncer.daemon" -}}
{{- $metrics := dig "metrics" "address" ":8080" .config | toString -}}
{{- $health := dig "health" "address" ":8081" .config | toString -}}
{{- if .values.serviceAccount.create }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "vsyncer.daemon.account" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "vsyncer.labels" (dict "root" .root "part" "syncer" "serves" .serves) | nindent 4 }}
  {{- with .values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "vsyncer.labels" (dict "root" .root "part" "syncer" "serves" .serves) | nindent 4 }}
data:
  syncer.yaml: |
    {{- toYaml .config | nindent 4 }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "vsyncer.labels" (dict "root" .root "part" "syncer" "serves" .serves) | nindent 4 }}
  {{- with .values.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  replicas: {{ .values.replicas }}
  revisionHistoryLimit: 3
  selector:
    matchLabels:
      {{- include "vsyncer.selector" (dict "root" .root "part" "syncer" "serves" .serves) | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "vsyncer.labels" (dict "root" .root "part" "syncer" "serves" .serves) | nindent 8 }}
        {{- with .values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        vsyncer.dev/config: {{ default .config .starting | toYaml | sha256sum | trunc 16 | quote }}
        {{- with .values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ include "vsyncer.daemon.account" . }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds }}
      securityContext:
        {{- include "vsyncer.podSecurityContext" . | nindent 8 }}
      {{- include "vsyncer.placement" . | trim | nindent 6 }}
      {{- with (include "vsyncer.plugins.initContainers" . | trim) }}
      initContainers:
      {{- . | nindent 6 }}
      {{- end }}
      containers:
      - name: syncer
        {{- include "vsyncer.daemon.command" . | nindent 8 }}
        args:
        - run
        {{- range .values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
        ports:
        {{- if contains ":" $metrics }}
        - name: metrics
          containerPort: {{ last (splitList ":" $metrics) }}
        {{- end }}
        {{- if contains ":" $health }}
        - name: health
          containerPort: {{ last (splitList ":" $health) }}
        {{- end }}
        {{- if contains ":" $health }}
        startupProbe:
          httpGet: {path: /livez, port: health}
          periodSeconds: 1
          failureThreshold: 120
        livenessProbe:
          httpGet: {path: /livez, port: health}
          periodSeconds: 10
          timeoutSeconds: 5
          failureThreshold: 6
        readinessProbe:
          httpGet: {path: /readyz, port: health}
          periodSeconds: 3
          timeoutSeconds: 5
        {{- end }}
      volumes:
      {{- include "vsyncer.daemon.volumes" . | nindent 6 }}
{{- if .values.podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "vsyncer.labels" (dict "root" .root "part" "syncer" "serves" .serves) | nindent 4 }}
spec:
  {{- omit .values.podDisruptionBudget "enabled" | toYaml | nindent 2 }}
  selector:
    matchLabels:
      {{- include "vsyncer.selector" (dict "root" .root "part" "syncer" "serves" .serves) | nindent 6 }}
{{- end }}
{{- end -}}

{{/* The daemon's rights on the host: what `syncer rbac` prints for its configuration, and those of the values. */}}
{{- define "vsyncer.daemon.rights" -}}
{{- $daemon := . -}}
{{- $labels := include "vsyncer.labels" (dict "root" .root "part" "syncer" "serves" .serves) -}}
{{- $given := dict "config" .config "side" "host" "labels" (fromYaml $labels) "plugins" (ne (include "vsyncer.plugins.any" .values) "") -}}
{{- include "syncer.rbac.check" $given -}}
{{- if .values.rbac.create }}
{{- $_ := set $given "subject" (dict "kind" "ServiceAccount" "name" (include "vsyncer.daemon.account" .) "namespace" .root.Release.Namespace) }}
{{ include "syncer.rbac" $given }}
{{- end }}
{{- with .values.extraRules.host }}
{{- $rules := . }}
{{- range $daemon.namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $daemon.name }}-extra
  namespace: {{ . }}
  labels:
    {{- $labels | nindent 4 }}
rules:
  {{- toYaml $rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $daemon.name }}-extra
  namespace: {{ . }}
  labels:
    {{- $labels | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ $daemon.name }}-extra}
subjects:
- {kind: ServiceAccount, name: {{ include "vsyncer.daemon.account" $daemon }}, namespace: {{ $daemon.root.Release.Namespace }}}
{{- end }}
{{- end }}
{{- with .values.extraRules.hostCluster }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $daemon.root.Release.Namespace }}-{{ $daemon.name }}-extra
  labels:
    {{- $labels | nindent 4 }}
rules:
  {{- toYaml . | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $daemon.root.Release.Namespace }}-{{ $daemon.name }}-extra
  labels:
    {{- $labels | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $daemon.root.Release.Namespace }}-{{ $daemon.name }}-extra}
subjects:
- {kind: ServiceAccount, name: {{ include "vsyncer.daemon.account" $daemon }}, namespace: {{ $daemon.root.Release.Namespace }}}
{{- end }}
{{- end -}}

{{/*
Roles without rules that a hook makes in the host namespaces before anything else, and removes at once: where one of these is missing, Helm says
so and has done nothing. The dict is that of `vsyncer.daemon`; `secretNamespaces` are looked for, too.
*/}}
{{- define "vsyncer.daemon.namespacesFirst" -}}
{{- $daemon := . }}
{{- if .root.Values.rbac.create }}
{{- range uniq (concat .namespaces (default list .secretNamespaces)) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $daemon.name }}-check
  namespace: {{ . }}
  labels:
    {{- include "vsyncer.labels" (dict "root" $daemon.root "part" "install" "serves" $daemon.serves) | nindent 4 }}
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
rules: []
{{- end }}
{{- end }}
{{- end -}}
