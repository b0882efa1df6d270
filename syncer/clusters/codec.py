"""JSON in and out, and shortcuts that avoid decoding. The only module that imports msgspec.

Integers of any size stay integers (other fast codecs turn those over 64 bits into floats); ``1.0``
stays a float; a float that doesn't fit 64 bits is an error; of equal keys the last wins.

A :class:`Raw` from a list or a watch line is a view into the whole response and keeps it in memory:
copy it with :func:`exact` before keeping it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from syncer.api.objects import LONGEST_NAME, Key, Obj
from syncer.clusters import pieces

#: Replaces the contents of an object that can't be used, with the reason. No API server sends a
#: field of this name.
UNREADABLE = "vsyncer.dev/unreadable"

#: Bytes of the largest text that is decoded without counting its fields, items and brackets.
UNCOUNTED = 256 << 10
#: Most fields, items and brackets of a larger text: three times those of an object that is
#: accepted, as ``managedFields`` count, too.
MOST_PARTS = 120_000

Raw = msgspec.Raw
#: Null where None has another meaning.
NULL: Final = Raw(b"null")
#: The JSON of an object, as bytes of its own or as a view.
Undecoded: TypeAlias = bytes | msgspec.Raw
#: Raised for malformed JSON.
DecodeError = msgspec.DecodeError
#: The exceptions of a decoder: msgspec raises the last for texts that aren't UTF-8.
_MALFORMED = (DecodeError, RecursionError, UnicodeDecodeError)

#: The daemon's allocator maps blocks of at least so many bytes separately (:mod:`syncer.cli.run`).
#: By default, this threshold grows up to 32 MB with the first large block that is freed, and then
#: the holes of large texts stay in the heap. The smallest such block is one of 256 KiB, which each
#: TLS connection of uvloop has, and of which it uses little.
MAPPED = 256 << 10

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def decode(data: bytes | memoryview | msgspec.Raw, *, most: int = MOST_PARTS) -> Obj:
    """Decode a JSON object into a private copy.

    A large one may have ``most`` fields, items and brackets.

    Raises:
        DecodeError: The text is malformed, or has too many parts.
    """
    _must_be_readable(data, most)
    try:
        decoded: Obj = _decode(data)
    except (RecursionError, UnicodeDecodeError) as error:
        raise _decode_error(error) from None
    return decoded


def _must_be_readable(data: bytes | memoryview | msgspec.Raw, most: int) -> None:
    """Count the parts of a large text before it is decoded.

    Counting takes about 1 ms a MB, decoding up to 80.

    Raises:
        DecodeError: The text has more than ``most`` parts.
    """
    size = memoryview(data).nbytes
    if size > UNCOUNTED and (parts := pieces.count(bytes(data), most)) > most:
        raise DecodeError(f"it has {size} bytes with {parts} fields, items and brackets")


def _decode_error(error: Exception) -> DecodeError:
    """Return the error as a DecodeError.

    API servers accept 10,000 levels of nesting, and we 1,000; only an attacker writes either.
    """
    if isinstance(error, DecodeError):
        return error
    if isinstance(error, RecursionError):
        return DecodeError("it is nested deeper than can be read")
    return DecodeError(f"it is malformed: {error}")


def observed(data: bytes | msgspec.Raw) -> Obj:
    """Decode an object that an API server has sent.

    If it can't be decoded, the reason replaces its contents (:data:`UNREADABLE`). So the object
    exists for every reader, blocks no other object, and doesn't count as deleted.

    Raises:
        DecodeError: Not even its name is readable.
    """
    try:
        return lean(data)
    except DecodeError as error:
        return without_contents(data, error)


def stored(data: bytes) -> Obj:
    """Decode an object of a store, so without ``managedFields``."""
    try:
        found: Obj = _decode(data)
    except RecursionError:  # it was decoded from a shallower call
        return observed(data)
    return found


class _Outline(msgspec.Struct, gc=False):
    metadata: dict[str, Any]


_decode_outline = msgspec.json.Decoder(_Outline).decode


def outline(data: bytes) -> Obj:
    """Decode only the metadata of an object of a store.

    The rest, which tenants fill, is skipped at a tenth of the cost.
    """
    try:
        return {"metadata": _decode_outline(data).metadata}
    except RecursionError:  # it was decoded from a shallower call
        return {"metadata": stored(data)["metadata"]}


def lean(data: bytes | msgspec.Raw) -> Obj:
    """Decode an object, without its ``managedFields`` where they can be cut out of the text.

    They are most of the text of a Pod, and the engine doesn't use them. API servers write them
    last in the metadata of their own kinds. Their end is the first end of a list of objects: no
    letter follows the ``"`` that ends a string, so the next field begins there. If the end belongs
    to another list, too little is cut: the brackets don't match, and the whole text is decoded.

    Raises:
        DecodeError: The text is not a JSON object, or has too many parts.
    """
    return lean_with_text(data)[0]


def lean_with_text(data: bytes | msgspec.Raw) -> tuple[Obj, bytes]:
    """Decode an object as :func:`lean` does, and return it with the text that was decoded.

    Raises:
        DecodeError: As :func:`lean`.
    """
    text = bytes(data)
    if len(text) > UNCOUNTED:
        _must_be_readable(text, MOST_PARTS)
    start = text.find(b',"managedFields":[{')
    try:
        if start > 0 and text.startswith(_OWN_KINDS) and not _END_OF_METADATA(text, 0, start):
            # One character is found ten times as fast as two.
            end = text.find(b"]", start)
            if text[end - 1 : end] != b"}":
                end = text.find(b"}]", start) + 1
            end += 1
            if text[end : end + 3] == b'},"' and text[end + 3 : end + 4].isalpha():
                view = memoryview(text)
                cut = b"".join((view[:start], view[end:]))
                try:
                    return _decode(cut), cut
                except DecodeError:
                    return _decode(text), text
        return _decode(text), text
    except (RecursionError, UnicodeDecodeError) as error:
        raise _decode_error(error) from None


#: Largest malformed text that is cut up, in bytes: a step of the event loop cuts 1 MB in up to a
#: second.
MOST_CUT = 64 << 10
#: The beginnings of objects whose fields an API server writes in the order of its Go types. Custom
#: resources begin otherwise: their fields are in the order of the alphabet.
_OWN_KINDS = (b'{"kind":"', b'{"metadata":{"name":"')


#: The end of an object's metadata: a field of it that comes before ``managedFields`` is none.
_END_OF_METADATA = re.compile(
    rb'\},"(?!(?:annotations|ownerReferences|finalizers|managedFields)")[A-Za-z]',
).search


def without_contents(data: bytes | msgspec.Raw, error: Exception) -> Obj:
    """Return an unusable object without its contents; ``error`` is the reason.

    The identity of the object remains, with its labels and annotations if they are well-formed and
    not too long to be decoded, and the reason (:data:`UNREADABLE`). Nothing else is decoded.

    Raises:
        DecodeError: Not even its name is readable, or it comes after thousands of fields.
    """
    text = bytes(data)
    members: Mapping[bytes, Any]
    try:
        whole = _decode_members(text)
        members = _members(whole, _KIND)
        metadata: Mapping[bytes, Any] = _members(
            _decode_metadata(whole.metadata),
            (*_TEXTS, *_KEYS),
        )
    except _MALFORMED:
        found = pieces.first_members(text)
        members = {name: found[name] for name in (b'"apiVersion"', b'"kind"') if name in found}
        metadata = pieces.first_members(found.get(b'"metadata"', b"{}"))
    return identity({**_readable(members), "metadata": _readable(metadata)}, error)


def identity(obj: Any, error: Exception, *, most: int | None = None) -> Obj:
    """Return a decoded object as :func:`without_contents` does.

    Its labels and its annotations remain unless the JSON of one has more than ``most`` bytes.

    Raises:
        DecodeError: It has no name.
    """
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict) or not _is_name(metadata.get("name")):
        raise _decode_error(error)
    found = {name: obj[name] for name in _KIND if isinstance(obj.get(name), str)}
    kept = {name: metadata[name] for name in _TEXTS if isinstance(metadata.get(name), str)}
    pairs = {name: metadata[name] for name in _KEYS if _is_mapping(metadata.get(name))}
    if most is None or all(len(_encode(each)) <= most for each in pairs.values()):
        kept |= pairs
    return {**found, "metadata": {"resourceVersion": "", **kept}, UNREADABLE: str(error)}


#: The fields that an object keeps without its contents.
_KIND = ("apiVersion", "kind")
_TEXTS = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
_KEYS = ("labels", "annotations")
#: Bytes of JSON of each of these.
MOST_KEPT = 1 << 20


def _undecoded(*names: str) -> Any:
    """Return the decoder of an object's members of these names, each undecoded.

    Others are skipped.
    """
    fields = [(name, msgspec.Raw, msgspec.Raw(b"null")) for name in names]
    return msgspec.json.Decoder(msgspec.defstruct("_Members", fields)).decode


_decode_members = _undecoded(*_KIND, "metadata")
_decode_metadata = _undecoded(*_TEXTS, *_KEYS)


def _members(found: Any, names: Iterable[str]) -> dict[bytes, Any]:
    members = {b'"%s"' % name.encode(): getattr(found, name) for name in names}
    return {name: value for name, value in members.items() if size(value) <= MOST_KEPT}


def _is_mapping(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def _readable(members: Mapping[bytes, Any]) -> Obj:
    """Return the readable members."""
    found: Obj = {}
    for name, value in members.items():
        try:
            found[_decode(name)] = _decode(value)
        except _MALFORMED:
            continue
    return found


def encode(value: Any) -> bytes:
    """Encode JSON as bytes of exactly their size.

    The encoder's own result is shrunk from a larger buffer, and memory allocators do not fill the
    remaining holes: 3.2 KB for each cached object of 2.5 KB. A copy costs 0.4 µs and avoids that.
    A large buffer is pages of its own, of which shrinking gives the rest back.
    """
    data: bytes = _encode(value)
    return data if len(data) > MAPPED else bytes(memoryview(data))


def encode_sorted(value: Any) -> str:
    """Encode JSON as text with sorted keys, so that equal values give equal texts."""
    return _encode_sorted(value).decode()


def size(raw: Undecoded) -> int:
    """Return the number of bytes."""
    if isinstance(raw, bytes):
        return len(raw)
    return memoryview(raw).nbytes


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
    kind: str = ""


class Head(msgspec.Struct, gc=False, frozen=True):
    """The identity of a version of an object. ``kind`` is ``""`` in lists of built-in kinds."""

    key: Key
    uid: str
    resource_version: str
    kind: str = ""


_decode_head = msgspec.json.Decoder(_Head).decode


#: The beginning of a built-in object as the API server writes it: the fields of the Go types in
#: their order, with a name that a URL can have. Custom resources have another order.
_BEGINNING = re.compile(
    rb'\{(?:"kind":"([A-Za-z0-9]*)","apiVersion":"[^"\\]*",)?'
    rb'"metadata":\{"name":"(?!\.\.?")([!#$&-.0-\[\]-~]{1,253})"'
    rb'(?:,"generateName":"[^"\\]*")?(?:,"namespace":"([a-z0-9-]{1,63})")?'
    rb',"uid":"([!#-\[\]-~]{0,512})"'
    rb',"resourceVersion":"([!#-\[\]-~]{1,512})"',
).match

#: Maximum length of a uid and of a resourceVersion, which are kept of objects that are gone, too.
#: API servers give some 40 characters.
LONGEST_VERSION = 512
_is_namespace = re.compile(r"(?:[a-z0-9-]{1,63})?\Z").match


def _is_name(name: object) -> bool:
    """Return True if an object may have this name: it can be a part of a URL's path.

    https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#path-segment-names
    """
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or name in (".", ".."):
        return False
    return name.isprintable() and "/" not in name and "%" not in name


def head(data: bytes | msgspec.Raw) -> Head:
    """Return the identity of an object, without decoding it if it begins as usual.

    Raises:
        DecodeError: The object has no name, or one that no object can have. Not raised for errors
            behind a usual beginning.
    """
    found = _BEGINNING(data)
    if found:
        kind, name, namespace, uid, version = found.groups(b"")
        return Head(
            Key(namespace.decode(), name.decode()),
            uid.decode(),
            version.decode(),
            kind.decode(),
        )
    try:
        whole = _decode_head(data)
    except _MALFORMED as error:
        whole = _decode_head(encode(without_contents(data, error)))
    metadata = whole.metadata
    if not _is_name(metadata.name) or not _is_namespace(metadata.namespace):
        raise DecodeError("its name or namespace is none that an object can have")
    _must_be_short(metadata)
    return Head(
        Key(metadata.namespace, metadata.name),
        metadata.uid,
        metadata.resourceVersion,
        whole.kind,
    )


def version(data: bytes | msgspec.Raw) -> str:
    """Return the resourceVersion of a bookmark, which is an object without a name.

    Raises:
        DecodeError: It is malformed.
    """
    try:
        return _decode_head(data).metadata.resourceVersion
    except (RecursionError, UnicodeDecodeError) as error:
        raise _decode_error(error) from None


class _Labels(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct, gc=False):
    metadata: _Labels


_decode_labels = msgspec.json.Decoder(_Labelled).decode


def label(data: bytes | msgspec.Raw, name: str) -> str | None:
    """Return the value of an object's label, without decoding the rest; None if it has none.

    Raises:
        DecodeError: The labels can't be read.
    """
    try:
        labels = _decode_labels(data).metadata.labels
    except _MALFORMED as error:
        labels = without_contents(data, error)["metadata"].get("labels")
        if labels is None:
            raise _decode_error(error) from None
    return labels.get(name) if labels else None


class InvolvedObject(NamedTuple):
    """The object that an Event is about, as the Event names it."""

    group: str
    kind: str
    key: Key
    uid: str


class _Involved(msgspec.Struct, gc=False):
    apiVersion: str = ""  # noqa: N815  (the name in the JSON)
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _Event(msgspec.Struct, gc=False):
    involvedObject: _Involved  # noqa: N815  (the name in the JSON)


_decode_event = msgspec.json.Decoder(_Event).decode


def involved_object(data: Undecoded) -> InvolvedObject | None:
    """Return what an Event is about, without decoding the rest; None if that can't be read."""
    try:
        found = _decode_event(data).involvedObject
    except _MALFORMED:
        return None
    group = found.apiVersion.rpartition("/")[0]
    return InvolvedObject(group, found.kind, Key(found.namespace, found.name), found.uid)


class _Metadata(msgspec.Struct, gc=False):
    """The types that the engine relies on in the metadata of every object."""

    name: str
    resourceVersion: str  # noqa: N815  (the name in the JSON)
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    ownerReferences: list[dict[str, Any]] | None = None  # noqa: N815
    deletionTimestamp: str = ""  # noqa: N815


def check(obj: Obj, key: Key) -> None:
    """Check the identity of a decoded object, and the types of its metadata.

    Raises:
        DecodeError: The object isn't that of the key, or its metadata is malformed.
    """
    try:
        metadata = msgspec.convert(obj.get("metadata"), _Metadata)
    except msgspec.ValidationError as error:
        raise DecodeError(f"its metadata is malformed: {error}") from None
    if metadata.name != key.name or metadata.namespace != key.namespace:
        raise DecodeError("it says two different names")
    if not metadata.resourceVersion:
        raise DecodeError("it has no resourceVersion")
    _must_be_short(metadata)


def _must_be_short(metadata: _HeadMetadata | _Metadata) -> None:
    if max(len(metadata.uid), len(metadata.resourceVersion)) > LONGEST_VERSION:
        raise DecodeError(f"its uid or resourceVersion has more than {LONGEST_VERSION} characters")


class WatchEvent(msgspec.Struct, gc=False, frozen=True):
    """A line of a watch: its type and its object.

    The type is ``ADDED``, ``MODIFIED``, ``DELETED``, ``BOOKMARK`` or ``ERROR``.
    """

    type: str
    object: Undecoded
    #: The identity of the object, if a reader has found it already.
    head: Head | None = None


class _Line(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


_decode_line = msgspec.json.Decoder(_Line).decode


#: The envelopes of an API server's events, with their length: cut off without reading the object.
_ENVELOPES = tuple(
    (kind, b'{"type":"%s","object":{' % kind.encode(), len(kind) + len('{"type":"","object":'))
    for kind in ("ADDED", "MODIFIED", "DELETED")
)


def watch_event(line: bytes) -> WatchEvent:
    """Cut a watch line out of its envelope, without decoding the object.

    Raises:
        DecodeError: The line is malformed. Not raised for errors within a usual envelope, nor in a
            line of up to ``MOST_CUT`` bytes for errors within the object.
    """
    for kind, beginning, at in _ENVELOPES:
        if line.startswith(beginning) and line.endswith(b"}}"):
            return WatchEvent(kind, line[at:-1])
    try:
        found = _decode_line(line)
        return WatchEvent(found.type, found.object)
    except _MALFORMED as error:
        parts = pieces.members(line) if len(line) <= MOST_CUT else {}
        if not parts.keys() >= {b'"type"', b'"object"'}:
            raise _decode_error(error) from None
        return WatchEvent(_decode(parts[b'"type"']), parts[b'"object"'])


class _ListMetadata(msgspec.Struct, rename={"continue_": "continue"}):
    resourceVersion: str = ""  # noqa: N815  (the name in the JSON)
    continue_: str = ""
    remainingItemCount: int | None = None  # noqa: N815  (the name in the JSON)


class _List(msgspec.Struct):
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)
    items: list[msgspec.Raw] | None = None


_decode_list = msgspec.json.Decoder(_List).decode


class Page(NamedTuple):
    """A part of a list, with undecoded items.

    It has the version of the list, and the number of remaining items, if known. The items of
    built-in kinds have no ``apiVersion`` and ``kind``.
    """

    items: list[msgspec.Raw]
    resource_version: str
    remaining: int | None
    next_token: str


def split_list(data: bytes) -> Page:
    """Split the response to a LIST into its items, without decoding them.

    Raises:
        DecodeError: The response is malformed, or it has a malformed item and over ``MOST_CUT``
        bytes.
    """
    try:
        whole = _decode_list(data)
    except _MALFORMED as error:
        if len(data) > MOST_CUT:
            raise _decode_error(error) from None
        return cut_list(data)
    return _page(whole)


def cut_list(data: bytes) -> Page:
    """Split the response to a LIST that has a malformed item.

    Raises:
        DecodeError: It is malformed elsewhere.
    """
    parts = pieces.members(data)
    return _page_of(parts, pieces.elements(parts.get(b'"items"', b"")))


async def cut_list_in_steps(data: bytes) -> Page:
    """Do as :func:`cut_list`, and let other tasks run in between: it takes up to a second a MB."""
    parts = pieces.named(await pieces.elements_in_steps(data))
    return _page_of(parts, await pieces.elements_in_steps(parts.get(b'"items"', b"")))


def _page_of(parts: Mapping[bytes, bytes], items: Iterable[bytes]) -> Page:
    if not parts.keys() >= {b'"metadata"', b'"items"'}:
        raise DecodeError("the response is no list, or ends early")
    metadata = msgspec.json.decode(parts[b'"metadata"'], type=_ListMetadata)
    return _page(_List(metadata, [msgspec.Raw(item) for item in items]))


def _page(whole: _List) -> Page:
    metadata = whole.metadata
    return Page(
        whole.items or [],
        metadata.resourceVersion,
        metadata.remainingItemCount,
        metadata.continue_,
    )


def parts(page: Page, size: int) -> Iterator[Page]:
    """Divide a page into parts of about so many bytes; an item isn't divided."""
    items: list[msgspec.Raw] = []
    room = size
    for item in page.items:
        items.append(item)
        room -= memoryview(item).nbytes
        if room <= 0:
            yield page._replace(items=items)
            items = []
            room = size
    if items:
        yield page._replace(items=items)
