{{/* Names, labels, images and security contexts of both charts. */}}

{{/* The beginning of all names: at most 36 characters, so that those made of it have room (a StatefulSet's revision is a label). */}}
{{- define "vsyncer.fullname" -}}
{{- $chart := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 36 | trimSuffix "-" -}}
{{- else if contains $chart .Release.Name -}}
{{- .Release.Name | trunc 36 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $chart | trunc 36 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The labels that select the pods of a part: (dict "root" $ "part" "control-plane"); with "serves" CLUSTER, of the part for that virtual cluster alone.
     No tenant can set one with our prefix. */}}
{{- define "vsyncer.selector" -}}
vsyncer.dev/part: {{ .part }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .serves }}
vsyncer.dev/serves: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* The labels of an object of a part, from the same. */}}
{{- define "vsyncer.labels" -}}
{{ include "vsyncer.selector" . }}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/component: {{ .part }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The name of an image: (dict "image" .Values.etcd.image "tag" "1.2.3"); the tag is the default. */}}
{{- define "vsyncer.image" -}}
{{- if .image.digest -}}
{{- printf "%s@%s" .image.repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" .image.repository (default .tag .image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The security context of a pod; it passes Pod Security "restricted". */}}
{{- define "vsyncer.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* That of a container. */}}
{{- define "vsyncer.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* The fields of a container that runs kubectl, but its name and arguments. */}}
{{- define "vsyncer.kubectl" -}}
image: {{ include "vsyncer.image" (dict "image" .Values.kubectl.image "tag" .Values.kubernetesVersion) }}
imagePullPolicy: {{ .Values.kubectl.image.pullPolicy }}
resources:
  {{- toYaml .Values.jobs.resources | nindent 2 }}
securityContext:
  {{- include "vsyncer.securityContext" . | nindent 2 }}
env:
- {name: HOME, value: /tmp}
{{- end -}}

{{/* Where pods run, from a section of the values: (dict "root" $ "values" .Values.controlPlane). */}}
{{- define "vsyncer.placement" -}}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
