{{/* Flags, files and settings of the control plane's programs. */}}

{{/* The folder of etcd's data, for the name of the snapshot that they are from; empty: none. */}}
{{- define "virtual-cluster.etcd.data" -}}
{{- with . -}}/var/lib/etcd/restored-{{ . }}{{- else -}}/var/lib/etcd/data{{- end -}}
{{- end -}}

{{- define "virtual-cluster.etcd.flags" -}}
{{- $service := printf "%s-etcd.%s.svc" (include "vsyncer.fullname" .) .Release.Namespace -}}
{{- $members := list -}}
{{- range splitList "," (include "virtual-cluster.members" .) -}}
{{- $members = append $members (printf "%s=https://%s.%s:2380" . . $service) -}}
{{- end -}}
{{- include "virtual-cluster.flags" (dict "user" .Values.etcd.extraArgs "own" (dict
  "name" "$(POD_NAME)"
  "data-dir" (include "virtual-cluster.restored" . | include "virtual-cluster.etcd.data")
  "listen-client-urls" "https://0.0.0.0:2379"
  "advertise-client-urls" (printf "https://$(POD_NAME).%s:2379" $service)
  "listen-peer-urls" "https://0.0.0.0:2380"
  "initial-advertise-peer-urls" (printf "https://$(POD_NAME).%s:2380" $service)
  "initial-cluster" (join "," $members)
  "initial-cluster-token" (include "vsyncer.fullname" .)
  "listen-metrics-urls" "http://0.0.0.0:2381"
  "cert-file" "/pki/etcd-server.crt"
  "key-file" "/pki/etcd-server.key"
  "trusted-ca-file" "/pki/etcd-ca.crt"
  "client-cert-auth" true
  "peer-cert-file" "/pki/etcd-peer.crt"
  "peer-key-file" "/pki/etcd-peer.key"
  "peer-trusted-ca-file" "/pki/etcd-ca.crt"
  "peer-client-cert-auth" true
  "log-level" "warn"
)) -}}
{{- end -}}

{{/* With shutdown-send-retry-after it ends within seconds; else it waits for a minute for clients that watch by HTTP/1.1, as the daemon does. */}}
{{- define "virtual-cluster.apiServer.flags" -}}
{{- $own := dict
  "advertise-address" "$(POD_IP)"
  "allow-privileged" true
  "authorization-mode" "Node,RBAC"
  "authentication-config" "/settings/authentication.yaml"
  "client-ca-file" "/pki/ca.crt"
  "enable-admission-plugins" "NodeRestriction"
  "enable-aggregator-routing" true
  "etcd-servers" "https://127.0.0.1:2379"
  "etcd-cafile" "/pki/etcd-ca.crt"
  "etcd-certfile" "/pki/apiserver-etcd-client.crt"
  "etcd-keyfile" "/pki/apiserver-etcd-client.key"
  "kubelet-certificate-authority" "/pki/ca.crt"
  "kubelet-client-certificate" "/pki/apiserver-kubelet-client.crt"
  "kubelet-client-key" "/pki/apiserver-kubelet-client.key"
  "kubelet-preferred-address-types" "InternalIP,Hostname"
  "profiling" false
  "proxy-client-cert-file" "/pki/front-proxy-client.crt"
  "proxy-client-key-file" "/pki/front-proxy-client.key"
  "requestheader-allowed-names" "front-proxy-client"
  "requestheader-client-ca-file" "/pki/front-proxy-ca.crt"
  "requestheader-extra-headers-prefix" "X-Remote-Extra-"
  "requestheader-group-headers" "X-Remote-Group"
  "requestheader-username-headers" "X-Remote-User"
  "secure-port" 6443
  "service-account-issuer" (printf "https://kubernetes.default.svc.%s" (include "virtual-cluster.clusterDomain" .))
  "service-account-key-file" "/pki/sa.pub"
  "service-account-signing-key-file" "/pki/sa.key"
  "service-cluster-ip-range" (include "virtual-cluster.serviceRange" .)
  "shutdown-send-retry-after" true
  "tls-cert-file" "/pki/apiserver.crt"
  "tls-private-key-file" "/pki/apiserver.key"
-}}
{{- if .Values.apiServer.audit.policy -}}
{{- $_ := set $own "audit-policy-file" "/settings/audit.yaml" -}}
{{- $_ := set $own "audit-log-path" "-" -}}
{{- end -}}
{{- include "virtual-cluster.flags" (dict "user" .Values.apiServer.extraArgs "own" $own) -}}
{{- end -}}

{{/* The files of the API server's settings, as data of a ConfigMap. Without credentials it answers probes alone. */}}
{{- define "virtual-cluster.apiServer.settings" -}}
{{- $probes := list -}}
{{- range list "/livez" "/readyz" "/healthz" -}}
{{- $probes = append $probes (dict "path" .) -}}
{{- end -}}
{{- $authentication := dict
  "apiVersion" (ternary "apiserver.config.k8s.io/v1" "apiserver.config.k8s.io/v1beta1" (semverCompare ">=1.34.0-0" .Values.kubernetesVersion))
  "kind" "AuthenticationConfiguration"
  "anonymous" (dict "enabled" true "conditions" $probes)
-}}
authentication.yaml: |
  {{- mergeOverwrite $authentication (deepCopy .Values.apiServer.authentication) | toYaml | nindent 2 }}
{{- with .Values.apiServer.audit.policy }}
audit.yaml: |
  {{- mergeOverwrite (dict "apiVersion" "audit.k8s.io/v1" "kind" "Policy") (deepCopy .) | toYaml | nindent 2 }}
{{- end }}
{{- end -}}

{{/* All controllers but those whose work is the host's. */}}
{{- define "virtual-cluster.controllers" -}}
*,-node-lifecycle-controller,-node-ipam-controller,-taint-eviction-controller,-device-taint-eviction-controller,-ttl-controller,-pod-garbage-collector-controller,-persistentvolume-binder-controller,-persistentvolume-attach-detach-controller,-persistentvolume-expander-controller
{{- end -}}

{{/* Those that run: with a scheduler of the tenant's, the tenant's taints evict Pods, too. */}}
{{- define "virtual-cluster.controllers.running" -}}
{{- $controllers := include "virtual-cluster.controllers" . -}}
{{- if .Values.scheduler.enabled -}}
{{- $controllers = replace ",-taint-eviction-controller," "," $controllers -}}
{{- end -}}
{{- $controllers -}}
{{- end -}}

{{- define "virtual-cluster.controllerManager.flags" -}}
{{- include "virtual-cluster.flags" (dict "user" .Values.controllerManager.extraArgs "own" (dict
  "authentication-kubeconfig" "/pki/controller-manager.conf"
  "authorization-kubeconfig" "/pki/controller-manager.conf"
  "cluster-signing-cert-file" "/pki/ca.crt"
  "cluster-signing-key-file" "/pki/ca.key"
  "controllers" (include "virtual-cluster.controllers.running" .)
  "kube-api-burst" 200
  "kube-api-qps" 100
  "kubeconfig" "/pki/controller-manager.conf"
  "leader-elect" (gt (int .Values.controlPlane.replicas) 1)
  "profiling" false
  "root-ca-file" "/pki/ca.crt"
  "secure-port" 10257
  "service-account-private-key-file" "/pki/sa.key"
  "use-service-account-credentials" true
)) -}}
{{- end -}}

{{- define "virtual-cluster.scheduler.flags" -}}
{{- include "virtual-cluster.flags" (dict "user" .Values.scheduler.extraArgs "own" (dict
  "authentication-kubeconfig" "/pki/scheduler.conf"
  "authorization-kubeconfig" "/pki/scheduler.conf"
  "kubeconfig" "/pki/scheduler.conf"
  "leader-elect" (gt (int .Values.controlPlane.replicas) 1)
  "profiling" false
  "secure-port" 10259
)) -}}
{{- end -}}

{{/* Where the control plane's pods run, as YAML: the section of the values; by default, several are on nodes of their own if possible. */}}
{{- define "virtual-cluster.controlPlane.places" -}}
{{- $apart := dict -}}
{{- if gt (int .Values.controlPlane.replicas) 1 -}}
{{- $labels := include "vsyncer.selector" (dict "root" . "part" "control-plane") | fromYaml -}}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $labels) -}}
{{- $preferred := list (dict "weight" 100 "podAffinityTerm" $term) -}}
{{- $apart = dict "podAntiAffinity" (dict "preferredDuringSchedulingIgnoredDuringExecution" $preferred) -}}
{{- end -}}
{{- merge (dict "affinity" (default $apart .Values.controlPlane.affinity)) .Values.controlPlane | toYaml -}}
{{- end -}}

{{/* The volumes with keys and certificates: each container sees those that it uses. */}}
{{- define "virtual-cluster.pki.volumes" -}}
{{- $secret := printf "%s-pki" (include "vsyncer.fullname" .) -}}
{{- $uses := dict
  "etcd" (list "etcd-ca.crt" "etcd-server.crt" "etcd-server.key" "etcd-peer.crt" "etcd-peer.key")
  "apiserver" (list "ca.crt" "apiserver.crt" "apiserver.key" "apiserver-kubelet-client.crt" "apiserver-kubelet-client.key"
    "front-proxy-ca.crt" "front-proxy-client.crt" "front-proxy-client.key"
    "etcd-ca.crt" "apiserver-etcd-client.crt" "apiserver-etcd-client.key" "sa.key" "sa.pub")
  "controller-manager" (list "ca.crt" "ca.key" "sa.key" "controller-manager.conf" "controller-manager.crt" "controller-manager.key")
-}}
{{- if .Values.scheduler.enabled -}}
{{- $_ := set $uses "scheduler" (list "ca.crt" "scheduler.conf" "scheduler.crt" "scheduler.key") -}}
{{- end -}}
{{- range $name := keys $uses | sortAlpha }}
- name: pki-{{ $name }}
  secret:
    secretName: {{ $secret }}
    defaultMode: 0440
    items:
    {{- range get $uses $name }}
    - {key: {{ . }}, path: {{ . }}}
    {{- end }}
{{- end }}
{{- end -}}
