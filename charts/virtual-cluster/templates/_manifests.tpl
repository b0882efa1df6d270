{{/* The user of the daemon in the virtual cluster, in the certificate that `syncer pki` makes. */}}
{{- define "virtual-cluster.daemonUser" -}}
kind: User
name: vsyncer
apiGroup: rbac.authorization.k8s.io
{{- end -}}

{{/* The objects of the virtual cluster, as data of a ConfigMap. */}}
{{- define "virtual-cluster.manifests" -}}
05-access.yaml: |
  # The tenant's administrators, by the group in their certificate, and the API server as the client of the kubelets.
  apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata: {name: vsyncer-tenant-admins}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
  subjects:
  - {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "vsyncer:tenant-admins"}
  ---
  apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata: {name: vsyncer-kubelet-client}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:kubelet-api-admin"}
  subjects:
  - {apiGroup: rbac.authorization.k8s.io, kind: User, name: kube-apiserver-kubelet-client}
{{- if .Values.syncer.rbac.create }}
10-daemon.yaml: |
  {{- include "syncer.rbac" (dict "config" (include "virtual-cluster.config" . | fromYaml) "side" "virtual" "subject" (include "virtual-cluster.daemonUser" . | fromYaml) "labels" (dict "app.kubernetes.io/managed-by" "vsyncer") "plugins" (ne (include "vsyncer.plugins.any" .Values.syncer) "")) | nindent 2 }}
{{- end }}
{{- with .Values.syncer.extraRules.virtual }}
11-extra.yaml: |
  apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRole
  metadata: {name: vsyncer-extra}
  rules:
    {{- toYaml . | nindent 4 }}
  ---
  apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata: {name: vsyncer-extra}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: vsyncer-extra}
  subjects:
  - {{ include "virtual-cluster.daemonUser" $ | nindent 4 | trim }}
{{- end }}
{{- if and .Values.uninstall.enabled (not .Values.fleet.namespace) .Values.etcd.persistence.enabled .Values.etcd.persistence.keep }}
12-uninstall.yaml: |
  # The daemon's own ConfigMap, which only an uninstall removes, in a virtual cluster that outlives the release.
  apiVersion: rbac.authorization.k8s.io/v1
  kind: Role
  metadata: {name: vsyncer-uninstall, namespace: kube-system}
  rules:
  - {apiGroups: [""], resources: [configmaps], resourceNames: [vsyncer], verbs: [delete]}
  ---
  apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata: {name: vsyncer-uninstall, namespace: kube-system}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: vsyncer-uninstall}
  subjects:
  - {{ include "virtual-cluster.daemonUser" . | nindent 4 | trim }}
{{- end }}
{{- if .Values.dns.enabled }}
20-dns.yaml: |
  {{- include "virtual-cluster.dns" . | nindent 2 }}
{{- end }}
{{- with .Values.manifests }}
30-manifests.yaml: |
  {{- range . }}
  ---
  {{- if kindIs "string" . }}
  {{- . | nindent 2 }}
  {{- else }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The pod that applies the manifests, once the control plane answers. */}}
{{- define "virtual-cluster.manifests.template" -}}
{{- $name := include "vsyncer.fullname" . -}}
metadata:
  labels:
    {{- include "vsyncer.labels" (dict "root" . "part" "manifests") | nindent 4 }}
spec:
  restartPolicy: OnFailure
  serviceAccountName: {{ $name }}-manifests
  automountServiceAccountToken: false
  enableServiceLinks: false
  securityContext:
    {{- include "vsyncer.podSecurityContext" . | nindent 4 }}
  {{- include "vsyncer.placement" (dict "root" . "values" .Values.jobs) | trim | nindent 2 }}
  initContainers:
  - name: wait
    {{- include "vsyncer.kubectl" . | nindent 4 }}
    args: [--namespace={{ .Release.Namespace }}, rollout, status, statefulset/{{ $name }}-control-plane, --timeout=10m]
    volumeMounts:
    - {name: tmp, mountPath: /tmp}
    - {name: host-token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
  containers:
  - name: apply
    {{- include "vsyncer.kubectl" . | nindent 4 }}
    args:
    - --kubeconfig=/etc/kubeconfig/super-admin.conf
    - --request-timeout=30s
    - apply
    - --server-side
    - --force-conflicts
    - --filename=/manifests
    volumeMounts:
    - {name: tmp, mountPath: /tmp}
    - {name: kubeconfig, mountPath: /etc/kubeconfig, readOnly: true}
    - {name: manifests, mountPath: /manifests, readOnly: true}
  volumes:
  - name: tmp
    emptyDir: {sizeLimit: 64Mi}
  # The host's token, for the container that waits alone: the other one talks to the tenant's server.
  - name: host-token
    projected:
      sources:
      - serviceAccountToken: {path: token, expirationSeconds: 3600}
      - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
      - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
  - name: kubeconfig
    secret:
      secretName: {{ $name }}-pki
      defaultMode: 0440
      items:
      - {key: super-admin.conf, path: super-admin.conf}
  - name: manifests
    configMap:
      name: {{ $name }}-manifests
{{- end -}}
