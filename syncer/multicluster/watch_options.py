"""Which objects of a watched resource lead to requests."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from syncer.api import selectors
from syncer.api.objects import Json, Obj, annotations_of, labels_of


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """The objects of a watch: those that fulfil all of these conditions.

    ``namespaces``: any of these; none is all. ``labels`` and ``annotations`` are LabelSelectors
    (``{"matchLabels": …, "matchExpressions": …}``) over the object's labels and annotations; None
    selects everything. ``predicate`` is a function. An object that ceases to fulfil them leads to a
    last request. A ``ValueError`` says that one of them is no LabelSelector.

    These are conditions on cached objects. To have the API server send fewer, watch a part of the
    resource: ``cluster.informer(PODS, namespace="shop", selector="app=web")``.
    """

    namespaces: Collection[str] = ()
    labels: Mapping[str, Json] | None = None
    annotations: Mapping[str, Json] | None = None
    predicate: Callable[[Obj], bool] | None = None

    def __post_init__(self) -> None:
        for name in ("labels", "annotations"):
            selectors.must_be_selector(getattr(self, name), f"{name} of WatchOptions")

    def selects(self, obj: Obj) -> bool:
        """Return True if an object fulfils the conditions."""
        if self.namespaces and obj["metadata"].get("namespace", "") not in self.namespaces:
            return False
        if self.labels is not None and not selectors.matches(self.labels, labels_of(obj)):
            return False
        annotations = self.annotations
        if annotations is not None and not selectors.matches(annotations, annotations_of(obj)):
            return False
        return self.predicate is None or self.predicate(obj)


EVERYTHING = WatchOptions()
