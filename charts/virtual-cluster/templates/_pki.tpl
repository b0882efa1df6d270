{{/* The names of the virtual API server that the chart knows besides those of its Service. */}}
{{- define "virtual-cluster.names" -}}
{{- $names := .Values.apiServer.names -}}
{{- $names = append $names (printf "kubernetes.default.svc.%s" (include "virtual-cluster.clusterDomain" .)) -}}
{{- with .Values.ingress -}}{{- if .enabled -}}{{- $names = append $names (required "ingress.host: say at which name the API server is reached" .host) -}}{{- end -}}{{- end -}}
{{- with .Values.gateway -}}{{- if .enabled -}}{{- $names = append $names (required "gateway.host: say at which name the API server is reached" .host) -}}{{- end -}}{{- end -}}
{{- uniq $names | toJson -}}
{{- end -}}

{{/* The address in the tenant's kubeconfig; empty: that of the Service. */}}
{{- define "virtual-cluster.server" -}}
{{- if .Values.kubeconfig.server -}}
{{- .Values.kubeconfig.server -}}
{{- else if .Values.gateway.enabled -}}
{{- printf "https://%s:%v" .Values.gateway.host .Values.gateway.port -}}
{{- else if .Values.ingress.enabled -}}
{{- printf "https://%s" .Values.ingress.host -}}
{{- end -}}
{{- end -}}

{{/* The pod that runs `syncer pki`: (dict "root" $ "arguments" LIST). */}}
{{- define "virtual-cluster.pki.template" -}}
{{- $arguments := .arguments -}}
{{- with .root -}}
{{- $name := include "vsyncer.fullname" . -}}
metadata:
  labels:
    {{- include "vsyncer.labels" (dict "root" . "part" "pki") | nindent 4 }}
spec:
  restartPolicy: OnFailure
  serviceAccountName: {{ $name }}-pki
  automountServiceAccountToken: true
  enableServiceLinks: false
  securityContext:
    {{- include "vsyncer.podSecurityContext" . | nindent 4 }}
  {{- include "vsyncer.placement" (dict "root" . "values" .Values.jobs) | trim | nindent 2 }}
  containers:
  - name: pki
    image: {{ include "vsyncer.daemon.image" (dict "root" . "values" .Values.syncer) }}
    imagePullPolicy: {{ .Values.syncer.image.pullPolicy }}
    args:
    - pki
    - --namespace={{ .Release.Namespace }}
    - --service={{ $name }}
    {{- range include "virtual-cluster.names" . | fromJsonArray }}
    - {{ printf "--name=%s" . | quote }}
    {{- end }}
    {{- with include "virtual-cluster.server" . }}
    - {{ printf "--server=%s" . | quote }}
    {{- end }}
    {{- if .Values.etcd.persistence.keep }}
    - --keep
    {{- end }}
    - --virtual-cluster={{ with .Values.fleet.namespace }}{{ include "virtual-cluster.workloads" $.root }}/{{ include "virtual-cluster.cluster" $.root }}{{ end }}
    {{- range $arguments }}
    - {{ . }}
    {{- end }}
    resources:
      {{- toYaml .Values.jobs.resources | nindent 6 }}
    securityContext:
      {{- include "vsyncer.securityContext" . | nindent 6 }}
    volumeMounts:
    - name: tmp
      mountPath: /tmp
  volumes:
  - name: tmp
    emptyDir: {sizeLimit: 64Mi}
{{- end -}}
{{- end -}}
