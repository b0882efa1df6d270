"""A table of the lists and maps of the built-in kinds that are more than plain JSON, for apply and strategic merge.

A line without indentation opens a type; an indented line is a field of it, then its rules, then (after `:`) its type.

- `map KEY[,KEY]`: for apply a list of objects that these keys distinguish (`x-kubernetes-list-type: map`);
  `KEY=VALUE` gives a key's default.
- `set`: for apply a list of scalars, each owned by itself.
- `atomic`: for apply one value, owned as a whole.
- `merge KEY`: for a strategic merge a list merged by that key; `merge` alone is a list of scalars.
- The type `Whole`: each item is owned as a whole.
- `retain`: the field takes `$retainKeys`; `replace`: a strategic merge replaces it as a whole.

What isn't listed is the rule: maps are owned entry by entry, lists are atomic, and a strategic merge replaces lists.
Source: the `listType`, `structType`, `mapType` and `patchStrategy` markers of k8s.io/api 0.36.
"""

TABLE = """
ObjectMeta
  finalizers set merge
  ownerReferences map uid merge uid : Whole
Binding
  target atomic
ClusterRoleBinding
  roleRef atomic
ComponentStatus
  conditions map type merge type
ControllerRevision
  data atomic
CronJob
  spec : CronJobSpec
CronJobSpec
  jobTemplate : JobTemplateSpec
CSIDriver
  spec : CSIDriverSpec
CSIDriverSpec
  volumeLifecycleModes set
CSINode
  spec : CSINodeSpec
CSINodeSpec
  drivers map name merge name
CSIStorageCapacity
  nodeTopology atomic
CustomResourceDefinition
  status : Conditions
Conditions
  conditions map type merge type
DaemonSet
  spec : Workload
  status : Conditions
Deployment
  spec : Workload
  status : Conditions
Workload
  selector atomic
  strategy retain
  template : PodTemplateSpec
Event
  involvedObject atomic
  regarding atomic
  related atomic
HorizontalPodAutoscaler
  status : Conditions
Ingress
  spec : IngressSpec
IngressSpec
  defaultBackend : IngressBackend
IngressBackend
  resource atomic
  service : IngressServiceBackend
IngressServiceBackend
  port atomic
Job
  spec : Workload
  status : JobStatus
JobStatus
  conditions merge type
  uncountedTerminatedPods : UncountedTerminatedPods
JobTemplateSpec
  metadata : ObjectMeta
  spec : Workload
UncountedTerminatedPods
  failed set
  succeeded set
MutatingWebhookConfiguration
  webhooks map name merge name : Webhook
ValidatingWebhookConfiguration
  webhooks map name merge name : Webhook
Webhook
  matchConditions map name merge name
  namespaceSelector atomic
  objectSelector atomic
Namespace
  status : Conditions
NetworkPolicy
  spec : NetworkPolicySpec
NetworkPolicySpec
  podSelector atomic
Node
  spec : NodeSpec
  status : NodeStatus
NodeSpec
  podCIDRs set merge
NodeStatus
  addresses map type merge type
  conditions map type merge type
PersistentVolume
  spec : PersistentVolumeSpec
PersistentVolumeSpec
  cephfs : SecretHolder
  cinder : SecretHolder
  claimRef atomic
  csi : PersistentCSI
  flexVolume : SecretHolder
  iscsi : SecretHolder
  nodeAffinity : VolumeNodeAffinity
  rbd : SecretHolder
  scaleIO : SecretHolder
  storageos : SecretHolder
PersistentCSI
  controllerExpandSecretRef atomic
  controllerPublishSecretRef atomic
  nodeExpandSecretRef atomic
  nodePublishSecretRef atomic
  nodeStageSecretRef atomic
SecretHolder
  secretRef atomic
VolumeNodeAffinity
  required atomic
PersistentVolumeClaim
  spec : PersistentVolumeClaimSpec
  status : Conditions
PersistentVolumeClaimSpec
  dataSource atomic
  selector atomic
Pod
  spec : PodSpec
  status : PodStatus
PodDisruptionBudget
  spec : PodDisruptionBudgetSpec
  status : Conditions
PodDisruptionBudgetSpec
  selector atomic replace
PodTemplate
  template : PodTemplateSpec
PodTemplateSpec
  metadata : ObjectMeta
  spec : PodSpec
PodSpec
  affinity : Affinity
  containers map name merge name : Container
  ephemeralContainers map name merge name : Container
  hostAliases map ip merge ip
  imagePullSecrets map name merge name : Whole
  initContainers map name merge name : Container
  nodeSelector atomic
  resourceClaims map name merge name retain
  resources : ResourceRequirements
  schedulingGates map name merge name
  topologySpreadConstraints map topologyKey,whenUnsatisfiable merge topologyKey : Spread
  volumes map name merge name retain : Volume
Affinity
  nodeAffinity : NodeAffinity
NodeAffinity
  requiredDuringSchedulingIgnoredDuringExecution atomic
Container
  env map name merge name : EnvVar
  ports map containerPort,protocol=TCP merge containerPort
  resources : ResourceRequirements
  volumeDevices map devicePath merge devicePath
  volumeMounts map mountPath merge mountPath
EnvVar
  valueFrom : EnvVarSource
EnvVarSource
  configMapKeyRef atomic
  fieldRef atomic
  fileKeyRef atomic
  resourceFieldRef atomic
  secretKeyRef atomic
ResourceRequirements
  claims map name
Spread
  labelSelector atomic
Volume
  cephfs : SecretHolder
  cinder : SecretHolder
  csi : CSIVolume
  ephemeral : EphemeralVolume
  flexVolume : SecretHolder
  iscsi : SecretHolder
  rbd : SecretHolder
  scaleIO : SecretHolder
  storageos : SecretHolder
CSIVolume
  nodePublishSecretRef atomic
EphemeralVolume
  volumeClaimTemplate : ClaimTemplate
ClaimTemplate
  metadata : ObjectMeta
  spec : PersistentVolumeClaimSpec
PodStatus
  conditions map type merge type
  hostIPs merge ip
  podIPs map ip merge ip
  resourceClaimStatuses map name merge name retain
  resources : ResourceRequirements
ReplicaSet
  spec : Workload
  status : Conditions
ReplicationController
  spec : Workload
  status : Conditions
ResourceQuota
  spec : ResourceQuotaSpec
ResourceQuotaSpec
  scopeSelector atomic
RoleBinding
  roleRef atomic
RuntimeClass
  scheduling : RuntimeScheduling
RuntimeScheduling
  nodeSelector atomic
Service
  spec : ServiceSpec
  status : Conditions
ServiceSpec
  ports map port,protocol=TCP merge port
  selector atomic
ServiceAccount
  secrets map name merge name : Whole
ServiceCIDR
  status : Conditions
StatefulSet
  spec : Workload
  status : Conditions
VolumeAttachment
  spec : VolumeAttachmentSpec
VolumeAttachmentSpec
  source : VolumeAttachmentSource
VolumeAttachmentSource
  inlineVolumeSpec : PersistentVolumeSpec
"""

#: What the Go types always carry although a client left it out, so that it is there before the first write: fields that
#: are neither pointers nor `omitempty`. `-` after a path is a null, `=` an empty text, nothing an empty struct.
ALWAYS = """
ClusterRole rules-
ClusterRoleBinding roleRef
CronJob spec spec.jobTemplate spec.jobTemplate.metadata spec.jobTemplate.spec spec.jobTemplate.spec.template
CronJob spec.jobTemplate.spec.template.metadata spec.jobTemplate.spec.template.spec
CronJob spec.jobTemplate.spec.template.spec.containers- status
DaemonSet spec spec.template spec.template.metadata spec.template.spec spec.template.spec.containers-
DaemonSet spec.updateStrategy status
EndpointSlice endpoints- ports-
Event involvedObject source firstTimestamp- lastTimestamp- eventTime- reportingComponent= reportingInstance=
Deployment spec spec.template spec.template.metadata spec.template.spec spec.template.spec.containers-
Deployment spec.strategy status
HorizontalPodAutoscaler spec spec.scaleTargetRef status
Ingress spec status status.loadBalancer
IngressClass spec
Job spec spec.template spec.template.metadata spec.template.spec spec.template.spec.containers- status
Lease spec
LimitRange spec
Namespace spec status
NetworkPolicy spec spec.podSelector
Node spec status status.daemonEndpoints status.daemonEndpoints.kubeletEndpoint status.nodeInfo
PersistentVolume spec status
PersistentVolumeClaim spec spec.resources status
Pod spec spec.containers- status
PodDisruptionBudget spec status
PodTemplate template template.metadata template.spec template.spec.containers-
ReplicaSet spec spec.template spec.template.metadata spec.template.spec spec.template.spec.containers- status
ReplicationController spec status
ResourceQuota spec status
Role rules-
RoleBinding roleRef
Service spec status status.loadBalancer
StatefulSet spec spec.template spec.template.metadata spec.template.spec spec.template.spec.containers-
StatefulSet spec.updateStrategy status
VolumeAttachment spec spec.source status
"""

#: The API groups whose kinds the table speaks of; a custom resource may bear the same kind in another group.
GROUPS = frozenset(
    {
        *("admissionregistration.k8s.io", "apiextensions.k8s.io", "apps", "autoscaling", "batch", "policy"),
        *("coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "networking.k8s.io", "node.k8s.io"),
        *("rbac.authorization.k8s.io", "scheduling.k8s.io", "storage.k8s.io"),
    }
)
