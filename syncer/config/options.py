"""The sections of the configuration, each option with its default and its help."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from syncer.api import Marks, Networking, Patrol, Pauses, Section
from syncer.api.dns_names import (
    PLURAL_GROUP,
    ClusterName,
    CustomName,
    HostNamespace,
    Label,
    Subdomain,
    not_empty,
)
from syncer.api.durations import Duration
from syncer.api.marks import CLUSTER_SECRET
from syncer.config.values import ListenAddress, LoopbackAddress, SocketPath
from syncer.lease_times import LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD
from syncer.resources.custom import CustomConfig

_BESIDE = "is the short form for a single virtual cluster, and virtualClusters is given, too."


class ConnectionSection(Section):
    """How to reach an API server."""

    kubeconfig: str = ""
    """Path of a kubeconfig file.

    Empty: kubectl's default (`KUBECONFIG`, `~/.kube/config`), or the service account in a pod. A
    virtual cluster needs a file or a context.
    """

    context: str = ""
    """The context in the kubeconfig. Empty: its current context."""

    server: str = Field(default="", pattern=r"^(https?://[^\s/]+(/\S*)?)?$")
    """URL of the API server, where the daemon reaches it by another address than the kubeconfig's.

    Its certificate is verified for this address, unless the kubeconfig has a `tls-server-name`.
    """

    qps: float = Field(default=0, ge=0)
    """Sustained rate of requests to this API server, per second. 0: no limit."""

    burst: int = Field(default=0, ge=0)
    """Requests that may exceed the rate at once. 0: as many as `qps`."""

    @property
    def may_run_programs(self) -> bool:
        """True if a kubeconfig may say which program returns the credentials."""
        return True

    @property
    def waits_for_kubeconfig(self) -> bool:
        """True if a missing kubeconfig file is awaited."""
        return False


class VirtualConnectionSection(ConnectionSection):
    """How to reach the API server of a virtual cluster."""

    allow_exec: bool = True
    """Whether the kubeconfig may run a program for its credentials (`exec`, `auth-provider`).

    If not, a kubeconfig that does is refused.
    """

    wait_for_kubeconfig: bool = False
    """Whether the daemon waits while the kubeconfig file is missing, for example until its Secret
    has been created. If not, a daemon with a single virtual cluster ends.
    """

    @property
    def may_run_programs(self) -> bool:
        """True if a kubeconfig may say which program returns the credentials."""
        return self.allow_exec

    @property
    def waits_for_kubeconfig(self) -> bool:
        """True if a missing kubeconfig file is awaited."""
        return self.wait_for_kubeconfig


def beside_the_list(instead: str) -> BeforeValidator:
    """Return a validator that refuses any value: the option is in short form, beside a list.

    ``instead`` is what to write.
    """

    def refuse(value: Any) -> Any:
        raise ValueError(f"{_BESIDE} Write {instead}.")

    return BeforeValidator(refuse)


class VirtualSide(VirtualConnectionSection):
    """Short form for a single virtual cluster: how to reach its API server, which tenants use."""

    @model_validator(mode="after")
    def _is_empty(self) -> Self:
        if self.model_fields_set:
            raise ValueError(f"{_BESIDE} Write its options there, in virtualClusters[0].")
        return self


class HostSide(ConnectionSection):
    """How to reach the API server of the host cluster, which runs the pods and has the copies."""

    short_namespace: Annotated[
        Label,
        beside_the_list("it there, as virtualClusters[0].hostNamespace"),
    ] = Field(default="", alias="namespace", exclude=True)
    """Short form for a single virtual cluster: its `hostNamespace`."""

    built_in_namespace: bool = False
    """Whether the copies may be in a namespace that every cluster has (`default`, `kube-system`,
    `kube-public`, `kube-node-lease`), among the objects of the host itself.
    """


class Names(Section):
    """How names are translated between the sides."""

    translator: str = "single-namespace"
    """The name translator: `single-namespace`, `per-namespace`, `unchanged`, `vcluster-compat`, or
    one of a plugin.

    Don't change it after objects were synced: they would be created again under other names.
    """

    trust_tenant: bool = False
    """Whether the tenant may have everything in the host namespaces of the same names as theirs.

    `unchanged` starts only with this: a tenant who creates a namespace and a name there stands
    where the host's own objects of these names do.
    """

    namespaces: tuple[HostNamespace, ...] = ()
    """Host namespaces that exist already and that copies may be put in, besides `hostNamespace` and
    those that the daemon creates.

    `unchanged` puts copies into host namespaces of the tenants' names. No copy goes into a
    namespace of the host itself (`default`, `kube-…`, or any without our mark) unless it is listed
    here.
    """


class MarksSection(Section):
    """The labels and annotations that mark copies."""

    prefix: Subdomain = Field(default=Marks().prefix, min_length=1)
    """The prefix of their keys.

    Don't change it after objects were synced: these would no longer be recognised as copies.
    """


#: Most shards of a fleet: each costs its leader a write of a Lease in each retry period.
MOST_SHARDS = 256


class LeaderElection(Section):
    """Leader election: one of several daemons works, and the others stand by."""

    enabled: bool = False
    """Whether to elect a leader. Required if a second daemon may run for the same virtual cluster.
    """

    namespace: Label = ""
    """Namespace of the Lease on the host. Empty: the host namespace of the virtual cluster.

    Required with several virtual clusters.
    """

    name: Subdomain = ""
    """Name of the Lease. Empty: `vsyncer-<cluster>`. Required with several virtual clusters."""

    shards: int = Field(default=1, ge=1, le=MOST_SHARDS)
    """Number of shards of the fleet. 1: one daemon leads all virtual clusters. More: the replicas
    share them.

    A hash of its name puts a virtual cluster in a shard. Each shard has a Lease, `<name>-<number>`.
    Stop all replicas before you change this number.
    """

    lease_duration: Duration = LEASE_DURATION
    """Time after which another daemon may take over from a silent leader."""

    renew_deadline: Duration = RENEW_DEADLINE
    """Time for which a leader tries to renew its Lease before it stops working.

    Less than `leaseDuration`.
    """

    retry_period: Duration = RETRY_PERIOD
    """Time between two attempts. Less than `renewDeadline`."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.shards > 1 and not self.enabled:
            raise ValueError("shards are divided by Leases: set enabled to true")
        if self.renew_deadline >= self.lease_duration:
            why = "or two daemons could both believe that they lead"
            raise ValueError(f"renewDeadline must be shorter than leaseDuration, {why}")
        if self.retry_period >= self.renew_deadline:
            why = "or there is no second try to renew"
            raise ValueError(f"retryPeriod must be shorter than renewDeadline, {why}")
        if self.lease_duration < 1 or self.retry_period <= 0:
            why = "as a Lease can't hold less"
            raise ValueError(f"leaseDuration must be at least 1s, {why}, and retryPeriod above 0s")
        return self


class MetricsOptions(Section):
    """Prometheus metrics at `/metrics`."""

    address: ListenAddress = ":8080"
    """Address to listen on. Empty or `0`: off."""


class HealthOptions(Section):
    """Health endpoints: `/livez`, `/readyz` and `/healthz`."""

    address: ListenAddress = ":8081"
    """Address to listen on. Empty or `0`: off."""


class PageOptions(Section):
    """A page for a browser on the same machine: states with reasons, drift, the last hour.

    Whoever reaches the address may read it, so it is only for a loopback address, on a machine or
    in a pod without other users; `kubectl port-forward` asks the host's API server who may.
    """

    address: LoopbackAddress = ""
    """Loopback address to listen on, such as `127.0.0.1:8082`. Empty or `0`: off."""


class ControlOptions(Section):
    """The unix socket on which `syncer parked` and other commands reach the running daemon.

    Only the daemon's user may connect.
    """

    socket: SocketPath = ""
    """Path of the socket.

    Empty: `<cluster>.<host namespace>.sock`, of the first virtual cluster, in `vsyncer-<uid>`, a
    folder of the user alone, in `TMPDIR` or `/tmp`. `0`: off.
    """


class Fights(Section):
    """Contention: when another manager reverts a field each time that the daemon writes it, the
    daemon doesn't write the field for a while.
    """

    times: int = Field(default=5, ge=0, le=20)
    """Number of identical changes after which a field is frozen, that is, no longer written. 0:
    fields are never frozen.
    """

    window: Duration = Field(default=600.0, gt=0)
    """Time within which these changes must happen."""

    thaw: Duration = Field(default=600.0, gt=0)
    """Time for which a field stays frozen. `syncer thaw` ends it earlier."""


class Kubelet(Section):
    """The kubelet of the virtual Nodes: the daemon answers for them, so that `kubectl logs`,
    `exec`, `attach`, `port-forward`, `cp` and `top` work in the virtual cluster.

    The virtual API server has to reach the daemon, and needs a client certificate
    (`--kubelet-client-certificate`).
    """

    enabled: bool = False
    """Whether the daemon answers. It then needs rights to `pods/log`, `pods/exec`, `pods/attach`
    and `pods/portforward` on the host, and none to the host's nodes.
    """

    address: str = Field(default="", pattern=r"^[0-9A-Za-z.:-]*$")
    """IP address or DNS name at which the virtual API server reaches the daemon.

    Empty: the address that the daemon's own connections to the virtual API server come from.
    """

    listen: str = Field(default="", pattern=r"^[0-9A-Fa-f.:]*$")
    """IP address to listen on. Empty: all addresses of the machine."""

    first_port: int = Field(default=20250, ge=1, le=65535)
    """The first port; each Node has a port of its own while a copy of a Pod runs there."""

    ports: int = Field(default=500, ge=1, le=20000)
    """Number of ports, from the first one on. Nodes beyond have no logs and no exec."""

    certificate: str = ""
    """File with the serving certificate for the address, PEM. The file is read again when it
    changes.

    Empty: the virtual cluster signs one (signer `kubernetes.io/kubelet-serving`).
    """

    key: str = ""
    """File with the key of the certificate, PEM."""

    metrics: bool = True
    """Whether figures of Pods, from the host's `metrics.k8s.io`, are served: as `metrics.k8s.io` of
    the virtual cluster, for `kubectl top` and HorizontalPodAutoscalers, and on the Nodes'
    `/metrics/resource` and `/stats/summary`.

    The daemon needs the right to list `pods.metrics.k8s.io` on the host, in the namespaces of the
    copies.
    """

    cadvisor: bool = False
    """Whether the Nodes' `/metrics/cadvisor` has the metrics of the tenant's containers, from the
    host's kubelets.

    The daemon needs the rights to get Nodes and `nodes/metrics` on the host, by which it may read
    the metrics of all Pods; and it has to reach the kubelets, which need certificates of the host's
    CA (`serverTLSBootstrap`).
    """

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if bool(self.certificate) != bool(self.key):
            raise ValueError("certificate and key are both needed, or neither")
        if self.first_port + self.ports > 65536:
            raise ValueError("firstPort and ports go beyond port 65535")
        return self


class Log(Section):
    """Logging to standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is logged."""

    format: Literal["auto", "json", "console"] = "auto"
    """`auto` is `console` on a terminal and `json` elsewhere."""


def _without_nulls(value: Any) -> Any:
    """Return the entries with ``{}`` for each empty one, so that it gets its defaults."""
    if not isinstance(value, dict):
        return value
    entries: dict[Any, Any] = {}
    for name, entry in value.items():
        entries[name] = {} if entry is None else entry
    return entries


class SyncOptions(Section):
    """The kinds to sync.

    Each section belongs to a syncer; a plugin's section has the plugin's name.
    """

    to_host: Section = Section()
    """Syncers of objects that begin on the virtual side."""
    from_host: Section = Section()
    """Syncers of objects that begin on the host."""
    fake: Section = Section()
    """Syncers of objects that the virtual side needs and that exist nowhere."""
    custom: Annotated[dict[CustomName, CustomConfig], BeforeValidator(_without_nulls)] = Field(
        default={}, json_schema_extra={"propertyNames": {"pattern": PLURAL_GROUP}}
    )
    """Custom resources to sync without code, by the name of their CustomResourceDefinition:
    `certificates.cert-manager.io`.
    """


class _NamedOptions(Section):
    name: ClusterName = Field(min_length=1)
    """The name of the virtual cluster, a DNS label of at most 40 characters.

    The names of all copies on the host contain it.
    """

    host_namespace: Label = ""
    """The host namespace for the copies. The daemon doesn't create this namespace, but waits for
    it.
    """


class ClusterSections(Section):
    """Options that a virtual cluster may have itself, whether it is listed or of a Secret."""

    weight: float = Field(default=1, ge=0.01, le=100)
    """The weight of the virtual cluster beside the others.

    Busy virtual clusters share the workers' time in proportion to their weights.
    """

    max_megabytes: int | None = Field(default=None, ge=0, le=1 << 20)
    """The most memory that the objects of the virtual cluster may take in the daemon, in MB (MiB),
    about. 0: no limit.

    Empty: half of the memory limit of the daemon's container, if that has a limit, and 256 at most
    if there are several virtual clusters. Several may also take no more than that half together: it
    is divided between the listed ones and the namespaces of Secrets. Each of these always has an
    equal share, and beyond it three times as much as is free. Half of the memory of a virtual
    cluster is for the virtual objects, and a namespace may take three times as much of that as is
    free. Objects that there is no room for are parked; those that were synced stay in sync. If even
    the names need more memory, or there is no room for a further virtual cluster, it is not served,
    and tried again at intervals; the other virtual clusters go on.
    """

    names: Names | None = None
    """The `names` of this virtual cluster.

    Options that this section doesn't set are taken from the section at the top.
    """

    networking: Networking | None = None
    """The `networking` of this virtual cluster.

    Options that this section doesn't set are taken from the section at the top.
    """

    sync: SyncOptions | None = None
    """The `sync` of this virtual cluster.

    Options that this section doesn't set are taken from the section at the top, those of a `custom`
    entry from the entry of the same name. A list, or a mapping of labels, replaces the one at the
    top as a whole.
    """

    patrol: Patrol | None = None
    """The `patrol` of this virtual cluster.

    Options that this section doesn't set are taken from the section at the top.
    """

    pause: Pauses | None = None
    """The `pause` of this virtual cluster.

    Options that this section doesn't set are taken from the section at the top.
    """

    fights: Fights | None = None
    """The `fights` of this virtual cluster.

    Options that this section doesn't set are taken from the section at the top.
    """

    kubelet: Kubelet | None = None
    """The `kubelet` of this virtual cluster.

    Options that this section doesn't set are taken from the section at the top.
    """


class VirtualClusterSection(ClusterSections, VirtualConnectionSection, _NamedOptions):
    """A virtual cluster, and how to reach its API server, which tenants use."""


class _SecretsOptions(Section):
    namespace: Label = Field(min_length=1)
    """The host namespace of the Secrets that are read."""

    host_namespaces: Annotated[
        tuple[HostNamespace, ...],
        BeforeValidator(not_empty),
        Field(json_schema_extra={"minItems": 1}),
    ]
    """The host namespaces that the virtual clusters of these Secrets may have. The first one is for
    a Secret without the annotation `vsyncer.dev/virtual-cluster-host-namespace`.
    """

    selector: str = Field(default=CLUSTER_SECRET, min_length=1, pattern=r"^[-A-Za-z0-9_./=!,() ]+$")
    """The label selector of the Secrets. Other Secrets aren't read."""

    key: str = Field(default="config", min_length=1)
    """The key of a Secret that has the kubeconfig."""

    max_clusters: int = Field(default=100, ge=1, le=1000)
    """The most virtual clusters of these Secrets. The oldest Secrets come first; further ones are
    refused.
    """

    qps: float = Field(default=0, ge=0)
    """Sustained rate of requests to the API server of each virtual cluster, per second. 0: no
    limit.
    """

    burst: int = Field(default=0, ge=0)
    """Requests that may exceed the rate at once. 0: as many as `qps`."""


class VirtualClusterSecretsSection(ClusterSections, _SecretsOptions):
    """Secrets of a host namespace. Each Secret that the selector finds is a virtual cluster, and
    has its kubeconfig.

    Whoever may write Secrets there can have virtual clusters served in the host namespaces that are
    assigned here.
    """
