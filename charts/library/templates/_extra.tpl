{{/* Further objects of the values, each a mapping or a text; both are templates. */}}
{{- define "vsyncer.extra" -}}
{{- range .Values.extraObjects }}
---
{{- if kindIs "string" . }}
{{ tpl . $ }}
{{- else }}
{{ tpl (toYaml .) $ }}
{{- end }}
{{- end }}
{{- end -}}
