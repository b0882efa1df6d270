"""The configuration model: every option with its default and its help."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from syncer.api import ConfigError, Marks, NameTranslator, Networking, Patrol, Problem, Section, Syncer
from syncer.api.dns_names import PLURAL_GROUP, ClusterName, CustomName, Label, Subdomain
from syncer.api.durations import Duration
from syncer.config.list_form import list_form
from syncer.config.problems import guess
from syncer.config.values import Address, SocketPath
from syncer.config.virtual_cluster import VirtualCluster
from syncer.resources.custom import CustomConfig

#: Longest path of a unix socket that works everywhere, in bytes: 108 on Linux and 104 on macOS,
#: including the final 0.
LONGEST_SOCKET = 100

_BESIDE = "is the short form for a single virtual cluster, and virtualClusters is given, too. Write {}."


class ConnectionSection(Section):
    """How to reach an API server."""

    kubeconfig: str = ""
    """Path of a kubeconfig file.

    Empty: kubectl's default (`KUBECONFIG`, `~/.kube/config`), or the service account in a pod. A
    virtual cluster needs a file or a context.
    """

    context: str = ""
    """The context in the kubeconfig. Empty: its current context."""

    qps: float = Field(default=0, ge=0)
    """Sustained rate of requests to this API server, per second. 0: no limit."""

    burst: int = Field(default=0, ge=0)
    """Requests that may exceed the rate at once. 0: as many as `qps`."""


def _beside(place: str) -> BeforeValidator:
    """Return a validator that refuses any value: the option is in short form, beside a list."""

    def refuse(value: Any) -> Any:
        raise ValueError(_BESIDE.format(place))

    return BeforeValidator(refuse)


class VirtualSide(ConnectionSection):
    """Short form for a single virtual cluster: how to reach its API server, the one that tenants use."""

    @model_validator(mode="after")
    def _is_empty(self) -> Self:
        if self.model_fields_set:
            raise ValueError(_BESIDE.format("what is in it there, in virtualClusters[0]"))
        return self


class HostSide(ConnectionSection):
    """How to reach the API server of the host cluster, the one that runs the pods and holds the copies."""

    short_namespace: Annotated[Label, _beside("it there, as virtualClusters[0].hostNamespace")] = Field(
        default="", alias="namespace", exclude=True
    )
    """Short form for a single virtual cluster: its `hostNamespace`."""


class Names(Section):
    """How names are translated between the sides."""

    translator: str = "single-namespace"
    """The name translator.

    Don't change it after objects were synced: they would be created again under other names.
    """


class MarksSection(Section):
    """The labels and annotations that mark copies."""

    prefix: Subdomain = Field(default=Marks().prefix, min_length=1)
    """The prefix of their keys.

    Don't change it after objects were synced: these would no longer be recognised as copies.
    """


class LeaderElection(Section):
    """Leader election: one of several daemons works, and the others stand by."""

    enabled: bool = False
    """Whether to elect a leader. Required if a second daemon may run for the same virtual cluster.
    """

    namespace: Label = ""
    """Namespace of the Lease on the host. Empty: the host namespace of the virtual cluster."""

    name: Subdomain = ""
    """Name of the Lease. Empty: `vsyncer-<cluster>`."""

    lease_duration: Duration = 15.0
    """Time after which another daemon may take over from a silent leader."""

    renew_deadline: Duration = 10.0
    """Time for which a leader tries to renew its Lease before it stops working.

    Less than `leaseDuration`.
    """

    retry_period: Duration = 2.0
    """Time between two attempts. Less than `renewDeadline`."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.renew_deadline >= self.lease_duration:
            raise ValueError(
                "renewDeadline must be shorter than leaseDuration, or two daemons could both believe that they lead"
            )
        if self.retry_period >= self.renew_deadline:
            raise ValueError("retryPeriod must be shorter than renewDeadline, or there is no second try to renew")
        if self.lease_duration < 1 or self.retry_period <= 0:
            raise ValueError(
                "leaseDuration must be at least 1s, which is what a Lease can hold, and retryPeriod above 0s"
            )
        return self


class Metrics(Section):
    """Prometheus metrics at `/metrics`."""

    address: Address = ":8080"
    """Address to listen on. Empty or `0`: off."""


class Health(Section):
    """Health endpoints: `/livez`, `/readyz` and `/healthz`."""

    address: Address = ":8081"
    """Address to listen on. Empty or `0`: off."""


class Control(Section):
    """The unix socket on which `syncer parked` and other commands reach the running daemon.

    Only the daemon's user may connect.
    """

    socket: SocketPath = ""
    """Path of the socket.

    Empty: `vsyncer-<cluster>.<host namespace>.sock` in `TMPDIR` or `/tmp`. `0`: off.
    """


class Fights(Section):
    """Contention: when another manager reverts a field each time that the daemon writes it, the
    daemon stops writing it for a while.
    """

    times: int = Field(default=5, ge=0, le=20)
    """Number of identical changes after which a field is frozen, that is, no longer written. 0:
    fields are never frozen.
    """

    window: Duration = Field(default=600.0, gt=0)
    """Time within which these changes must happen."""

    thaw: Duration = Field(default=600.0, gt=0)
    """Time for which a field stays frozen. `syncer thaw` ends it earlier."""


class Log(Section):
    """Logging to standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is logged."""

    format: Literal["auto", "json", "console"] = "auto"
    """`auto` is `console` on a terminal and `json` elsewhere."""


def _without_nulls(value: Any) -> Any:
    """Return the entries with ``{}`` for each empty one, so that it gets its defaults."""
    return {key: {} if each is None else each for key, each in value.items()} if isinstance(value, dict) else value


class Sync(Section):
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


class _Named(Section):
    name: ClusterName = Field(min_length=1)
    """The name of the virtual cluster, a DNS label of at most 40 characters.

    It is part of the names of all copies on the host.
    """


class VirtualClusterSection(ConnectionSection, _Named):
    """A virtual cluster, and how to reach its API server, the one that tenants use."""

    host_namespace: Label = ""
    """The host namespace for the copies. It must exist."""

    names: Names | None = None
    """The `names` of this virtual cluster.

    Options that it doesn't set are taken from the section at the top.
    """

    networking: Networking | None = None
    """The `networking` of this virtual cluster.

    Options that it doesn't set are taken from the section at the top.
    """

    sync: Sync | None = None
    """The `sync` of this virtual cluster.

    Options that it doesn't set are taken from the section at the top, those of a `custom` entry
    from the entry of the same name. A list, or a mapping of labels, replaces the other as a whole.
    """

    patrol: Patrol | None = None
    """The `patrol` of this virtual cluster.

    Options that it doesn't set are taken from the section at the top.
    """

    fights: Fights | None = None
    """The `fights` of this virtual cluster.

    Options that it doesn't set are taken from the section at the top.
    """


def _not_empty(value: Any) -> Any:
    if value in ([], ()):
        raise ValueError("must not be empty")
    return value


Entry = TypeVar("Entry", bound=VirtualClusterSection)
#: Not `min_length`, which would count only well-formed entries.
Entries = Annotated[tuple[Entry, ...], BeforeValidator(_not_empty), Field(json_schema_extra={"minItems": 1})]


class SyncerConfig(Section, defer_build=True):
    """The configuration of the syncer daemon. It names its virtual clusters in `virtualClusters`, or a single one in
    the short form: `cluster`, `virtual` and `host.namespace`.
    """

    #: The classes behind the sections of ``sync``, and the function that finds a name translator.
    #: Set by ``config_with``.
    syncers: ClassVar[Sequence[type[Syncer]]] = ()
    translators: ClassVar[Callable[[str], type[NameTranslator] | None]] = lambda name: None

    api_version: Literal["vsyncer.dev/v1alpha1"] = "vsyncer.dev/v1alpha1"
    """The version of this format."""

    kind: Literal["SyncerConfig"] = "SyncerConfig"
    """Always `SyncerConfig`."""

    virtual_clusters: Entries[VirtualClusterSection]
    """The virtual clusters to serve; this version serves one.

    Each may have its own `names`, `networking`, `sync`, `patrol` and `fights`; those at the top are
    the defaults for all.
    """

    short_cluster: Annotated[ClusterName, _beside("it there, as virtualClusters[0].name")] = Field(
        default="", alias="cluster", exclude=True
    )
    """Short form for a single virtual cluster: its `name`."""

    short_virtual: VirtualSide = Field(default=VirtualSide(), alias="virtual", exclude=True)
    host: HostSide = HostSide()
    names: Names = Names()
    marks: MarksSection = MarksSection()
    sync: Sync = Sync()
    networking: Networking = Networking()
    leader_election: LeaderElection = LeaderElection()
    metrics: Metrics = Metrics()
    health: Health = Health()
    control: Control = Control()
    fights: Fights = Fights()
    patrol: Patrol = Patrol()
    log: Log = Log()

    workers: int = Field(default=32, ge=1, le=1024)
    """Maximum number of requests that are worked on at the same time."""

    grace_period: Duration = 20.0
    """Time that a daemon being stopped takes to finish the requests that it has begun.

    Less than the pod's own grace period.
    """

    @model_validator(mode="before")
    @classmethod
    def _in_list_form(cls, data: Any) -> Any:
        return list_form(data, cls) if isinstance(data, Mapping) else data

    def clusters(self) -> tuple[VirtualCluster, ...]:
        """Return the virtual clusters, each with the sections that apply to it."""
        return tuple(map(self._cluster, self.virtual_clusters))

    def cluster(self, name: str = "") -> VirtualCluster:
        """Return a virtual cluster by name; without a name, the only one.

        Raises:
            ConfigError: No virtual cluster has this name, or there are several and no name is
                given.
        """
        known = [each.name for each in self.virtual_clusters]
        if not name and len(known) > 1:
            raise ConfigError(
                Problem(f"there are several virtual clusters: {', '.join(known)}. Name one, with --cluster.")
            )
        for each in self.virtual_clusters:
            if name in ("", each.name):
                return self._cluster(each)
        raise ConfigError(no_cluster(name, known))

    def _cluster(self, given: VirtualClusterSection) -> VirtualCluster:
        names = given.names or self.names
        return VirtualCluster(
            name=given.name,
            connection=given,
            host_namespace=given.host_namespace,
            names=names,
            networking=given.networking or self.networking,
            sync=given.sync or self.sync,
            patrol=given.patrol or self.patrol,
            fights=given.fights or self.fights,
            marks=Marks(self.marks.prefix),
            syncers=self.syncers,
            translator_class=type(self).translators(names.translator),
        )

    @property
    def lease_name(self) -> str:
        """The name of the Lease for leader election."""
        return self.leader_election.name or f"vsyncer-{self.virtual_clusters[0].name}"

    @property
    def lease_namespace(self) -> str:
        """The host namespace of that Lease."""
        return self.leader_election.namespace or self.virtual_clusters[0].host_namespace

    def control_socket(self, environ: Mapping[str, str]) -> str:
        """Return the path of the control socket; ``""`` if it is off."""
        if self.control.socket:
            return "" if self.control.socket == "0" else self.control.socket
        first = self.virtual_clusters[0]
        name = f"{first.name}.{first.host_namespace}"
        folder = environ.get("TMPDIR") or "/tmp"  # noqa: S108 — made so that no other user can open it
        path = f"{folder}/vsyncer-{name}.sock"
        if len(path.encode()) <= LONGEST_SOCKET:
            return path
        return f"{folder}/vsyncer-{hashlib.sha256(name.encode()).hexdigest()[:16]}.sock"


def no_cluster(name: str, known: Sequence[str], file: str = "") -> Problem:
    """Return the problem of an unknown virtual cluster; ``file`` is where its name was given."""
    there = f"there {'are' if len(known) > 1 else 'is'} {', '.join(known)}"
    return Problem(f"no virtual cluster is called {name!r}; {there}.", file=file, hint=guess(name, known))
