"""The configuration: its sections as one model, and the virtual clusters that it lists."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from syncer.api import (
    ConfigError,
    Marks,
    NameTranslator,
    Networking,
    Patrol,
    Pauses,
    Problem,
    Section,
    Syncer,
)
from syncer.api.dns_names import ClusterName
from syncer.api.durations import Duration
from syncer.config.list_form import list_form
from syncer.config.options import (
    ClusterSections,
    ConnectionSection,
    ControlOptions,
    Fights,
    HealthOptions,
    HostSide,
    Kubelet,
    LeaderElection,
    Log,
    MarksSection,
    MetricsOptions,
    Names,
    PageOptions,
    SyncOptions,
    VirtualClusterSecretsSection,
    VirtualClusterSection,
    VirtualSide,
    beside_the_list,
)
from syncer.config.problems import guess
from syncer.config.virtual_cluster import VirtualCluster

#: Longest path of a unix socket that works everywhere, in bytes: 108 on Linux and 104 on macOS,
#: including the final 0.
LONGEST_SOCKET = 100

#: The folder of a user's control sockets, without the uid.
OWN_FOLDER = "vsyncer-"


class SyncerConfig(Section, defer_build=True):
    """The configuration of the syncer daemon. It names its virtual clusters in `virtualClusters`,
    or a single one in the short form: `cluster`, `virtual` and `host.namespace`. Further ones may
    be in Secrets: `virtualClusterSecrets`.
    """

    #: The classes behind the sections of ``sync``, and the function that finds a name translator.
    #: Set by ``config_with``.
    syncers: ClassVar[Sequence[type[Syncer]]] = ()
    translators: ClassVar[Callable[[str], type[NameTranslator] | None]] = lambda name: None

    api_version: Literal["vsyncer.dev/v1alpha1"] = "vsyncer.dev/v1alpha1"
    """The version of this format."""

    kind: Literal["SyncerConfig"] = "SyncerConfig"
    """Always `SyncerConfig`."""

    virtual_clusters: tuple[VirtualClusterSection, ...]
    """The virtual clusters to serve; may be empty with `virtualClusterSecrets`. An error in one of
    them delays no other.

    Each may have its own `names`, `networking`, `sync`, `patrol`, `pause`, `fights` and `kubelet`;
    those at the top are the defaults for all.
    """

    virtual_cluster_secrets: tuple[VirtualClusterSecretsSection, ...] = ()
    """Host namespaces with Secrets that have the kubeconfigs of further virtual clusters. These
    join and leave with their Secrets.
    """

    short_cluster: Annotated[
        ClusterName,
        beside_the_list("it there, as virtualClusters[0].name"),
    ] = Field(default="", alias="cluster", exclude=True)
    """Short form for a single virtual cluster: its `name`."""

    short_virtual: VirtualSide = Field(default=VirtualSide(), alias="virtual", exclude=True)
    host: HostSide = HostSide()
    names: Names = Names()
    marks: MarksSection = MarksSection()
    sync: SyncOptions = SyncOptions()
    networking: Networking = Networking()
    leader_election: LeaderElection = LeaderElection()
    metrics: MetricsOptions = MetricsOptions()
    health: HealthOptions = HealthOptions()
    page: PageOptions = PageOptions()
    control: ControlOptions = ControlOptions()
    pause: Pauses = Pauses()
    fights: Fights = Fights()
    kubelet: Kubelet = Kubelet()
    patrol: Patrol = Patrol()
    log: Log = Log()

    workers: int = Field(default=32, ge=1, le=1024)
    """Maximum number of requests that are worked on at the same time."""

    grace_period: Duration = 20.0
    """The longest time in which a daemon that is being stopped finishes the requests in work.

    Less than the pod's own grace period.
    """

    @model_validator(mode="before")
    @classmethod
    def _in_list_form(cls, data: Any) -> Any:
        return list_form(data, cls) if isinstance(data, Mapping) else data

    def clusters(self) -> tuple[VirtualCluster, ...]:
        """Return the virtual clusters that are listed, each with the sections that apply to it."""
        return tuple(self._listed(section) for section in self.virtual_clusters)

    def cluster(self, name: str = "") -> VirtualCluster:
        """Return a listed virtual cluster by name; without a name, the only one.

        Raises:
            ConfigError: No virtual cluster has this name, or there are several and no name is
                given.
        """
        known = self.names_listed
        if not name and (len(known) > 1 or self.virtual_cluster_secrets):
            namespaces = [section.namespace for section in self.virtual_cluster_secrets]
            listed = ", ".join([*known, *(f"those of Secrets in {each}" for each in namespaces)])
            message = f"there are several virtual clusters: {listed}. Name one, with --cluster."
            raise ConfigError(Problem(message))
        for section in self.virtual_clusters:
            if name in ("", section.name):
                return self._listed(section)
        raise ConfigError(no_cluster(name, known))

    def _listed(self, given: VirtualClusterSection) -> VirtualCluster:
        """Return a virtual cluster that is listed."""
        return self._cluster(given, given.name, given.host_namespace, given)

    def cluster_of(
        self,
        given: VirtualClusterSecretsSection,
        name: str,
        host_namespace: str,
    ) -> VirtualCluster:
        """Return a virtual cluster that a Secret names.

        It has the sections that apply to it, and no login.
        """
        connection = ConnectionSection(qps=given.qps, burst=given.burst)
        return self._cluster(
            given,
            name,
            host_namespace,
            connection,
            secrets_namespace=given.namespace,
        )

    def _cluster(
        self,
        given: ClusterSections,
        name: str,
        host_namespace: str,
        connection: ConnectionSection,
        *,
        secrets_namespace: str = "",
    ) -> VirtualCluster:
        """Return a virtual cluster; sections that it doesn't have itself are those at the top."""
        names = given.names or self.names
        return VirtualCluster(
            name=name,
            connection=connection,
            host_namespace=host_namespace,
            names=names,
            networking=given.networking or self.networking,
            sync=given.sync or self.sync,
            patrol=given.patrol or self.patrol,
            pause=given.pause or self.pause,
            fights=given.fights or self.fights,
            kubelet=given.kubelet or self.kubelet,
            marks=Marks(self.marks.prefix),
            weight=given.weight,
            max_megabytes=given.max_megabytes,
            secrets_namespace=secrets_namespace,
            syncers=self.syncers,
            translator_class=type(self).translators(names.translator),
        )

    @property
    def names_listed(self) -> list[str]:
        """The names of the virtual clusters that are listed."""
        return [each.name for each in self.virtual_clusters]

    @property
    def first(self) -> tuple[str, str]:
        """The name and host namespace of the first virtual cluster.

        If all are of Secrets: the namespace of the first Secrets, and the first host namespace that
        is assigned to them.
        """
        if self.virtual_clusters:
            cluster = self.virtual_clusters[0]
            return cluster.name, cluster.host_namespace
        secrets = self.virtual_cluster_secrets[0]
        return secrets.namespace, secrets.host_namespaces[0]

    @property
    def lease_name(self) -> str:
        """The name of the Lease for leader election."""
        return self.leader_election.name or f"vsyncer-{self.first[0]}"

    @property
    def lease_namespace(self) -> str:
        """The host namespace of that Lease."""
        return self.leader_election.namespace or self.first[1]

    def control_socket(self, environ: Mapping[str, str]) -> str:
        """Return the path of the control socket; ``""`` if it is off."""
        if self.control.socket:
            return "" if self.control.socket == "0" else self.control.socket

        name = ".".join(self.first)
        parent = environ.get("TMPDIR") or "/tmp"  # noqa: S108 — with a folder of the user alone
        folder = f"{parent}/{OWN_FOLDER}{os.geteuid()}"
        path = f"{folder}/{name}.sock"
        if len(path.encode()) > LONGEST_SOCKET:
            digest = hashlib.sha256(name.encode()).hexdigest()[:16]
            path = f"{folder}/{digest}.sock"
        return path


def no_cluster(name: str, known: Sequence[str], file: str = "") -> Problem:
    """Return the problem of an unknown virtual cluster; ``file`` is where its name was given."""
    verb = "are" if len(known) > 1 else "is"
    message = f"no virtual cluster is called {name!r}; there {verb} {', '.join(known)}."
    return Problem(message, file=file, hint=guess(name, known))
