"""Find the selectors that select an object, and the objects that a selector selects.

This doesn't try each of them. A selector wants certain labels, and may have further expressions.
Selectors that want the same keys and have the same expressions are of one form; those of a form
that select an object are looked up by its labels of these keys.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from cachetools import LRUCache, cached

from syncer.api import selectors
from syncer.api.objects import Key, Obj, Resource, key_of, labels_of
from syncer.cache.indexer import Indexer
from syncer.clusters import codec
from syncer.engine.stores.informers import SideInformer

#: The index of objects that may be selected, by namespace and ``key=value`` of their labels.
LABELS = "labels"
#: Maximum number of labels of an object that are indexed, so that the index stays small.
MOST_LABELS = 32
#: Stands in the index for the labels of an object that has more.
MORE_LABELS = "/more-labels"
#: Memory for cached selectors, in bytes, approximately.
SELECTOR_BYTES = 1 << 22
#: Memory for a cached selector besides its text, in bytes, approximately.
OVERHEAD = 500


class SelectorShape(NamedTuple):
    """The parts that selectors of one form have in common."""

    #: The keys of the wanted labels, sorted.
    keys: tuple[str, ...]
    #: A LabelSelector of further expressions, as JSON.
    expressions: str


class Selection(NamedTuple):
    """A selector, with the resource and the namespace of the objects that it selects."""

    resource: Resource
    namespace: str
    form: SelectorShape
    #: The labels that it wants, as JSON with sorted keys.
    wanted: str


@dataclass(frozen=True, slots=True)
class Selections:
    """The selectors of a syncer's objects."""

    #: The name of the syncer, which owns the indexes.
    owner: str
    indexer: Indexer

    def add_to(
        self,
        store: SideInformer,
        found: Callable[[Obj], Iterable[tuple[Resource, Obj]]],
        notify: Callable[..., None],
    ) -> None:
        """Index the store's objects by their selectors.

        ``notify`` gets each :class:`Selection` that begins or ends.
        """

        def selections(obj: Obj) -> Iterator[Selection]:
            namespace = key_of(obj).namespace
            for resource, selector in found(obj):
                yield _selection(resource, namespace, selector)

        def forms(obj: Obj) -> Iterator[SelectorShape]:
            return (selection.form for selection in selections(obj))

        store.add_index(self._forms, forms, owner=self.owner)
        store.add_index(self._selections, selections, owner=self.owner, notify=notify)

    def holders(self, selection: Selection) -> int:
        """Return the number of objects that select so."""
        return len(self.indexer.keys(self._selections, selection))

    def find(self, resource: Resource, obj: Obj) -> bool:
        """Return True if one of them selects an object of a resource."""
        labels = labels_of(obj)
        namespace = key_of(obj).namespace
        for form in self.indexer.values(self._forms):
            if not all(key in labels for key in form.keys):
                continue
            wanted = codec.encode_sorted({key: labels[key] for key in form.keys})
            selection = Selection(resource, namespace, form, wanted)
            if not self.indexer.keys(self._selections, selection):
                continue
            if selectors.matches(_selector(form.expressions), labels):
                return True
        return False

    @property
    def _forms(self) -> str:
        return f"forms/{self.owner}"

    @property
    def _selections(self) -> str:
        return f"selects/{self.owner}"


def index_labels(store: SideInformer) -> None:
    """Index a store's objects for :func:`selected`."""
    if not store.indexer.has(LABELS):
        store.add_index(LABELS, _labels)


def selected(store: SideInformer, selection: Selection) -> Collection[Key]:
    """Return the keys of the store's objects that have the wanted labels of a selector.

    Objects whose labels aren't indexed are among them, too: they have too many, or aren't known
    yet. So are all objects of the namespace for a selector that wants no labels.
    """
    namespace = selection.namespace
    pairs = codec.decode(selection.wanted.encode()).items()
    if not pairs or not store.indexer.has(LABELS):
        return [key for key in store.keys() if key.namespace == namespace]  # noqa: SIM118
    having = [store.indexer.keys(LABELS, (namespace, f"{key}={value}")) for key, value in pairs]
    having.sort(key=len)
    smallest, *others = having
    found = [key for key in smallest if all(key in each for each in others)]
    unknown = [key for key in store.indexer.doubted(LABELS) if key.namespace == namespace]
    return [*found, *store.indexer.keys(LABELS, (namespace, MORE_LABELS)), *unknown]


def _labels(obj: Obj) -> Iterable[tuple[str, str]]:
    namespace = key_of(obj).namespace
    labels = labels_of(obj)
    if len(labels) > MOST_LABELS:
        return [(namespace, MORE_LABELS)]
    return [(namespace, f"{key}={value}") for key, value in labels.items()]


def _selection(resource: Resource, namespace: str, selector: Obj) -> Selection:
    wanted = dict(selector.get("matchLabels") or {})
    others = []
    for expression in selector.get("matchExpressions") or ():
        key = expression["key"]
        values = expression.get("values") or []
        if expression["operator"] == "In" and len(values) == 1 and key not in wanted:
            wanted[key] = values[0]
        else:
            others.append(expression)
    expressions = codec.encode_sorted({"matchExpressions": others})
    form = SelectorShape(tuple(sorted(wanted)), expressions)
    return Selection(resource, namespace, form, codec.encode_sorted(wanted))


def _size(selector: Any) -> int:
    """Return the memory of a parsed selector, in bytes, approximately."""
    return OVERHEAD + 4 * len(codec.encode(selector))


@cached(LRUCache(SELECTOR_BYTES, getsizeof=_size))
def _selector(text: str) -> Any:
    """Parse a selector. Cached, so the result must not be changed."""
    return codec.decode(text.encode())
