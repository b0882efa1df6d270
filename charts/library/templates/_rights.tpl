{{/* Written by hack/generate, for _rbac.tpl: what a configuration's rights depend on. */}}

{{/* The defaults of the options, the name translators, and the kinds, as JSON. */}}
{{- define "syncer.options" -}}
{
"defaults": {
  "kubelet.cadvisor": false,
  "kubelet.enabled": false,
  "kubelet.metrics": true,
  "leaderElection.enabled": false,
  "leaderElection.name": "",
  "leaderElection.namespace": "",
  "names.translator": "single-namespace",
  "networking.apiServer.service": "",
  "sync.fake.nodes.enabled": true,
  "sync.fake.nodes.quotas": false,
  "sync.fake.persistentVolumes.enabled": true,
  "sync.fake.persistentVolumes.nodeAffinity": false,
  "sync.fromHost.configMaps.enabled": false,
  "sync.fromHost.configMaps.mappings.byName": {},
  "sync.fromHost.csiDrivers.enabled": false,
  "sync.fromHost.csiNodes.enabled": false,
  "sync.fromHost.csiStorageCapacities.enabled": false,
  "sync.fromHost.csiStorageCapacities.namespaces": [],
  "sync.fromHost.customResourceDefinitions.allow": ["*"],
  "sync.fromHost.customResourceDefinitions.enabled": false,
  "sync.fromHost.customResourceDefinitions.onRemoval": "retain",
  "sync.fromHost.events.enabled": true,
  "sync.fromHost.ingressClasses.enabled": false,
  "sync.fromHost.nodes.enabled": false,
  "sync.fromHost.nodes.quotas": false,
  "sync.fromHost.priorityClasses.enabled": false,
  "sync.fromHost.runtimeClasses.enabled": false,
  "sync.fromHost.secrets.enabled": false,
  "sync.fromHost.secrets.mappings.byName": {},
  "sync.fromHost.services.enabled": false,
  "sync.fromHost.services.mappings.byName": {},
  "sync.fromHost.storageClasses.enabled": false,
  "sync.fromHost.volumeAttributesClasses.enabled": false,
  "sync.fromHost.volumeSnapshotClasses.enabled": false,
  "sync.toHost.configMaps.enabled": true,
  "sync.toHost.configMaps.onHostDeletion": "recreate",
  "sync.toHost.customResourceDefinitions.enabled": false,
  "sync.toHost.customResourceDefinitions.names": [],
  "sync.toHost.customResourceDefinitions.onRemoval": "retain",
  "sync.toHost.endpointSlices.enabled": true,
  "sync.toHost.endpointSlices.onHostDeletion": "recreate",
  "sync.toHost.ingresses.enabled": false,
  "sync.toHost.ingresses.onHostDeletion": "recreate",
  "sync.toHost.namespaces.enabled": true,
  "sync.toHost.namespaces.limits": {},
  "sync.toHost.namespaces.onHostDeletion": "recreate",
  "sync.toHost.namespaces.quota": {},
  "sync.toHost.networkPolicies.enabled": false,
  "sync.toHost.networkPolicies.onHostDeletion": "recreate",
  "sync.toHost.persistentVolumeClaims.enabled": true,
  "sync.toHost.persistentVolumeClaims.onHostDeletion": "report",
  "sync.toHost.podDisruptionBudgets.enabled": false,
  "sync.toHost.podDisruptionBudgets.onHostDeletion": "recreate",
  "sync.toHost.podTokens.enabled": true,
  "sync.toHost.pods.checkSelectors": false,
  "sync.toHost.pods.enabled": true,
  "sync.toHost.pods.maxEphemeralContainers": 20,
  "sync.toHost.priorityClasses.enabled": false,
  "sync.toHost.priorityClasses.onHostDeletion": "recreate",
  "sync.toHost.publishedServices.enabled": false,
  "sync.toHost.publishedServices.namespaces": [],
  "sync.toHost.secrets.enabled": true,
  "sync.toHost.secrets.onHostDeletion": "recreate",
  "sync.toHost.serviceAccounts.enabled": true,
  "sync.toHost.serviceAccounts.onHostDeletion": "recreate",
  "sync.toHost.services.clusterIP": "auto",
  "sync.toHost.services.enabled": true,
  "sync.toHost.services.onHostDeletion": "recreate",
  "sync.toHost.volumeSnapshots.enabled": false,
  "sync.toHost.volumeSnapshots.onHostDeletion": "report"
},
"fixed": [
  "single-namespace",
  "vcluster-compat"
],
"translators": [
  "single-namespace",
  "vcluster-compat",
  "per-namespace",
  "unchanged"
],
"kinds": {
  "sync.toHost.configMaps": {"kind": "ConfigMap", "group": "", "plural": "configmaps", "namespaced": true, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.fromHost.csiDrivers": {"kind": "CSIDriver", "group": "storage.k8s.io", "plural": "csidrivers", "namespaced": false, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.fromHost.csiNodes": {"kind": "CSINode", "group": "storage.k8s.io", "plural": "csinodes", "namespaced": false, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.fromHost.csiStorageCapacities": {"kind": "CSIStorageCapacity", "group": "storage.k8s.io", "plural": "csistoragecapacities", "namespaced": true, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.toHost.endpointSlices": {"kind": "EndpointSlice", "group": "discovery.k8s.io", "plural": "endpointslices", "namespaced": true, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.fromHost.events": {"kind": "Event", "group": "", "plural": "events", "namespaced": true, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.fromHost.configMaps": {"kind": "ConfigMap", "group": "", "plural": "configmaps", "namespaced": true, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.fromHost.nodes": {"kind": "Node", "group": "", "plural": "nodes", "namespaced": false, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.fromHost.secrets": {"kind": "Secret", "group": "", "plural": "secrets", "namespaced": true, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.fromHost.services": {"kind": "Service", "group": "", "plural": "services", "namespaced": true, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.fromHost.ingressClasses": {"kind": "IngressClass", "group": "networking.k8s.io", "plural": "ingressclasses", "namespaced": false, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.toHost.ingresses": {"kind": "Ingress", "group": "networking.k8s.io", "plural": "ingresses", "namespaced": true, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": ["sync.toHost.secrets", "sync.toHost.services"]},
  "sync.toHost.namespaces": {"kind": "Namespace", "group": "", "plural": "namespaces", "namespaced": false, "syncs": true, "madeFor": "", "translators": ["per-namespace", "unchanged"], "authorityTakes": []},
  "sync.toHost.networkPolicies": {"kind": "NetworkPolicy", "group": "networking.k8s.io", "plural": "networkpolicies", "namespaced": true, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.toHost.persistentVolumeClaims": {"kind": "PersistentVolumeClaim", "group": "", "plural": "persistentvolumeclaims", "namespaced": true, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.fake.persistentVolumes": {"kind": "PersistentVolume", "group": "", "plural": "persistentvolumes", "namespaced": false, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.toHost.podTokens": {"kind": "Pod", "group": "", "plural": "pods", "namespaced": true, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.toHost.podDisruptionBudgets": {"kind": "PodDisruptionBudget", "group": "policy", "plural": "poddisruptionbudgets", "namespaced": true, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.toHost.pods": {"kind": "Pod", "group": "", "plural": "pods", "namespaced": true, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.fromHost.priorityClasses": {"kind": "PriorityClass", "group": "scheduling.k8s.io", "plural": "priorityclasses", "namespaced": false, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.fromHost.customResourceDefinitions": {"kind": "CustomResourceDefinition", "group": "apiextensions.k8s.io", "plural": "customresourcedefinitions", "namespaced": false, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.toHost.publishedServices": {"kind": "Service", "group": "", "plural": "services", "namespaced": true, "syncs": true, "madeFor": "published-services", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.fromHost.runtimeClasses": {"kind": "RuntimeClass", "group": "node.k8s.io", "plural": "runtimeclasses", "namespaced": false, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.toHost.secrets": {"kind": "Secret", "group": "", "plural": "secrets", "namespaced": true, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.toHost.serviceAccounts": {"kind": "ServiceAccount", "group": "", "plural": "serviceaccounts", "namespaced": true, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.toHost.services": {"kind": "Service", "group": "", "plural": "services", "namespaced": true, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.fromHost.storageClasses": {"kind": "StorageClass", "group": "storage.k8s.io", "plural": "storageclasses", "namespaced": false, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.toHost.customResourceDefinitions": {"kind": "CustomResourceDefinition", "group": "apiextensions.k8s.io", "plural": "customresourcedefinitions", "namespaced": false, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.toHost.priorityClasses": {"kind": "PriorityClass", "group": "scheduling.k8s.io", "plural": "priorityclasses", "namespaced": false, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.fromHost.volumeAttributesClasses": {"kind": "VolumeAttributesClass", "group": "storage.k8s.io", "plural": "volumeattributesclasses", "namespaced": false, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.fromHost.volumeSnapshotClasses": {"kind": "VolumeSnapshotClass", "group": "snapshot.storage.k8s.io", "plural": "volumesnapshotclasses", "namespaced": false, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []},
  "sync.toHost.volumeSnapshots": {"kind": "VolumeSnapshot", "group": "snapshot.storage.k8s.io", "plural": "volumesnapshots", "namespaced": true, "syncs": true, "madeFor": "", "translators": ["single-namespace", "vcluster-compat", "per-namespace", "unchanged"], "authorityTakes": []}
}
}
{{- end -}}

{{/* The rights that a configuration takes, as a list in YAML. Takes a dict of these options. */}}
{{- define "syncer.rights" -}}
- {"side": "host", "group": "", "resource": "namespaces", "namespaced": false, "names": [], "verbs": ["get"]}
- {"side": "host", "group": "", "resource": "resourcequotas", "namespaced": true, "names": [], "verbs": ["list"]}
- {"side": "virtual", "group": "", "resource": "configmaps", "namespaced": true, "names": [], "verbs": ["create", "get", "list", "watch"]}
- {"side": "virtual", "group": "", "resource": "events", "namespaced": true, "names": [], "verbs": ["create", "patch"]}
- {"side": "virtual", "group": "", "resource": "namespaces", "namespaced": false, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "", "resource": "persistentvolumeclaims", "namespaced": true, "names": [], "verbs": ["list", "watch"]}
- {"side": "virtual", "group": "networking.k8s.io", "resource": "ingresses", "namespaced": true, "names": [], "verbs": ["list", "watch"]}
- {"side": "virtual", "group": "networking.k8s.io", "resource": "networkpolicies", "namespaced": true, "names": [], "verbs": ["list", "watch"]}
- {"side": "virtual", "group": "policy", "resource": "poddisruptionbudgets", "namespaced": true, "names": [], "verbs": ["list", "watch"]}
- {"side": "virtual", "group": "resource.k8s.io", "resource": "resourceclaims", "namespaced": true, "names": [], "verbs": ["list", "watch"]}
- {"side": "virtual", "group": "snapshot.storage.k8s.io", "resource": "volumesnapshots", "namespaced": true, "names": [], "verbs": ["list", "watch"]}
{{- if and (get . "kubelet.cadvisor") (get . "kubelet.enabled") }}
- {"side": "host", "group": "", "resource": "nodes", "namespaced": false, "names": [], "verbs": ["get"]}
- {"side": "host", "group": "", "resource": "nodes/metrics", "namespaced": false, "names": [], "verbs": ["get"]}
{{- end }}
{{- if get . "kubelet.enabled" }}
- {"side": "host", "group": "", "resource": "pods", "namespaced": true, "names": [], "verbs": ["get"]}
- {"side": "host", "group": "", "resource": "pods/attach", "namespaced": true, "names": [], "verbs": ["create", "get"]}
- {"side": "host", "group": "", "resource": "pods/exec", "namespaced": true, "names": [], "verbs": ["create", "get"]}
- {"side": "host", "group": "", "resource": "pods/log", "namespaced": true, "names": [], "verbs": ["get"]}
- {"side": "host", "group": "", "resource": "pods/portforward", "namespaced": true, "names": [], "verbs": ["create", "get"]}
- {"side": "virtual", "group": "", "resource": "nodes/status", "namespaced": false, "names": [], "verbs": ["patch"]}
- {"side": "virtual", "group": "", "resource": "pods", "namespaced": true, "names": [], "verbs": ["get"]}
- {"side": "virtual", "group": "authentication.k8s.io", "resource": "tokenreviews", "namespaced": false, "names": [], "verbs": ["create"]}
- {"side": "virtual", "group": "authorization.k8s.io", "resource": "subjectaccessreviews", "namespaced": false, "names": [], "verbs": ["create"]}
- {"side": "virtual", "group": "certificates.k8s.io", "resource": "certificatesigningrequests", "namespaced": false, "names": [], "verbs": ["create", "delete", "get"]}
- {"side": "virtual", "group": "certificates.k8s.io", "resource": "certificatesigningrequests/approval", "namespaced": false, "names": [], "verbs": ["update"]}
- {"side": "virtual", "group": "certificates.k8s.io", "resource": "signers", "namespaced": false, "names": ["kubernetes.io/kubelet-serving"], "verbs": ["approve"]}
{{- end }}
{{- if and (get . "kubelet.enabled") (get . "kubelet.metrics") }}
- {"side": "host", "group": "metrics.k8s.io", "resource": "pods", "namespaced": true, "names": [], "verbs": ["list"]}
- {"side": "virtual", "group": "", "resource": "services", "namespaced": true, "names": [], "verbs": ["create"]}
- {"side": "virtual", "group": "", "resource": "services", "namespaced": true, "names": ["vsyncer-metrics"], "verbs": ["delete", "get", "patch"]}
- {"side": "virtual", "group": "apiregistration.k8s.io", "resource": "apiservices", "namespaced": false, "names": [], "verbs": ["create"]}
- {"side": "virtual", "group": "apiregistration.k8s.io", "resource": "apiservices", "namespaced": false, "names": ["v1beta1.metrics.k8s.io"], "verbs": ["delete", "get", "patch"]}
- {"side": "virtual", "group": "discovery.k8s.io", "resource": "endpointslices", "namespaced": true, "names": [], "verbs": ["create"]}
- {"side": "virtual", "group": "discovery.k8s.io", "resource": "endpointslices", "namespaced": true, "names": ["vsyncer-metrics"], "verbs": ["delete", "get", "patch"]}
{{- end }}
{{- if get . "leaderElection.enabled" }}
- {"side": "host", "group": "coordination.k8s.io", "resource": "leases", "namespaced": true, "names": [], "verbs": ["create", "get", "patch"]}
{{- end }}
{{- if and (not (has (get . "names.translator") (list "single-namespace" "vcluster-compat"))) (get . "sync.toHost.namespaces.enabled") }}
- {"side": "host", "group": "", "resource": "namespaces", "namespaced": false, "names": [], "verbs": ["create", "delete", "list", "patch", "watch"]}
{{- end }}
{{- if and (not (has (get . "names.translator") (list "single-namespace" "vcluster-compat"))) (get . "sync.toHost.namespaces.enabled") (get . "sync.toHost.namespaces.limits") }}
- {"side": "host", "group": "", "resource": "limitranges", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
{{- end }}
{{- if and (not (has (get . "names.translator") (list "single-namespace" "vcluster-compat"))) (get . "sync.toHost.namespaces.enabled") (not (has (get . "sync.toHost.namespaces.onHostDeletion") (list "recreate"))) }}
- {"side": "virtual", "group": "", "resource": "namespaces", "namespaced": false, "names": [], "verbs": ["patch"]}
{{- end }}
{{- if and (not (has (get . "names.translator") (list "single-namespace" "vcluster-compat"))) (get . "sync.toHost.namespaces.enabled") (not (has (get . "sync.toHost.namespaces.onHostDeletion") (list "recreate" "report"))) }}
- {"side": "virtual", "group": "", "resource": "namespaces", "namespaced": false, "names": [], "verbs": ["delete"]}
{{- end }}
{{- if and (not (has (get . "names.translator") (list "single-namespace" "vcluster-compat"))) (get . "sync.toHost.namespaces.enabled") (get . "sync.toHost.namespaces.quota") }}
- {"side": "host", "group": "", "resource": "resourcequotas", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "patch", "watch"]}
{{- end }}
{{- if and (not (has (get . "names.translator") (list "single-namespace" "vcluster-compat"))) (not (has (get . "sync.toHost.services.clusterIP") (list "own"))) (get . "sync.toHost.services.enabled") }}
- {"side": "host", "group": "networking.k8s.io", "resource": "servicecidrs", "namespaced": false, "names": [], "verbs": ["list"]}
{{- end }}
{{- if and (get . "sync.fake.nodes.enabled") (get . "sync.fake.nodes.quotas") (not (has (get . "sync.fromHost.nodes.enabled") (list true))) }}
- {"side": "host", "group": "", "resource": "resourcequotas", "namespaced": true, "names": [], "verbs": ["get", "watch"]}
{{- end }}
{{- if and (get . "sync.fake.nodes.enabled") (not (has (get . "sync.fromHost.nodes.enabled") (list true))) }}
- {"side": "host", "group": "", "resource": "pods", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "", "resource": "nodes", "namespaced": false, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
- {"side": "virtual", "group": "", "resource": "nodes/status", "namespaced": false, "names": [], "verbs": ["patch"]}
- {"side": "virtual", "group": "", "resource": "pods", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
{{- end }}
{{- if get . "sync.fake.persistentVolumes.enabled" }}
- {"side": "virtual", "group": "", "resource": "persistentvolumes", "namespaced": false, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
- {"side": "virtual", "group": "", "resource": "persistentvolumes/status", "namespaced": false, "names": [], "verbs": ["patch"]}
{{- end }}
{{- if and (get . "sync.fake.persistentVolumes.enabled") (get . "sync.fake.persistentVolumes.nodeAffinity") }}
- {"side": "host", "group": "", "resource": "persistentvolumes", "namespaced": false, "names": [], "verbs": ["get", "list", "watch"]}
{{- end }}
{{- if get . "sync.fromHost.configMaps.enabled" }}
- {"side": "virtual", "group": "", "resource": "configmaps", "namespaced": true, "names": [], "verbs": ["delete", "patch"]}
{{- end }}
{{- if get . "sync.fromHost.csiDrivers.enabled" }}
- {"side": "host", "group": "storage.k8s.io", "resource": "csidrivers", "namespaced": false, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "storage.k8s.io", "resource": "csidrivers", "namespaced": false, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
{{- end }}
{{- if get . "sync.fromHost.csiNodes.enabled" }}
- {"side": "host", "group": "storage.k8s.io", "resource": "csinodes", "namespaced": false, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "storage.k8s.io", "resource": "csinodes", "namespaced": false, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
{{- end }}
{{- if get . "sync.fromHost.csiStorageCapacities.enabled" }}
- {"side": "virtual", "group": "storage.k8s.io", "resource": "csistoragecapacities", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
{{- end }}
{{- if get . "sync.fromHost.customResourceDefinitions.enabled" }}
- {"side": "host", "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "namespaced": false, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "namespaced": false, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
{{- end }}
{{- if get . "sync.fromHost.events.enabled" }}
- {"side": "host", "group": "", "resource": "events", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "", "resource": "events", "namespaced": true, "names": [], "verbs": ["delete", "get", "list", "watch"]}
{{- end }}
{{- if get . "sync.fromHost.ingressClasses.enabled" }}
- {"side": "host", "group": "networking.k8s.io", "resource": "ingressclasses", "namespaced": false, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "networking.k8s.io", "resource": "ingressclasses", "namespaced": false, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
{{- end }}
{{- if get . "sync.fromHost.nodes.enabled" }}
- {"side": "host", "group": "", "resource": "nodes", "namespaced": false, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "host", "group": "", "resource": "pods", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "", "resource": "nodes", "namespaced": false, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
- {"side": "virtual", "group": "", "resource": "nodes/status", "namespaced": false, "names": [], "verbs": ["patch"]}
- {"side": "virtual", "group": "", "resource": "pods", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
{{- end }}
{{- if and (get . "sync.fromHost.nodes.enabled") (get . "sync.fromHost.nodes.quotas") }}
- {"side": "host", "group": "", "resource": "resourcequotas", "namespaced": true, "names": [], "verbs": ["get", "watch"]}
{{- end }}
{{- if get . "sync.fromHost.priorityClasses.enabled" }}
- {"side": "host", "group": "scheduling.k8s.io", "resource": "priorityclasses", "namespaced": false, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "scheduling.k8s.io", "resource": "priorityclasses", "namespaced": false, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
{{- end }}
{{- if get . "sync.fromHost.runtimeClasses.enabled" }}
- {"side": "host", "group": "node.k8s.io", "resource": "runtimeclasses", "namespaced": false, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "node.k8s.io", "resource": "runtimeclasses", "namespaced": false, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
{{- end }}
{{- if get . "sync.fromHost.secrets.enabled" }}
- {"side": "virtual", "group": "", "resource": "secrets", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
{{- end }}
{{- if get . "sync.fromHost.services.enabled" }}
- {"side": "virtual", "group": "", "resource": "services", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
- {"side": "virtual", "group": "discovery.k8s.io", "resource": "endpointslices", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
{{- end }}
{{- if get . "sync.fromHost.storageClasses.enabled" }}
- {"side": "host", "group": "storage.k8s.io", "resource": "storageclasses", "namespaced": false, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "storage.k8s.io", "resource": "storageclasses", "namespaced": false, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
{{- end }}
{{- if get . "sync.fromHost.volumeAttributesClasses.enabled" }}
- {"side": "host", "group": "storage.k8s.io", "resource": "volumeattributesclasses", "namespaced": false, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "storage.k8s.io", "resource": "volumeattributesclasses", "namespaced": false, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
{{- end }}
{{- if get . "sync.fromHost.volumeSnapshotClasses.enabled" }}
- {"side": "host", "group": "snapshot.storage.k8s.io", "resource": "volumesnapshotclasses", "namespaced": false, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "snapshot.storage.k8s.io", "resource": "volumesnapshotclasses", "namespaced": false, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
{{- end }}
{{- if get . "sync.toHost.configMaps.enabled" }}
- {"side": "host", "group": "", "resource": "configmaps", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
{{- end }}
{{- if and (get . "sync.toHost.configMaps.enabled") (not (has (get . "sync.toHost.configMaps.onHostDeletion") (list "recreate"))) }}
- {"side": "virtual", "group": "", "resource": "configmaps", "namespaced": true, "names": [], "verbs": ["patch"]}
{{- end }}
{{- if and (get . "sync.toHost.configMaps.enabled") (not (has (get . "sync.toHost.configMaps.onHostDeletion") (list "recreate" "report"))) }}
- {"side": "virtual", "group": "", "resource": "configmaps", "namespaced": true, "names": [], "verbs": ["delete"]}
{{- end }}
{{- if get . "sync.toHost.customResourceDefinitions.enabled" }}
- {"side": "host", "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "namespaced": false, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
- {"side": "virtual", "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "namespaced": false, "names": [], "verbs": ["get", "list", "watch"]}
{{- end }}
{{- if get . "sync.toHost.endpointSlices.enabled" }}
- {"side": "host", "group": "", "resource": "pods", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "host", "group": "discovery.k8s.io", "resource": "endpointslices", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
- {"side": "virtual", "group": "discovery.k8s.io", "resource": "endpointslices", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
{{- end }}
{{- if and (get . "sync.toHost.endpointSlices.enabled") (not (has (get . "sync.toHost.endpointSlices.onHostDeletion") (list "recreate"))) }}
- {"side": "virtual", "group": "discovery.k8s.io", "resource": "endpointslices", "namespaced": true, "names": [], "verbs": ["patch"]}
{{- end }}
{{- if and (get . "sync.toHost.endpointSlices.enabled") (not (has (get . "sync.toHost.endpointSlices.onHostDeletion") (list "recreate" "report"))) }}
- {"side": "host", "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "namespaced": false, "names": [], "verbs": ["get"]}
- {"side": "virtual", "group": "discovery.k8s.io", "resource": "endpointslices", "namespaced": true, "names": [], "verbs": ["delete"]}
{{- end }}
{{- if get . "sync.toHost.ingresses.enabled" }}
- {"side": "host", "group": "networking.k8s.io", "resource": "ingresses", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
- {"side": "virtual", "group": "networking.k8s.io", "resource": "ingresses", "namespaced": true, "names": [], "verbs": ["get"]}
- {"side": "virtual", "group": "networking.k8s.io", "resource": "ingresses/status", "namespaced": true, "names": [], "verbs": ["patch"]}
{{- end }}
{{- if and (get . "sync.toHost.ingresses.enabled") (not (has (get . "sync.toHost.ingresses.onHostDeletion") (list "recreate"))) }}
- {"side": "virtual", "group": "networking.k8s.io", "resource": "ingresses", "namespaced": true, "names": [], "verbs": ["patch"]}
{{- end }}
{{- if and (get . "sync.toHost.ingresses.enabled") (not (has (get . "sync.toHost.ingresses.onHostDeletion") (list "recreate" "report"))) }}
- {"side": "host", "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "namespaced": false, "names": [], "verbs": ["get"]}
- {"side": "virtual", "group": "networking.k8s.io", "resource": "ingresses", "namespaced": true, "names": [], "verbs": ["delete"]}
{{- end }}
{{- if get . "sync.toHost.networkPolicies.enabled" }}
- {"side": "host", "group": "networking.k8s.io", "resource": "networkpolicies", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
- {"side": "virtual", "group": "networking.k8s.io", "resource": "networkpolicies", "namespaced": true, "names": [], "verbs": ["get"]}
{{- end }}
{{- if and (get . "sync.toHost.networkPolicies.enabled") (not (has (get . "sync.toHost.networkPolicies.onHostDeletion") (list "recreate"))) }}
- {"side": "virtual", "group": "networking.k8s.io", "resource": "networkpolicies", "namespaced": true, "names": [], "verbs": ["patch"]}
{{- end }}
{{- if and (get . "sync.toHost.networkPolicies.enabled") (not (has (get . "sync.toHost.networkPolicies.onHostDeletion") (list "recreate" "report"))) }}
- {"side": "host", "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "namespaced": false, "names": [], "verbs": ["get"]}
- {"side": "virtual", "group": "networking.k8s.io", "resource": "networkpolicies", "namespaced": true, "names": [], "verbs": ["delete"]}
{{- end }}
{{- if get . "sync.toHost.persistentVolumeClaims.enabled" }}
- {"side": "host", "group": "", "resource": "persistentvolumeclaims", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
- {"side": "virtual", "group": "", "resource": "persistentvolumeclaims", "namespaced": true, "names": [], "verbs": ["get", "patch"]}
- {"side": "virtual", "group": "", "resource": "persistentvolumeclaims/status", "namespaced": true, "names": [], "verbs": ["patch"]}
{{- end }}
{{- if and (get . "sync.toHost.persistentVolumeClaims.enabled") (not (has (get . "sync.toHost.persistentVolumeClaims.onHostDeletion") (list "recreate" "report"))) }}
- {"side": "virtual", "group": "", "resource": "persistentvolumeclaims", "namespaced": true, "names": [], "verbs": ["delete"]}
{{- end }}
{{- if get . "sync.toHost.podDisruptionBudgets.enabled" }}
- {"side": "host", "group": "policy", "resource": "poddisruptionbudgets", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
- {"side": "virtual", "group": "policy", "resource": "poddisruptionbudgets", "namespaced": true, "names": [], "verbs": ["get"]}
{{- end }}
{{- if and (get . "sync.toHost.podDisruptionBudgets.enabled") (not (has (get . "sync.toHost.podDisruptionBudgets.onHostDeletion") (list "recreate"))) }}
- {"side": "virtual", "group": "policy", "resource": "poddisruptionbudgets", "namespaced": true, "names": [], "verbs": ["patch"]}
{{- end }}
{{- if and (get . "sync.toHost.podDisruptionBudgets.enabled") (not (has (get . "sync.toHost.podDisruptionBudgets.onHostDeletion") (list "recreate" "report"))) }}
- {"side": "host", "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "namespaced": false, "names": [], "verbs": ["get"]}
- {"side": "virtual", "group": "policy", "resource": "poddisruptionbudgets", "namespaced": true, "names": [], "verbs": ["delete"]}
{{- end }}
{{- if get . "sync.toHost.podTokens.enabled" }}
- {"side": "host", "group": "", "resource": "pods", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "host", "group": "", "resource": "secrets", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
- {"side": "virtual", "group": "", "resource": "nodes", "namespaced": false, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "", "resource": "pods", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "", "resource": "serviceaccounts", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "", "resource": "serviceaccounts/token", "namespaced": true, "names": [], "verbs": ["create"]}
{{- end }}
{{- if and (get . "sync.toHost.pods.checkSelectors") (get . "sync.toHost.pods.enabled") }}
- {"side": "host", "group": "", "resource": "replicationcontrollers", "namespaced": true, "names": [], "verbs": ["list"]}
- {"side": "host", "group": "apps", "resource": "daemonsets", "namespaced": true, "names": [], "verbs": ["list"]}
- {"side": "host", "group": "apps", "resource": "deployments", "namespaced": true, "names": [], "verbs": ["list"]}
- {"side": "host", "group": "apps", "resource": "replicasets", "namespaced": true, "names": [], "verbs": ["list"]}
- {"side": "host", "group": "apps", "resource": "statefulsets", "namespaced": true, "names": [], "verbs": ["list"]}
- {"side": "host", "group": "batch", "resource": "jobs", "namespaced": true, "names": [], "verbs": ["list"]}
- {"side": "host", "group": "networking.k8s.io", "resource": "networkpolicies", "namespaced": true, "names": [], "verbs": ["list"]}
- {"side": "host", "group": "policy", "resource": "poddisruptionbudgets", "namespaced": true, "names": [], "verbs": ["list"]}
{{- end }}
{{- if get . "sync.toHost.pods.enabled" }}
- {"side": "host", "group": "", "resource": "pods", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
- {"side": "host", "group": "", "resource": "pods/resize", "namespaced": true, "names": [], "verbs": ["patch"]}
- {"side": "host", "group": "", "resource": "pods/status", "namespaced": true, "names": [], "verbs": ["patch"]}
- {"side": "host", "group": "", "resource": "secrets", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "host", "group": "", "resource": "serviceaccounts", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "host", "group": "", "resource": "services", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "", "resource": "nodes", "namespaced": false, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "", "resource": "pods", "namespaced": true, "names": [], "verbs": ["delete", "get", "list", "watch"]}
- {"side": "virtual", "group": "", "resource": "pods/binding", "namespaced": true, "names": [], "verbs": ["create"]}
- {"side": "virtual", "group": "", "resource": "pods/status", "namespaced": true, "names": [], "verbs": ["patch"]}
- {"side": "virtual", "group": "", "resource": "services", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
{{- end }}
{{- if and (get . "sync.toHost.pods.enabled") (get . "sync.toHost.pods.maxEphemeralContainers") }}
- {"side": "host", "group": "", "resource": "pods/ephemeralcontainers", "namespaced": true, "names": [], "verbs": ["patch"]}
{{- end }}
{{- if get . "sync.toHost.priorityClasses.enabled" }}
- {"side": "host", "group": "scheduling.k8s.io", "resource": "priorityclasses", "namespaced": false, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
- {"side": "virtual", "group": "scheduling.k8s.io", "resource": "priorityclasses", "namespaced": false, "names": [], "verbs": ["get", "list", "watch"]}
{{- end }}
{{- if and (get . "sync.toHost.priorityClasses.enabled") (not (has (get . "sync.toHost.priorityClasses.onHostDeletion") (list "recreate"))) }}
- {"side": "virtual", "group": "scheduling.k8s.io", "resource": "priorityclasses", "namespaced": false, "names": [], "verbs": ["patch"]}
{{- end }}
{{- if and (get . "sync.toHost.priorityClasses.enabled") (not (has (get . "sync.toHost.priorityClasses.onHostDeletion") (list "recreate" "report"))) }}
- {"side": "host", "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "namespaced": false, "names": [], "verbs": ["get"]}
- {"side": "virtual", "group": "scheduling.k8s.io", "resource": "priorityclasses", "namespaced": false, "names": [], "verbs": ["delete"]}
{{- end }}
{{- if get . "sync.toHost.publishedServices.enabled" }}
- {"side": "host", "group": "", "resource": "services", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "host", "group": "discovery.k8s.io", "resource": "endpointslices", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "virtual", "group": "", "resource": "services", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
{{- end }}
{{- if get . "sync.toHost.secrets.enabled" }}
- {"side": "host", "group": "", "resource": "secrets", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
- {"side": "virtual", "group": "", "resource": "secrets", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
{{- end }}
{{- if and (get . "sync.toHost.secrets.enabled") (not (has (get . "sync.toHost.secrets.onHostDeletion") (list "recreate"))) }}
- {"side": "virtual", "group": "", "resource": "secrets", "namespaced": true, "names": [], "verbs": ["patch"]}
{{- end }}
{{- if and (get . "sync.toHost.secrets.enabled") (not (has (get . "sync.toHost.secrets.onHostDeletion") (list "recreate" "report"))) }}
- {"side": "virtual", "group": "", "resource": "secrets", "namespaced": true, "names": [], "verbs": ["delete"]}
{{- end }}
{{- if get . "sync.toHost.serviceAccounts.enabled" }}
- {"side": "host", "group": "", "resource": "serviceaccounts", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
- {"side": "virtual", "group": "", "resource": "serviceaccounts", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
{{- end }}
{{- if and (get . "sync.toHost.serviceAccounts.enabled") (not (has (get . "sync.toHost.serviceAccounts.onHostDeletion") (list "recreate"))) }}
- {"side": "virtual", "group": "", "resource": "serviceaccounts", "namespaced": true, "names": [], "verbs": ["patch"]}
{{- end }}
{{- if and (get . "sync.toHost.serviceAccounts.enabled") (not (has (get . "sync.toHost.serviceAccounts.onHostDeletion") (list "recreate" "report"))) }}
- {"side": "virtual", "group": "", "resource": "serviceaccounts", "namespaced": true, "names": [], "verbs": ["delete"]}
{{- end }}
{{- if and (not (has (get . "sync.toHost.services.clusterIP") (list "own"))) (get . "sync.toHost.services.enabled") }}
- {"side": "virtual", "group": "", "resource": "services", "namespaced": true, "names": [], "verbs": ["create"]}
- {"side": "virtual", "group": "networking.k8s.io", "resource": "servicecidrs", "namespaced": false, "names": [], "verbs": ["list"]}
{{- end }}
{{- if get . "sync.toHost.services.enabled" }}
- {"side": "host", "group": "", "resource": "services", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
- {"side": "virtual", "group": "", "resource": "services", "namespaced": true, "names": [], "verbs": ["get", "list", "patch", "watch"]}
- {"side": "virtual", "group": "", "resource": "services/status", "namespaced": true, "names": [], "verbs": ["patch"]}
{{- end }}
{{- if and (get . "sync.toHost.services.enabled") (not (has (get . "sync.toHost.services.onHostDeletion") (list "recreate" "report"))) }}
- {"side": "virtual", "group": "", "resource": "services", "namespaced": true, "names": [], "verbs": ["delete"]}
{{- end }}
{{- if get . "sync.toHost.volumeSnapshots.enabled" }}
- {"side": "host", "group": "", "resource": "persistentvolumeclaims", "namespaced": true, "names": [], "verbs": ["get", "list", "watch"]}
- {"side": "host", "group": "snapshot.storage.k8s.io", "resource": "volumesnapshots", "namespaced": true, "names": [], "verbs": ["create", "delete", "get", "list", "patch", "watch"]}
- {"side": "virtual", "group": "snapshot.storage.k8s.io", "resource": "volumesnapshots", "namespaced": true, "names": [], "verbs": ["get"]}
- {"side": "virtual", "group": "snapshot.storage.k8s.io", "resource": "volumesnapshots/status", "namespaced": true, "names": [], "verbs": ["patch"]}
{{- end }}
{{- if and (get . "sync.toHost.volumeSnapshots.enabled") (not (has (get . "sync.toHost.volumeSnapshots.onHostDeletion") (list "recreate"))) }}
- {"side": "virtual", "group": "snapshot.storage.k8s.io", "resource": "volumesnapshots", "namespaced": true, "names": [], "verbs": ["patch"]}
{{- end }}
{{- if and (get . "sync.toHost.volumeSnapshots.enabled") (not (has (get . "sync.toHost.volumeSnapshots.onHostDeletion") (list "recreate" "report"))) }}
- {"side": "host", "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "namespaced": false, "names": [], "verbs": ["get"]}
- {"side": "virtual", "group": "snapshot.storage.k8s.io", "resource": "volumesnapshots", "namespaced": true, "names": [], "verbs": ["delete"]}
{{- end }}
{{- end -}}
