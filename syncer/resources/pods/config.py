"""The options of Pods and of their tokens."""

import re
from difflib import get_close_matches
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from syncer.api import Config, Duration, OptionType, Section, Settings, Subdomain
from syncer.resources.classes import is_reserved
from syncer.resources.namespace_values import NodeLabels, TaintPattern
from syncer.resources.pods.images import ImageMap, ImageNames
from syncer.resources.pods.security import SecurityLevel

#: Which Pods may be evicted from a node of the host.
Evictable = Literal["controlled", "all", "none"]

#: The fields of a Volume, and those of a projected volume's source
#: (Kubernetes 1.36, API reference, "Volume").
# fmt: off
_KNOWN = (
    "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "configMap", "csi",
    "downwardAPI", "emptyDir", "ephemeral", "fc", "flexVolume", "flocker", "gcePersistentDisk",
    "gitRepo", "glusterfs", "hostPath", "image", "iscsi", "nfs", "persistentVolumeClaim",
    "photonPersistentDisk", "portworxVolume", "projected", "quobyte", "rbd", "scaleIO", "secret",
    "storageos", "vsphereVolume", "projected.clusterTrustBundle", "projected.configMap",
    "projected.downwardAPI", "projected.podCertificate", "projected.secret",
    "projected.serviceAccountToken",
)
# fmt: on


def _volume_type(value: str) -> str:
    """Return the type; a later version of Kubernetes may have further ones."""
    if not re.fullmatch(r"(projected\.)?[a-z][A-Za-z0-9]*", value):
        why = "expected the field of a volume, such as nfs"
        raise ValueError(f"{why}, or of a source: projected.clusterTrustBundle")
    if value not in _KNOWN:
        by_lower = {known.lower(): known for known in _KNOWN}
        for near in get_close_matches(value.lower(), by_lower, 1, 0.8):
            raise ValueError(f"{value} is no type of volume. Did you mean {by_lower[near]}?")
    return value


def _priority_class(name: str) -> str:
    """Return the name of a class; ``system-`` ones come before what the host itself needs."""
    if is_reserved(name):
        why = "is a class for Pods without which the host doesn't work"
        raise ValueError(f"{name} {why}: name one that you have made for tenants")
    return name


_VolumeType = Annotated[str, OptionType("volume type"), AfterValidator(_volume_type)]
_PriorityClass = Annotated[Subdomain, AfterValidator(_priority_class)]


class Toleration(Section):
    """A toleration, as in a Pod."""

    key: str = ""
    """The key of the taint. Empty, with the operator Exists: all."""

    operator: Literal["Equal", "Exists"] = "Equal"
    """How the value is compared."""

    value: str = ""
    """The value of the taint, for the operator Equal."""

    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    """The effect of the taint. Empty: all."""

    @model_validator(mode="after")
    def _means_something(self) -> Self:
        """Refuse a toleration that an API server refuses (API reference, "Toleration")."""
        if self.operator == "Exists" and self.value:
            raise ValueError("a toleration with the operator Exists takes no value")
        if self.operator == "Equal" and not self.key:
            why = "a toleration without a key needs the operator Exists"
            raise ValueError(f"{why}, and tolerates all taints then")
        return self


class PodConfig(Config):
    """The options of Pods."""

    pod_security: SecurityLevel = "baseline"
    """The level of the Pod Security Standards that a Pod must keep to.

    A Pod that doesn't is not sent to the host, and an event gives the reason. The host may be
    stricter. With `hostUsers: false` a Pod may be root inside, as with a host of Kubernetes 1.35 or
    later. `privileged`: no check.
    """

    allow_volumes: tuple[_VolumeType, ...] = ()
    """Further volume types that Pods may have, such as `csi` or `nfs`, and further sources of
    projected volumes, such as `projected.clusterTrustBundle`.

    Without it, a Pod may have `configMap`, `downwardAPI`, `emptyDir`, `ephemeral`, `hostPath` (as
    far as podSecurity allows it), `image`, `persistentVolumeClaim`, `projected` and `secret`, with
    the sources `configMap`, `downwardAPI`, `secret` and `serviceAccountToken`. Others let the
    host's nodes connect to any server, or name objects of the host.
    """

    max_ephemeral_containers: int = Field(default=20, ge=0, le=200)
    """The number of ephemeral containers (`kubectl debug`) that a Pod may have. 0: none.

    They share the limits of their Pod, count for no quota, and can't be removed from it.
    """

    allow_node_name: bool = False
    """Whether a Pod may be created with a `nodeName`, past the host's scheduler and its taints."""

    scheduler: Literal["host", "virtual"] = "host"
    """Which cluster's scheduler chooses the node of a Pod.

    `virtual`: one that runs in the virtual cluster, by the labels, taints and resources that Nodes
    have there. A Pod goes to the host once it is bound to a Node that the host shows, whoever has
    bound it, and the host's scheduler puts its copy on that node or on none. It takes
    `sync.fromHost.nodes`, and `sync.fromHost.storageClasses` unless claims aren't synced.
    """

    enforced_taints: tuple[TaintPattern, ...] = ()
    """Keys of taints of the host's nodes that no Pod may tolerate unless `tolerations` below says
    so; `*` stands for any characters and `?` for a single one.

    A Pod's tolerations of such taints stay behind. With any key here, one of all taints becomes
    tolerations of those by which Kubernetes itself shows the state of a node.
    """

    node_selector: NodeLabels = Field(default={})
    """Labels that a Pod's node must have, besides those of its own `nodeSelector`, which can't
    override them.
    """

    tolerations: tuple[Toleration, ...] = ()
    """Tolerations that each Pod gets, besides its own."""

    runtime_class_name: Subdomain = ""
    """The RuntimeClass of the host that each Pod gets instead of its own. Empty: its own."""

    priority_class_name: _PriorityClass = ""
    """The PriorityClass of the host for Pods that name none, or one that stays behind. Empty: none,
    so the host's default one.

    The host computes the priority. A class that a Pod names is the Pod's there if
    `sync.fromHost.priorityClasses` shows it or `sync.toHost.priorityClasses` copies it.
    """

    images: ImageMap = Field(default={})
    """The images on the host, by those that Pods name, such as for a mirror of registries.

    A key is an image (`nginx:1.27`), a repository with all tags and digests (`nginx`), a registry
    or path that ends in `/` (`quay.io/`) with all that is below it, or `*` for all others; of
    several, the most precise counts. `nginx` is `docker.io/library/nginx` here, as to container
    runtimes. The tag and the digest stay unless the value has one. For a key that ends in `/`, and
    for `*`, the value ends in `/`, and the rest of the name follows it, of `*` with the registry:
    `{"*": registry.example.com/mirror/}` makes `nginx:1.27`
    `registry.example.com/mirror/docker.io/library/nginx:1.27`. An image that is below such a value
    stays. It holds for containers of all kinds and for volumes. A change concerns Pods that are
    created later, and images that change later.
    """

    max_termination_grace_period: Duration = Field(default=0.0, ge=0)
    """The longest `terminationGracePeriodSeconds` of a host pod; a longer one, also of a deletion,
    is cut to this there. 0: none is.

    Until a pod has ended it keeps its part of the quota, and a tenant may give it years. The
    virtual Pod stays as it is.
    """

    evictable: Evictable = "controlled"
    """The Pods that `kubectl drain` of a host node evicts without `--force`, and that the Cluster
    Autoscaler evicts to remove a host node.

    `controlled`: those that have a controller in the virtual cluster, as it makes others. `all`:
    also those without one, which are gone then. `none`: none. For `kubectl drain`, a change
    concerns Pods that are created later.
    """

    check_selectors: bool = False
    """Whether selectors of the host's own NetworkPolicies, PodDisruptionBudgets and workloads in
    the host namespace are checked at start, besides those of Services.

    A warning in the log names each that a tenant's Pod can be selected by, because it selects by no
    label below `vsyncer.dev/`. It needs the right to list these kinds there.
    """

    @cached_property
    def image_names(self) -> ImageNames:
        """The mapping of images."""
        return ImageNames(self.images)

    @property
    def is_bound_first(self) -> bool:
        """True if a Pod is bound in the virtual cluster before it has a copy."""
        return self.scheduler == "virtual"


def is_bound_first(settings: Settings) -> bool:
    """Return True if Pods are bound in the virtual cluster, by a scheduler of the tenant's."""
    pods = settings.section("pods", PodConfig)
    return pods is not None and pods.is_bound_first


class PodTokenConfig(Config):
    """Service account tokens of the virtual API server for Pods."""

    enabled: bool = True
    """Whether Pods get tokens of the virtual API server.

    Off: the host's kubelet gives them tokens of the host for the copy of their ServiceAccount, for
    services that trust the host's issuer.
    """

    name_node: bool = False
    """Whether tokens name the node of their Pod, as those of a kubelet do, for policies and audit
    logs that look at `authentication.kubernetes.io/node-name`.

    A Pod's tokens are there before the host chooses its node. With this they are requested once
    more when it is known, and the kubelet puts these into the containers within seconds of their
    start. It costs each Pod a request and a write.
    """
