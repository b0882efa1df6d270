"""The Kubernetes resources that the built-in syncers use."""

from syncer.api import Resource

CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps")
SECRETS = Resource("v1", "Secret", "secrets")
SERVICES = Resource("v1", "Service", "services")
SERVICE_ACCOUNTS = Resource("v1", "ServiceAccount", "serviceaccounts")
PODS = Resource("v1", "Pod", "pods")
PERSISTENT_VOLUME_CLAIMS = Resource("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
PERSISTENT_VOLUMES = Resource("v1", "PersistentVolume", "persistentvolumes", namespaced=False)
EVENTS = Resource("v1", "Event", "events")
NODES = Resource("v1", "Node", "nodes", namespaced=False)
NAMESPACES = Resource("v1", "Namespace", "namespaces", namespaced=False)
RESOURCE_QUOTAS = Resource("v1", "ResourceQuota", "resourcequotas")
LIMIT_RANGES = Resource("v1", "LimitRange", "limitranges")
ENDPOINTS = Resource("v1", "Endpoints", "endpoints")
ENDPOINT_SLICES = Resource("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
INGRESSES = Resource("networking.k8s.io/v1", "Ingress", "ingresses")
NETWORK_POLICIES = Resource("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
DISRUPTION_BUDGETS = Resource("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
RESOURCE_CLAIMS = Resource("resource.k8s.io/v1", "ResourceClaim", "resourceclaims")
RESOURCE_CLAIM_TEMPLATES = Resource(
    "resource.k8s.io/v1",
    "ResourceClaimTemplate",
    "resourceclaimtemplates",
)
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
)
TOKEN_REVIEWS = Resource(
    "authentication.k8s.io/v1",
    "TokenReview",
    "tokenreviews",
    namespaced=False,
)
ACCESS_REVIEWS = Resource(
    "authorization.k8s.io/v1",
    "SubjectAccessReview",
    "subjectaccessreviews",
    namespaced=False,
)
#: What a user may do, answered to that user.
SELF_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io/v1",
    "SelfSubjectAccessReview",
    "selfsubjectaccessreviews",
    namespaced=False,
)
#: Who a user is, answered to that user.
SELF_REVIEWS = Resource(
    "authentication.k8s.io/v1",
    "SelfSubjectReview",
    "selfsubjectreviews",
    namespaced=False,
)
CERTIFICATE_REQUESTS = Resource(
    "certificates.k8s.io/v1",
    "CertificateSigningRequest",
    "certificatesigningrequests",
    namespaced=False,
)
POD_METRICS = Resource("metrics.k8s.io/v1beta1", "PodMetrics", "pods")
API_SERVICES = Resource("apiregistration.k8s.io/v1", "APIService", "apiservices", namespaced=False)
INGRESS_CLASSES = Resource(
    "networking.k8s.io/v1",
    "IngressClass",
    "ingressclasses",
    namespaced=False,
)
STORAGE_CLASSES = Resource("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
CSI_DRIVERS = Resource("storage.k8s.io/v1", "CSIDriver", "csidrivers", namespaced=False)
CSI_NODES = Resource("storage.k8s.io/v1", "CSINode", "csinodes", namespaced=False)
CSI_CAPACITIES = Resource("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities")
VOLUME_ATTRIBUTES_CLASSES = Resource(
    "storage.k8s.io/v1",
    "VolumeAttributesClass",
    "volumeattributesclasses",
    namespaced=False,
)
#: Those of a CRD, like all snapshots: https://github.com/kubernetes-csi/external-snapshotter.
VOLUME_SNAPSHOTS = Resource("snapshot.storage.k8s.io/v1", "VolumeSnapshot", "volumesnapshots")
VOLUME_SNAPSHOT_CLASSES = Resource(
    "snapshot.storage.k8s.io/v1",
    "VolumeSnapshotClass",
    "volumesnapshotclasses",
    namespaced=False,
)
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io/v1",
    "PriorityClass",
    "priorityclasses",
    namespaced=False,
)
RUNTIME_CLASSES = Resource("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", namespaced=False)
#: No object, but a name in RBAC for those who may sign and approve.
SIGNERS = Resource("certificates.k8s.io/v1", "Signer", "signers", namespaced=False)

#: Kinds that parts of the host enforce or provide: network and volume plugins, ingress controllers,
#: drains of nodes. In a virtual cluster alone they do nothing, unless the tenant has such a part
#: there.
ENFORCED_ON_HOST = (
    NETWORK_POLICIES,
    DISRUPTION_BUDGETS,
    PERSISTENT_VOLUME_CLAIMS,
    VOLUME_SNAPSHOTS,
    INGRESSES,
    RESOURCE_CLAIMS,
)

#: All of them.
KNOWN = tuple(value for value in list(globals().values()) if isinstance(value, Resource))
