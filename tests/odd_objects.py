"""Objects of any JSON shape: what a tenant, an old version or a careless controller may have left in an API server."""

import copy
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from hypothesis import strategies as st

from syncer.api import Obj
from syncer.clusters.transport import HttpRequest, HttpResponse, Stream
from syncer.testing import ApiServer
from syncer.testing.in_process import MemoryTransport
from syncer.testing.merge import merged

#: Texts that become what a JSON text may say and no JSON library of Python would write.
LONE, HUGE, DEEP = "@lone@", "@huge@", "@deep@"
_WRITTEN = {
    LONE.encode(): rb"a\ud800",
    f'"{HUGE}"'.encode(): b"1e999",
    f'"{DEEP}"'.encode(): b"[" * 5000 + b"]" * 5000,
}


def nested(deep: int) -> Any:
    """A list in a list in a list."""
    found: list[Any] = []
    for _ in range(deep):
        found = [found]
    return found


#: What may stand where something else is expected.
JUNK: Mapping[str, Any] = {
    "null": None,
    "true": True,
    "zero": 0,
    "minus": -1,
    "large": 10**30,
    "fraction": 1.5,
    "huge": HUGE,
    "empty": "",
    "text": "text",
    "nul": "\x00",
    "smile": "🙂" * 50,
    "lone surrogate": LONE,
    "slashes": "a/b//../..",
    "list": [],
    "map": {},
    "nulls": [None],
    "null map": {"": None},
    "maps": [{}],
    "lists": [[[]]],
    "texts": ["text"],
    "numbers": {"a": 1},
    "deep": nested(500),
    "too deep": DEEP,
    "large text": "x" * 1_500_000,
}

#: What may stand in annotations, which take any text.
_TEXTS = [
    "",
    "{",
    "vsyncer.dev/fields",
    "vsyncer.dev/virtual-uid",
    "vsyncer.dev/base",
    "true",
    LONE,
    "🙂",
    "x" * 200_000,
]

Path = tuple[str | int, ...]


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Return every place below that something could be put at, but the metadata."""
    below: Sequence[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        below = list(value.items())
    elif isinstance(value, list):
        below = list(enumerate(value))
    for step, each in below:
        child = (*path, step)
        if child not in _KEPT:
            yield child
            yield from paths(each, child)


#: What every API server sees to, whatever else it stores.
_KEPT = {("apiVersion",), ("kind",), ("metadata",)}


def replaced(obj: Obj, path: Path, junk: Any) -> Obj:
    """The object with something else in one place; a place that isn't there any more is left alone."""
    result = copy.deepcopy(obj)
    at: Any = result
    for step in path[:-1]:
        if not _has(at, step):
            return result
        at = at[step]
    if isinstance(at, dict) or _has(at, path[-1]):
        at[path[-1]] = junk
    return result


def _has(value: Any, step: str | int) -> bool:
    """Return True if there is anything at a step below a value."""
    return step in (value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ())


@st.composite
def odd(draw: st.DrawFn, whole: Sequence[Obj]) -> Obj:
    """One of these objects, with something odd in one to three places, or with unknown parts."""
    obj = draw(st.sampled_from(whole))
    for _ in range(draw(st.integers(0, 3))):
        chosen = draw(st.sampled_from([*paths(obj), ("extra",)]))
        obj = replaced(obj, chosen, JUNK[draw(st.sampled_from(sorted(JUNK)))])
    texts = draw(st.dictionaries(st.sampled_from(_TEXTS), st.sampled_from(_TEXTS), max_size=2))
    return merged(obj, {"metadata": {draw(st.sampled_from(["labels", "annotations"])): texts}})


class OldServer(ApiServer):
    """An API server in whose storage there may be anything, and that hands it out as it is."""

    def plant(self, obj: Obj) -> None:
        """Store an object as it is: neither defaulted nor validated."""
        rt = self._parts.registry.by_kind(obj["apiVersion"], obj["kind"])
        assert rt, f"no such kind: {obj['kind']}"
        metadata = obj["metadata"]
        key = f"{metadata.get('namespace', '')}/{metadata['name']}"
        if self._parts.storage.get(rt.table_name, key):
            self._parts.storage.update(rt.table_name, key, obj)
        else:
            self._parts.storage.create(rt.table_name, key, obj)

    def transport(self, user: Any = "admin") -> "OldTransport":
        """A transport that writes values that Python's JSON lacks."""
        return OldTransport(self, self._user(user))


class OldTransport(MemoryTransport):
    """Replaces what stands for the unspeakable."""

    async def send(self, request: HttpRequest) -> HttpResponse:
        reply = await super().send(request)
        return HttpResponse(reply.status, reply.headers, _spoken(reply.body))

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[Stream]:
        async with super().stream(request) as stream:
            yield _OddStream(stream)


class _OddStream:
    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.status, self.headers = stream.status, stream.headers

    async def __aiter__(self) -> AsyncIterator[list[bytes]]:
        async for batch in self._stream:
            yield [_spoken(line) for line in batch]

    async def body(self) -> bytes:
        return await self._stream.body()


def _spoken(body: bytes) -> bytes:
    for text, raw in _WRITTEN.items():
        body = body.replace(text, raw)
    return body
