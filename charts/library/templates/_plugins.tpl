{{/* Plugins in the daemon's pod: packages in a folder of /plugins each, where the image looks for them. Each template takes the dict of
     _daemon.tpl. */}}

{{/* Init containers that copy a plugin out of its image, for hosts without image volumes, or install its wheels. */}}
{{- define "vsyncer.plugins.initContainers" -}}
{{- $daemon := . -}}
{{- range .values.plugins -}}
{{- if hasKey . "initContainer" }}
- name: plugin-{{ .name }}
  image: {{ .image }}
  imagePullPolicy: {{ default "IfNotPresent" .pullPolicy }}
  {{- $command := (default dict .initContainer).command }}
  {{- if not $command }}
  {{- $folder := required (printf "plugins: %s.subPath: name the folder with the packages in the image" .name) .subPath }}
  {{- $command = list "cp" "-r" (printf "/%s/." (trimAll "/" $folder)) (printf "/plugins/%s/" .name) }}
  {{- end }}
  command:
    {{- toYaml $command | nindent 4 }}
  resources:
    {{- toYaml (default $daemon.values.resources $daemon.resources) | nindent 4 }}
  securityContext:
    {{- include "vsyncer.securityContext" $daemon | nindent 4 }}
  volumeMounts:
  - name: plugin-{{ .name }}
    mountPath: /plugins/{{ .name }}
  - name: tmp
    mountPath: /tmp
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "vsyncer.plugins.mounts" -}}
{{- range .values.plugins }}
- name: plugin-{{ .name }}
  mountPath: /plugins/{{ .name }}
  readOnly: true
  {{- if and .subPath (not (hasKey . "initContainer")) }}
  subPath: {{ .subPath }}
  {{- end }}
{{- end -}}
{{- end -}}

{{- define "vsyncer.plugins.volumes" -}}
{{- range .values.plugins }}
- name: plugin-{{ .name }}
  {{- if hasKey . "initContainer" }}
  emptyDir: {}
  {{- else }}
  image:
    reference: {{ .image }}
    pullPolicy: {{ default "IfNotPresent" .pullPolicy }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* Not empty if the daemon has syncers of plugins: in folders, or in an image of its own, whose rights are given as rules. Takes the
     daemon's values. */}}
{{- define "vsyncer.plugins.any" -}}
{{- if .plugins }}true{{ end -}}
{{- range .extraRules }}{{ if . }}true{{ end }}{{ end -}}
{{- end -}}
