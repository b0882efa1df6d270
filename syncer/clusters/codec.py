"""JSON in and out, and the shortcuts past it: the only module that imports msgspec.

Integers of any size stay integers (``msgspec`` keeps those over 64 bits, other fast codecs turn them into floats);
``1.0`` stays a float; a float that doesn't fit 64 bits is an error; of equal keys the last one stays.

A :class:`Raw` taken from a list or a watch line is a view into the whole reply and keeps it in memory: copy it with
:func:`exact` before keeping it.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from syncer.api.objects import Key, Obj
from syncer.clusters import pieces

#: In place of the contents of an object that can't be read: why. No API server sends a field of this name.
UNREADABLE = "vsyncer.dev/unreadable"

Raw = msgspec.Raw
#: What a JSON text that can't be read raises.
DecodeError = msgspec.DecodeError

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def decode(data: bytes | memoryview | msgspec.Raw) -> Obj:
    """Read a JSON object; each call gives a private copy. Raises :data:`DecodeError`."""
    try:
        decoded: Obj = _decode(data)
    except RecursionError as error:
        raise _told(error) from None
    return decoded


def _told(error: Exception) -> DecodeError:
    """API servers take what is nested 10,000 deep, we 1,000; nobody but an attacker writes either."""
    return error if isinstance(error, DecodeError) else DecodeError("it is nested deeper than can be read")


def seen(data: bytes | msgspec.Raw) -> Obj:
    """Read an object that an API server has sent; one that can't be read comes without its contents.

    Its place says why (:data:`UNREADABLE`), so that it is there for all, stops no other one, and isn't taken for gone.
    Raises :data:`DecodeError` where not even its name can be made out.
    """
    try:
        return decode(data)
    except DecodeError as error:
        return decode(_without_contents(bytes(data), error))


def _without_contents(text: bytes, error: Exception) -> bytes:
    """Return the identity of an object that can't be read, and its labels and annotations where these can be."""
    whole = pieces.members(text)
    metadata = _readable(pieces.members(whole.get(b'"metadata"', b"{}")))
    if not isinstance(metadata.get("name"), str):
        raise error
    named = {name: value for name, value in whole.items() if name in (b'"apiVersion"', b'"kind"')}
    return encode({**_readable(named), "metadata": metadata, UNREADABLE: str(error)})


def _readable(members: Mapping[bytes, bytes]) -> Obj:
    """Those members that can be read."""
    found: Obj = {}
    for name, value in members.items():
        try:
            found[_decode(name)] = _decode(value)
        except (DecodeError, RecursionError):
            continue
    return found


def encode(value: Any) -> bytes:
    """Write JSON as bytes of exactly their size.

    The encoder's own result is cut down from a larger buffer, and memory allocators do not fill the holes that
    remain: 3.2 KB for each 2.5 KB object that is kept. A copy costs 0.4 µs and avoids it.
    """
    return bytes(memoryview(_encode(value)))


def encode_sorted(value: Any) -> str:
    """Write JSON as text with the names of every object in order, so that equal values give equal texts."""
    return _encode_sorted(value).decode()


def exact(raw: bytes | msgspec.Raw) -> bytes:
    """Return the bytes of a view alone, so that what it was cut from can go."""
    return bytes(raw)


class _HeadMetadata(msgspec.Struct, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815  (the name in the JSON)


class _Head(msgspec.Struct, gc=False):
    metadata: _HeadMetadata


class Head(NamedTuple):
    """What identifies one version of an object."""

    key: Key
    uid: str
    resource_version: str


_decode_head = msgspec.json.Decoder(_Head).decode


#: How the API server writes the beginning of its own kinds: the fields of the Go types in their order. Custom resources
#: are written in another order, and begin otherwise.
_BEGINNING = re.compile(
    rb'\{(?:"kind":"[^"\\]*","apiVersion":"[^"\\]*",)?"metadata":\{"name":"([^"\\]*)"'
    rb'(?:,"generateName":"[^"\\]*")?(?:,"namespace":"([^"\\]*)")?,"uid":"([^"\\]*)","resourceVersion":"([^"\\]*)"'
).match


def head(data: bytes | msgspec.Raw) -> Head:
    """Key, uid and resourceVersion of an object, without decoding it where it begins as usual.

    Raises :data:`DecodeError`, but not for what is wrong behind a usual beginning.
    """
    found = _BEGINNING(data)
    if found:
        name, namespace, uid, version = found.groups(b"")
        return Head(Key(namespace.decode(), name.decode()), uid.decode(), version.decode())
    try:
        metadata = _decode_head(data).metadata
    except (DecodeError, RecursionError) as error:
        metadata = _decode_head(_without_contents(bytes(data), _told(error))).metadata
    return Head(Key(metadata.namespace, metadata.name), metadata.uid, metadata.resourceVersion)


class WatchEvent(msgspec.Struct, gc=False, frozen=True):
    """One line of a watch: ``ADDED``, ``MODIFIED``, ``DELETED``, ``BOOKMARK`` or ``ERROR`` and its object."""

    type: str
    object: msgspec.Raw


_decode_event = msgspec.json.Decoder(WatchEvent).decode


#: How an API server writes the envelope of an event, with the length of that: opened so, nothing is read of the object.
_ENVELOPES = tuple(
    (kind, b'{"type":"%s","object":{' % kind.encode(), len(kind) + len('{"type":"","object":'))
    for kind in ("ADDED", "MODIFIED", "DELETED")
)


def watch_event(line: bytes) -> WatchEvent:
    """Open the envelope of a watch line and leave the object as it is.

    Raises :data:`DecodeError`, but not for what is wrong within a usual envelope.
    """
    for kind, beginning, at in _ENVELOPES:
        if line.startswith(beginning) and line.endswith(b"}}"):
            return WatchEvent(kind, msgspec.Raw(line[at:-1]))
    try:
        return _decode_event(line)
    except (DecodeError, RecursionError) as error:
        parts = pieces.members(line)
        if not parts.keys() >= {b'"type"', b'"object"'}:
            raise _told(error) from None
        return WatchEvent(_decode(parts[b'"type"']), msgspec.Raw(parts[b'"object"']))


class _ListMetadata(msgspec.Struct, rename={"continue_": "continue"}):
    resourceVersion: str = ""  # noqa: N815  (the name in the JSON)
    continue_: str = ""
    remainingItemCount: int | None = None  # noqa: N815  (the name in the JSON)


class _List(msgspec.Struct):
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)
    items: list[msgspec.Raw] | None = None


_decode_list = msgspec.json.Decoder(_List).decode


class Page(NamedTuple):
    """A part of a list: undecoded items, the version of the whole list, and how many are still to come, if known.

    The items of built-in kinds have no ``apiVersion`` and ``kind`` of their own.
    """

    items: list[msgspec.Raw]
    resource_version: str
    remaining: int | None
    next_token: str


def split_list(data: bytes) -> Page:
    """Cut the reply to a LIST into its items, without decoding these. Raises :data:`DecodeError`."""
    try:
        whole = _decode_list(data)
    except (DecodeError, RecursionError) as error:
        whole = _cut_up(data, _told(error))
    metadata = whole.metadata
    return Page(whole.items or [], metadata.resourceVersion, metadata.remainingItemCount, metadata.continue_)


def _cut_up(data: bytes, error: Exception) -> _List:
    """Return a list of which some item can't be read."""
    parts = pieces.members(data)
    if not parts.keys() >= {b'"metadata"', b'"items"'}:
        raise error
    metadata = msgspec.json.decode(parts[b'"metadata"'], type=_ListMetadata)
    return _List(metadata, [msgspec.Raw(item) for item in pieces.elements(parts[b'"items"'])])
