"""Which requests a person means by a kind and a key."""

from collections.abc import Iterable

from syncer.api.errors import Refused
from syncer.api.objects import Request
from syncer.engine.engine import Engine
from syncer.engine.reconcile.controller import Part


def syncers(engine: Engine, kind: str) -> frozenset[str]:
    """The names of the syncers that are meant: by their own name, a kind, or a plural; all of them by ``""``.

    Raises ``Refused`` where none is called so.
    """
    parts = [part for made in engine.links.values() for part in made.parts.values()]
    found = frozenset(part.syncer.name for part in parts if not kind or kind.lower() in _names(part))
    if not found and kind:
        known = ", ".join(sorted({part.syncer.name for part in parts}))
        raise Refused(f"nothing that is synced is called {kind!r}; there are {known}")
    return found


def _names(part: Part) -> Iterable[str]:
    for resource in (part.syncer.resource, part.syncer.host_resource):
        yield from (str(resource).lower(), resource.plural.lower(), resource.kind.lower())
    yield part.syncer.name.lower()


def is_chosen(request: Request, *, syncers: frozenset[str], key: str) -> bool:
    """Whether a request is meant by these syncers' names and a key; ``""`` is every key."""
    return request.syncer in syncers and key in ("", str(request.key))
