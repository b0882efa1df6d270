"""The configuration as frozen values: what can be set, its default, and what it is for."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, model_validator

from syncer.api import (
    Config,
    Marks,
    NameTranslator,
    Networking,
    Patrol,
    PluginError,
    Section,
    Settings,
    SyncDown,
    Syncer,
)
from syncer.api.dns_names import PLURAL_GROUP, ClusterName, CustomName, Label, Subdomain
from syncer.api.durations import Duration
from syncer.config.values import Address, SocketPath
from syncer.names.templated import Templated
from syncer.resources.custom import CustomConfig, Entry

#: Bytes that the path of a unix socket may have everywhere: 108 on Linux and 104 on macOS, with the 0 at the end.
LONGEST_SOCKET = 100


class Enabled(NamedTuple):
    """A syncer that is switched on, and its own section."""

    syncer: Syncer
    section: Config


class ClusterSide(Section):
    """How to reach an API server."""

    kubeconfig: str = ""
    """Path of a kubeconfig file. Empty: as kubectl finds it (`KUBECONFIG`, `~/.kube/config`), or in a pod its service
    account. For the virtual side a file or a context must be given."""

    context: str = ""
    """The context within the kubeconfig. Empty: its current context."""

    qps: float = Field(default=0, ge=0)
    """The most requests a second that the daemon makes in the long run. 0: no limit."""

    burst: int = Field(default=0, ge=0)
    """How many requests may be made at once above the limit. 0: as many as `qps`."""


class VirtualSide(ClusterSide):
    """How to reach the API server of the virtual cluster, the one that tenants use."""


class HostSide(ClusterSide):
    """How to reach the API server of the host cluster, the one that runs the pods, and where copies go."""

    namespace: Label = ""
    """The namespace on the host that copies are put in. Must be there already."""


class Names(Section):
    """How names on one side become names on the other."""

    translator: str = "single-namespace"
    """The name translator. It can't be changed once objects were synced: they would be made anew under other names."""


class MarksSection(Section):
    """The labels and annotations that say whose copy an object is."""

    prefix: Subdomain = Field(default=Marks().prefix, min_length=1)
    """What they begin with. It can't be changed once objects were synced: they would be taken for somebody else's."""


class LeaderElection(Section):
    """One of several daemons works and the others stand by. Needs `host.namespace`, where its Lease is."""

    enabled: bool = False
    """Whether to elect. Needed as soon as a second daemon may run for the same virtual cluster."""

    name: Subdomain = ""
    """Name of the Lease. Empty: `vsyncer-<cluster>`."""

    lease_duration: Duration = 15.0
    """How long a leader that has fallen silent is waited for before another takes over."""

    renew_deadline: Duration = 10.0
    """How long a leader tries to renew before it stops working. Less than `leaseDuration`."""

    retry_period: Duration = 2.0
    """Time between two tries. Less than `renewDeadline`."""

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
    """Where to listen. Empty or `0`: off."""


class Health(Section):
    """`/livez`, `/readyz` and `/healthz`."""

    address: Address = ":8081"
    """Where to listen. Empty or `0`: off."""


class Control(Section):
    """A unix socket on which `syncer parked` and other commands ask the running daemon; for the daemon's own user."""

    socket: SocketPath = ""
    """The path of the socket. Empty: `vsyncer-<cluster>.<host namespace>.sock` in `TMPDIR` or `/tmp`. `0`: off."""


class Fights(Section):
    """Somebody else sets a field back each time that the daemon writes it: it is left alone then, for some time."""

    times: int = Field(default=5, ge=0, le=20)
    """How often the same change is made before the field is left alone. 0: a field never is."""

    window: Duration = Field(default=600.0, gt=0)
    """The time within which that counts."""

    thaw: Duration = Field(default=600.0, gt=0)
    """How long the field is left alone. `syncer thaw` ends it before."""


class Log(Section):
    """What the daemon writes to standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important lines that are still written."""

    format: Literal["auto", "json", "console"] = "auto"
    """`auto` is `console` on a terminal and `json` elsewhere."""


def _without_nulls(value: Any) -> Any:
    """An entry with nothing in it is one with all its defaults."""
    return {key: {} if each is None else each for key, each in value.items()} if isinstance(value, dict) else value


class Sync(Section):
    """What is synced. Each section belongs to a syncer; that of an installed plugin is known by its name."""

    to_host: Section = Section()
    """Syncers of what begins on the virtual side."""
    from_host: Section = Section()
    """Syncers of what begins on the host."""
    fake: Section = Section()
    """Syncers of what the virtual side needs and neither side has."""
    custom: Annotated[dict[CustomName, CustomConfig], BeforeValidator(_without_nulls)] = Field(
        default={}, json_schema_extra={"propertyNames": {"pattern": PLURAL_GROUP}}
    )
    """Custom resources, by plural and group as their CustomResourceDefinitions are named:
    `certificates.cert-manager.io`. Nothing has to be programmed for them."""


class SyncerConfig(Section, defer_build=True):
    """The configuration of the syncer daemon of one virtual cluster."""

    #: The classes behind the sections of ``sync``, and the name translator's; set by ``config_with``.
    syncers: ClassVar[Sequence[type[Syncer]]] = ()
    translator_class: ClassVar[type[NameTranslator] | None] = None

    api_version: Literal["vsyncer.dev/v1alpha1"] = "vsyncer.dev/v1alpha1"
    """The version of this format."""

    kind: Literal["SyncerConfig"] = "SyncerConfig"
    """Always `SyncerConfig`."""

    cluster: ClusterName = Field(min_length=1)
    """The virtual cluster's name, a DNS label of at most 40 characters. Part of the names of all copies on the host."""

    virtual: VirtualSide = VirtualSide()
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
    """How many objects are worked on at the same time."""

    grace_period: Duration = 20.0
    """How long the daemon finishes what it has begun when it is told to stop. Less than the pod's own grace period."""

    def section_of(self, syncer: type[Syncer]) -> Config:
        """The section of a syncer's options."""
        direction, _, name = syncer.section.partition(".")
        part = getattr(self.sync, field_name(direction))
        section: Config = getattr(part, field_name(name))
        return section

    def enabled(self) -> tuple[Enabled, ...]:
        """The syncers that are switched on and have something to do here, made, in the order of registration."""
        settings = self._settings({})
        switched_on = [(syncer(), section) for syncer in self.syncers if (section := self.section_of(syncer)).enabled]
        return tuple(Enabled(syncer, section) for syncer, section in switched_on if _concerns(syncer, settings))

    def custom_entries(self) -> tuple[Entry, ...]:
        """The entries of ``sync.custom`` that are switched on."""
        on = {name: config for name, config in self.sync.custom.items() if config.enabled}
        copied = (
            tuple(each.syncer.resource for each in self.enabled() if isinstance(each.syncer, SyncDown)) if on else ()
        )
        names, marks = self.translator(), Marks(self.marks.prefix)
        return tuple(Entry(name, config, names, marks, copied, on) for name, config in on.items())

    def translator(self) -> NameTranslator:
        """The name translator for this virtual cluster, with the templates of ``sync.custom``."""
        if self.translator_class is None:
            raise TypeError("this model was made without a name translator; give one to config_with()")
        make = self.translator_class
        made: NameTranslator = make(cluster=self.cluster, namespace=self.host.namespace)  # type: ignore[call-arg]
        on = {name: config.template for name, config in self.sync.custom.items() if config.enabled}
        templates = {name: template for name, template in on.items() if template}
        return Templated(made, templates, cluster=self.cluster) if templates else made

    def settings(self) -> Settings:
        """What syncers are told about their virtual cluster."""
        sections = {enabled.syncer.name: enabled.section for enabled in self.enabled()}
        for entry in self.custom_entries():
            sections |= entry.sections()
        return self._settings(sections)

    def _settings(self, sections: Mapping[str, Config]) -> Settings:
        return Settings(
            cluster=self.cluster,
            host_namespace=self.host.namespace,
            names=self.translator(),
            marks=Marks(self.marks.prefix),
            sections=sections,
            networking=self.networking,
            patrol=self.patrol,
        )

    @property
    def lease_name(self) -> str:
        """The name of the Lease that leadership is a matter of."""
        return self.leader_election.name or f"vsyncer-{self.cluster}"

    def control_socket(self, environ: Mapping[str, str]) -> str:
        """The path of the control socket; ``""`` where there is none."""
        if self.control.socket:
            return "" if self.control.socket == "0" else self.control.socket
        name = f"{self.cluster}.{self.host.namespace}"
        folder = environ.get("TMPDIR") or "/tmp"  # noqa: S108 — made so that nobody else can use it
        path = f"{folder}/vsyncer-{name}.sock"
        if len(path.encode()) <= LONGEST_SOCKET:
            return path
        return f"{folder}/vsyncer-{hashlib.sha256(name.encode()).hexdigest()[:16]}.sock"


def _concerns(syncer: Syncer, settings: Settings) -> bool:
    try:
        return syncer.applies_to(settings)
    except Exception as error:
        raise PluginError(syncer.name, f"its `applies_to` raised {type(error).__name__}: {error}") from error


def field_name(key: str) -> str:
    """The attribute that holds the section of this name: ``configMaps`` → ``config_maps``."""
    return "".join(f"_{char.lower()}" if char.isupper() else char if char.isalnum() else "_" for char in key).strip("_")
