"""JSON in and out, and shortcuts that avoid decoding. The only module that imports msgspec.

Integers of any size stay integers (other fast codecs turn those over 64 bits into floats); ``1.0``
stays a float; a float that doesn't fit 64 bits is an error; of equal keys the last wins.

A :class:`Raw` from a list or a watch line is a view into the whole response and keeps it in memory:
copy it with :func:`exact` before keeping it.
"""

import contextlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from syncer.api.objects import Key, Obj
from syncer.clusters import pieces

#: Replaces the contents of an undecodable object, with the reason. No API server sends a field of
#: this name.
UNREADABLE = "vsyncer.dev/unreadable"

Raw = msgspec.Raw
#: Raised for malformed JSON.
DecodeError = msgspec.DecodeError

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def decode(data: bytes | memoryview | msgspec.Raw) -> Obj:
    """Decode a JSON object into a private copy.

    Raises:
        DecodeError: The text is malformed.
    """
    try:
        decoded: Obj = _decode(data)
    except RecursionError as error:
        raise _told(error) from None
    return decoded


def _told(error: Exception) -> DecodeError:
    """Return the error with a hint: API servers accept 10,000 levels of nesting, and we 1,000; only
    an attacker writes either.
    """
    return error if isinstance(error, DecodeError) else DecodeError("it is nested deeper than can be read")


def seen(data: bytes | msgspec.Raw) -> Obj:
    """Decode an object that an API server has sent.

    An undecodable object comes without its contents.

    The reason replaces them (:data:`UNREADABLE`), so that the object exists for every reader, stops
    no other object, and doesn't count as gone.

    Raises:
        DecodeError: Not even its name is readable.
    """
    try:
        return lean(data)
    except DecodeError as error:
        return decode(_without_contents(bytes(data), error))


def lean(data: bytes | msgspec.Raw) -> Obj:
    """Decode an object, without its ``managedFields`` where they can be cut out of the text.

    They are most of what is decoded of a Pod, and nobody needs them. API servers write them last
    in the metadata of their own kinds. Their end is the first end of a list of objects: the text
    behind a ``"`` that ends a string cannot be a letter, so what follows is the next field. If it
    is another end after all, too little is cut, the brackets don't match, and all is decoded.

    Raises:
        DecodeError: The text is not a JSON object.
    """
    text = bytes(data)
    start = text.find(b',"managedFields":[{')
    try:
        if start > 0 and text.startswith(_OWN_KINDS) and not _END_OF_METADATA(text, 0, start):
            end = text.find(b"}]", start) + 2
            if text[end : end + 3] == b'},"' and text[end + 3 : end + 4].isalpha():
                with contextlib.suppress(DecodeError):
                    found: Obj = _decode(text[:start] + text[end:])
                    return found
        found = _decode(text)
    except RecursionError as error:
        raise _told(error) from None
    return found


#: The beginnings of objects whose fields an API server writes in the order of its Go types. Custom
#: resources begin otherwise: their fields are in the order of the alphabet.
_OWN_KINDS = (b'{"kind":"', b'{"metadata":{"name":"')


#: The end of an object's metadata: a field of it that comes before ``managedFields`` is none.
_END_OF_METADATA = re.compile(rb'\},"(?!(?:annotations|ownerReferences|finalizers|managedFields)")[A-Za-z]').search


def _without_contents(text: bytes, error: Exception) -> bytes:
    """Return the identity of an undecodable object, and its labels and annotations if they are readable."""
    whole = pieces.members(text)
    metadata = _readable(pieces.members(whole.get(b'"metadata"', b"{}")))
    if not isinstance(metadata.get("name"), str):
        raise error
    named = {name: value for name, value in whole.items() if name in (b'"apiVersion"', b'"kind"')}
    return encode({**_readable(named), "metadata": metadata, UNREADABLE: str(error)})


def _readable(members: Mapping[bytes, bytes]) -> Obj:
    """Return the readable members."""
    found: Obj = {}
    for name, value in members.items():
        try:
            found[_decode(name)] = _decode(value)
        except (DecodeError, RecursionError):
            continue
    return found


def encode(value: Any) -> bytes:
    """Encode JSON as bytes of exactly their size.

    The encoder's own result is shrunk from a larger buffer, and memory allocators do not fill the
    remaining holes: 3.2 KB for each cached object of 2.5 KB. A copy costs 0.4 µs and avoids that.
    """
    return bytes(memoryview(_encode(value)))


def encode_sorted(value: Any) -> str:
    """Encode JSON as text with sorted keys, so that equal values give equal texts."""
    return _encode_sorted(value).decode()


def exact(raw: bytes | msgspec.Raw) -> bytes:
    """Return a copy of the bytes of a view, so that the response can be freed."""
    return bytes(raw)


class _HeadMetadata(msgspec.Struct, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815  (the name in the JSON)


class _Head(msgspec.Struct, gc=False):
    metadata: _HeadMetadata


class Head(NamedTuple):
    """The identity of a version of an object."""

    key: Key
    uid: str
    resource_version: str


_decode_head = msgspec.json.Decoder(_Head).decode


#: The beginning of a built-in object as the API server writes it: the fields of the Go types in
#: their order. Custom resources have another order.
_BEGINNING = re.compile(
    rb'\{(?:"kind":"[^"\\]*","apiVersion":"[^"\\]*",)?"metadata":\{"name":"([^"\\]*)"'
    rb'(?:,"generateName":"[^"\\]*")?(?:,"namespace":"([^"\\]*)")?,"uid":"([^"\\]*)","resourceVersion":"([^"\\]*)"'
).match


def head(data: bytes | msgspec.Raw) -> Head:
    """Return key, uid and resourceVersion of an object, without decoding it if it begins as usual.

    Raises:
        DecodeError: The object is malformed. Not raised for errors behind a usual beginning.
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
    """A line of a watch: ``ADDED``, ``MODIFIED``, ``DELETED``, ``BOOKMARK`` or ``ERROR``, and its object."""

    type: str
    object: msgspec.Raw


_decode_event = msgspec.json.Decoder(WatchEvent).decode


#: The envelopes of an API server's events, with their length: cut off without reading the object.
_ENVELOPES = tuple(
    (kind, b'{"type":"%s","object":{' % kind.encode(), len(kind) + len('{"type":"","object":'))
    for kind in ("ADDED", "MODIFIED", "DELETED")
)


def watch_event(line: bytes) -> WatchEvent:
    """Cut a watch line out of its envelope, without decoding the object.

    Raises:
        DecodeError: The line is malformed. Not raised for errors within a usual envelope.
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
    """A part of a list: undecoded items, the version of the list, and the number of remaining
    items, if known.

    The items of built-in kinds have no ``apiVersion`` and ``kind``.
    """

    items: list[msgspec.Raw]
    resource_version: str
    remaining: int | None
    next_token: str


def split_list(data: bytes) -> Page:
    """Split the response to a LIST into its items, without decoding them.

    Raises:
        DecodeError: The response is malformed.
    """
    try:
        whole = _decode_list(data)
    except (DecodeError, RecursionError) as error:
        whole = _cut_up(data, _told(error))
    metadata = whole.metadata
    return Page(whole.items or [], metadata.resourceVersion, metadata.remainingItemCount, metadata.continue_)


def _cut_up(data: bytes, error: Exception) -> _List:
    """Split a list with an undecodable item."""
    parts = pieces.members(data)
    if not parts.keys() >= {b'"metadata"', b'"items"'}:
        raise error
    metadata = msgspec.json.decode(parts[b'"metadata"'], type=_ListMetadata)
    return _List(metadata, [msgspec.Raw(item) for item in pieces.elements(parts[b'"items"'])])
