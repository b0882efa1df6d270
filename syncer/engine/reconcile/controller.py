"""One syncer at work in one link: what it reads, and the stores that it needs."""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from syncer.api.config import Config
from syncer.api.objects import Key, Obj, Resource, Side
from syncer.api.roles import Syncer
from syncer.engine.cache.entry import Entry
from syncer.engine.cache.informers import Informers
from syncer.engine.cache.references import References
from syncer.engine.cache.store import Store
from syncer.engine.reconcile.policies.ownership import Ownership
from syncer.observe.logs import get_logger
from syncer.translate.patches import Patcher

log = get_logger(__name__)


#: How many reads of a decision are noted.
MOST_READS = 256


class Read(NamedTuple):
    """That an object was read, and what it was then; None: it was not there."""

    store: Store
    key: Key
    entry: Entry | None


@dataclass(frozen=True, slots=True)
class Reads:
    """What syncers may read: the caches, and what is known of references."""

    informers: Informers
    references: References
    #: What the decision that is being made has read of other objects.
    noted: deque[Read] = field(default_factory=lambda: deque(maxlen=MOST_READS))

    def get(self, side: Side, resource: Resource, key: Key) -> Obj | None:
        """The object as a private copy."""
        store = self.informers.store(side, resource)
        self.noted.append(Read(store, key, store.entry(key)))
        return store.get(key)

    def keys(self, side: Side, resource: Resource) -> Collection[Key]:
        """The keys of all objects."""
        return self.informers.store(side, resource).keys()

    def indexed(self, side: Side, resource: Resource, index: str, value: str) -> Collection[Key]:
        """The keys for which an index function gave this value."""
        return self.informers.store(side, resource).indexed(index, value)

    def used(self, resource: Resource, virtual: Obj) -> bool | None:
        """Whether anything synced refers to a virtual object; None where that can't be known now."""
        return self.references.of(resource, virtual)


@dataclass(slots=True)
class Controller:
    """One syncer at work in one link."""

    syncer: Syncer
    config: Config
    #: Changes what it decides, as its section says.
    patcher: Patcher
    #: What the configuration rules for its decisions; None where all is as usual.
    ownership: Ownership | None
    #: What its ``predicate`` says, as the only item; nothing where that raises.
    predicate: Callable[[Obj], Sequence[bool]]
    stores: tuple[Store, ...]
    #: Stores of other syncers' objects that it only looks at; it begins without those that can't be had.
    extras: tuple[Store, ...] = ()
    #: Set once all its stores are filled; before that nothing is decided.
    ready: bool = False
    #: The extras that it has begun without.
    missed: set[Store] = field(default_factory=set)


def safely(syncer: Syncer, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a syncer, so that what it raises does not stop the watch that feeds everybody."""
    told = False

    def safe(*arguments: Any) -> Any:
        nonlocal told
        try:
            found = function(*arguments)
            return list(found) if found is not None else ()
        except Exception:
            if not told:
                log.exception("an index, a watch, a key function or predicate of a syncer raised", syncer=syncer.name)
            told = True
            return ()

    return safe
