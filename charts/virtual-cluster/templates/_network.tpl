{{/* Ports and rules of NetworkPolicies. */}}

{{/* The daemon's port for metrics or health; empty if it is off: (dict "root" $ "section" "metrics"). */}}
{{- define "virtual-cluster.daemonPort" -}}
{{- $usual := get (dict "metrics" ":8080" "health" ":8081") .section -}}
{{- $address := dig .section "address" $usual .root.Values.syncer.config | toString -}}
{{- if contains ":" $address -}}{{- last (splitList ":" $address) -}}{{- end -}}
{{- end -}}

{{/* All ports but those of metrics and health, which have no authentication, as items of YAML. */}}
{{- define "virtual-cluster.daemonPorts" -}}
{{- $closed := list -}}
{{- range $section := list "metrics" "health" -}}
{{- with include "virtual-cluster.daemonPort" (dict "root" $ "section" $section) -}}
{{- $closed = append $closed (printf "%05d" (atoi .)) -}}
{{- end -}}
{{- end -}}
{{- $first := 1 -}}
{{- range append ($closed | sortAlpha) "65536" -}}
{{- $last := sub (atoi .) 1 | int -}}
{{- if le $first $last }}
- {port: {{ $first }}, endPort: {{ $last }}, protocol: TCP}
{{- end -}}
{{- $first = add (atoi .) 1 | int -}}
{{- end -}}
{{- end -}}

{{/* The rule of egress for DNS, of the tenant's pods and of the control plane. */}}
{{- define "virtual-cluster.dnsRule" -}}
ports:
- {port: 53, protocol: UDP}
- {port: 53, protocol: TCP}
{{- with .Values.workloads.networkPolicy.dns }}
to:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
