{{/* CoreDNS in the virtual cluster. Its pod runs on the host as one of the tenant's, without any right there; it listens on a port
     above 1024, so it needs neither root nor a capability. */}}
{{- define "virtual-cluster.dns" -}}
{{- $service := splitList "/" (include "virtual-cluster.dnsService" .) -}}
{{- if ne (len $service) 2 -}}
{{- fail "syncer.config.networking.dns.service is empty: set dns.enabled: false, too" -}}
{{- end -}}
{{- $namespace := first $service -}}
apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns, namespace: {{ $namespace }}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: system:coredns}
rules:
- {apiGroups: [""], resources: [services, pods, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: system:coredns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:coredns}
subjects: [{kind: ServiceAccount, name: coredns, namespace: {{ $namespace }}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: {{ $namespace }}}
data:
  Corefile: |
    {{- tpl .Values.dns.corefile . | trim | nindent 4 }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ last $service }}
  namespace: {{ $namespace }}
  labels: {k8s-app: kube-dns}
spec:
  selector: {k8s-app: kube-dns}
  ports:
  - {name: dns, port: 53, targetPort: 1053, protocol: UDP}
  - {name: dns-tcp, port: 53, targetPort: 1053, protocol: TCP}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: {{ $namespace }}}
spec:
  replicas: {{ .Values.dns.replicas }}
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      serviceAccountName: coredns
      dnsPolicy: Default
      securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: coredns
        image: {{ include "vsyncer.image" (dict "image" .Values.dns.image "tag" "") }}
        imagePullPolicy: {{ .Values.dns.image.pullPolicy }}
        args: [-conf, /etc/coredns/Corefile]
        livenessProbe: {httpGet: {path: /health, port: 8080}, periodSeconds: 10}
        readinessProbe: {httpGet: {path: /ready, port: 8181}, periodSeconds: 2}
        resources:
          {{- toYaml .Values.dns.resources | nindent 10 }}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
        volumeMounts: [{name: config, mountPath: /etc/coredns, readOnly: true}]
      volumes: [{name: config, configMap: {name: coredns}}]
{{- end -}}
