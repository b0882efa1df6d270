"""The options of a cluster: which caches it has, and of what."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from syncer.api.objects import Obj, Resource


class Part(NamedTuple):
    """The part of a collection that a cache holds: of a namespace (``""``: all), of labels, of
    fields.
    """

    namespace: str = ""
    selector: str = ""
    fields: str = ""


#: Changes an object before it is stored, such as to leave out fields that are never read.
Transform = Callable[[Obj], Obj]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """The options of a cluster.

    ``namespace`` limits the caches of namespaced resources to a namespace: the API server is asked
    for no other, so rights in that namespace are enough. ``sync_timeout`` is the longest time, in
    seconds, that a cached read waits for the first list; None is the deadline of a request. Every
    ``resync`` seconds the subscribers of a cache are shown all its objects again; 0 is never.

    ``by_object`` limits the caches of some resources further, where no part is asked for. Resources
    in ``disable_for`` have no cache: they are read from the API server. Each object is stored as
    the transform of its resource in ``transforms`` leaves it, else ``transform``.

    The cached objects may take ``max_bytes`` of memory; 0 is no limit. A cluster of which there are
    more ends, with :class:`~syncer.multicluster.CacheTooLarge`: give clusters of others a limit, as
    their owners have as many objects as they like. A :class:`~syncer.multicluster.ClusterCache`
    tries it again after a minute.
    """

    namespace: str = ""
    sync_timeout: float | None = None
    resync: float = 0.0
    max_bytes: int = 0
    by_object: Mapping[Resource, Part] = field(default_factory=dict)
    disable_for: frozenset[Resource] = frozenset()
    transforms: Mapping[Resource, Transform] = field(default_factory=dict)
    transform: Transform | None = None
