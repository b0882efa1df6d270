"""The options of a cache of clusters."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from syncer.api import selectors
from syncer.api.objects import Json, Obj, Resource
from syncer.multicluster.cluster_options import ClusterOptions
from syncer.multicluster.kinds import NODES
from syncer.multicluster.providers import ProvidedCluster


class FieldIndex(NamedTuple):
    """An index of the objects of a resource by the values of a function."""

    resource: Resource
    name: str
    values: Callable[[Obj], Iterable[Hashable]]


def _provider_id(obj: Obj) -> Iterable[str]:
    """Return the provider id of a Node, unless it is empty.

    Raises:
        TypeError: It is no Node: the index was put on another resource.
    """
    if obj.get("kind") != "Node":
        raise TypeError(f"the index of provider ids is for Nodes, not for {obj.get('kind')}")
    found = (obj.get("spec") or {}).get("providerID")
    if not found:
        return []
    return [found]


#: Nodes by ``spec.providerID``.
NODE_PROVIDER_ID_INDEX = FieldIndex(NODES, "spec.providerID", _provider_id)


def _is_ok(status: int) -> bool:
    return status == 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCacheOptions:
    """The options of a :class:`ClusterCache`; times are in seconds.

    ``user_agent`` is required: administrators of clusters see it. ``field_manager`` is the name in
    ``managedFields``, by default the user agent up to its first ``/``. ``timeout`` is the deadline
    of a request and, unless ``clusters`` says otherwise, of a cached read; ``qps`` and ``burst``
    limit the requests to a cluster. ``clusters`` are the options of each cluster, and ``indexes``
    are filled before a cluster counts as connected, within ``initial_sync``.

    A cluster is probed by GET ``probe_path`` every ``probe_interval``, over the transport of its
    watches, and is disconnected after ``probe_threshold`` failures in a row, or at once by a 401.
    Other statuses are failures unless ``answers`` returns True for them. With an infinite interval
    it is probed only when it is suspected. Whoever has no credentials, or lost ones, may get
    ``probe_path``: where that is so, as with ``/readyz``, ``login_path`` is a path such as ``/api``
    that is probed besides, and takes credentials.

    After n failures in a row, of connects and probes, the next attempt to connect is at a random
    time within 2**n seconds, at least 1 and at most ``max_retry_delay``, so that clusters that were
    lost together aren't dialled together. ``dials`` is the number of clusters that are dialled at
    the same time.

    Only clusters of the LabelSelector ``selector`` for which ``select`` returns True are connected
    to; if these raise, the cluster isn't. With ``private_keys``, each cluster gets an RSA key after
    its first connect.
    """

    user_agent: str
    field_manager: str = ""
    timeout: float = 10.0
    qps: float = 20.0
    burst: int = 30
    clusters: ClusterOptions = field(default_factory=ClusterOptions)
    indexes: Sequence[FieldIndex] = ()
    initial_sync: float = 300.0
    probe_path: str = "/"
    login_path: str = ""
    probe_interval: float = 10.0
    probe_timeout: float = 5.0
    probe_threshold: int = 5
    answers: Callable[[int], bool] = _is_ok
    max_retry_delay: float = 30.0
    dials: int = 20
    selector: Mapping[str, Json] | None = None
    select: Callable[[str, ProvidedCluster], bool] | None = None
    private_keys: bool = False

    def __post_init__(self) -> None:
        if not self.user_agent:
            why = "it tells the administrators of clusters who asks"
            raise ValueError(f"user_agent is required: {why}")
        selectors.must_be_selector(self.selector, "selector of ClusterCacheOptions")

    def is_healthy(self, status: int) -> bool:
        """Return True if a probe that was answered with this status has succeeded."""
        return status != 401 and self.answers(status)
