"""JSON in and out, and the shortcuts past it."""

import asyncio
import json
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncer.api.objects import Key, Obj
from syncer.clusters import codec, pieces


def test_numbers_come_back_as_they_were() -> None:
    text = b'{"big":123456789012345678901234567890,"neg":-9223372036854775809,"one":1,"float":1.0,"exp":1e300}'
    decoded = codec.decode(text)
    assert decoded == json.loads(text)
    assert [type(value) for value in decoded.values()] == [int, int, int, float, float]
    assert codec.decode(codec.encode(decoded)) == decoded
    assert b'"big":123456789012345678901234567890' in codec.encode(decoded)


@pytest.mark.parametrize("broken", [b"", b"{", b'{"a":1e999}', b"\xff", b"{} {}"])
def test_malformed_json_is_one_kind_of_error(broken: bytes) -> None:
    with pytest.raises(codec.DecodeError):
        codec.decode(broken)


def test_encoded_bytes_have_their_exact_size() -> None:
    encoded = codec.encode({"a": "x" * 1000})
    assert sys.getsizeof(encoded) == sys.getsizeof(b"") + len(encoded)
    assert encoded == b'{"a":"' + b"x" * 1000 + b'"}'


def test_decoding_twice_gives_two_copies() -> None:
    raw = codec.encode({"a": {"b": 1}})
    one, two = codec.decode(raw), codec.decode(raw)
    one["a"]["b"] = 2
    assert two == {"a": {"b": 1}}


def test_list_is_cut_into_items() -> None:
    items = [
        {"metadata": {"name": f"n{n}", "namespace": "s", "uid": f"u{n}", "resourceVersion": str(n)}} for n in range(3)
    ]
    whole = {
        "kind": "List",
        "metadata": {"resourceVersion": "7", "continue": "c", "remainingItemCount": 9},
        "items": items,
    }
    page = codec.split_list(json.dumps(whole).encode())
    assert (page.resource_version, page.next_token, page.remaining) == ("7", "c", 9)
    assert [codec.decode(raw) for raw in page.items] == items
    assert [codec.head(raw) for raw in page.items] == [codec.Head(Key("s", f"n{n}"), f"u{n}", str(n)) for n in range(3)]
    assert json.loads(codec.exact(page.items[1])) == items[1]


def test_last_page_and_an_empty_list() -> None:
    assert codec.split_list(b'{"metadata":{"resourceVersion":"7"},"items":null}') == ([], "7", None, "")
    assert codec.split_list(b'{"metadata":{},"items":[]}') == ([], "", None, "")


def test_head_of_a_cluster_scoped_object() -> None:
    assert codec.head(b'{"metadata":{"name":"n","other":[1]},"spec":{}}') == codec.Head(Key("", "n"), "", "", "")


def test_event_keeps_its_object_undecoded() -> None:
    event = codec.watch_event(b'{"type":"ADDED","object":{"metadata":{"name":"n"}}}')
    assert (event.type, codec.exact(event.object)) == ("ADDED", b'{"metadata":{"name":"n"}}')
    with pytest.raises(codec.DecodeError):
        codec.watch_event(b"{}")


@pytest.mark.parametrize("levels", [1_100, 9_000])
def test_nesting_beyond_the_limit_is_an_error_like_any_other(levels: int) -> None:
    """An API server takes 10,000 levels, and a tenant may write them into a field without a schema."""
    deep = b'{"apiVersion":"v1","metadata":{"name":"a"},"spec":' + b'{"a":' * levels + b"1" + b"}" * levels + b"}"
    with pytest.raises(codec.DecodeError, match="nested deeper"):
        codec.decode(deep)


_FIELDS = st.sampled_from(["name", "generateName", "namespace", "uid", "resourceVersion", "labels"])
_TEXT = st.text(st.characters(codec="utf-8"), max_size=6)


@given(st.dictionaries(_FIELDS, _TEXT), st.booleans(), st.booleans())
def test_head_is_the_same_in_any_order_of_fields(metadata: Obj, kind: bool, sort: bool) -> None:
    order = {"name": 0, "generateName": 1, "namespace": 2, "uid": 3, "resourceVersion": 4, "labels": 5}
    metadata = dict(sorted(metadata.items(), key=lambda item: item[0] if sort else str(order[item[0]])))
    obj: Obj = {"kind": "Pod", "apiVersion": "v1"} if kind else {}
    metadata |= {"name": "a", **({"namespace": "shop"} if "namespace" in metadata else {})}
    raw = msgspec.json.encode({**obj, "metadata": metadata, "spec": {"name": "other"}})
    found = {name: metadata.get(name, "") for name in ("name", "namespace", "uid", "resourceVersion")}
    key = Key(found["namespace"], found["name"])
    assert codec.head(raw) == codec.Head(key, found["uid"], found["resourceVersion"], obj.get("kind", ""))


@pytest.mark.parametrize("order", ["built-in", "custom"])
@pytest.mark.parametrize(
    "fields",
    [{"name": name} for name in ("", ".", "..", "a/b", "a%2fb", "a\nb", "x" * 254, "\x1b[31m")]
    + [{"name": "a", "namespace": namespace} for namespace in ("a/b", "..", "A", "x" * 64, "\u00e9")],
)
def test_head_refuses_names_that_no_object_can_have(fields: Obj, order: str) -> None:
    known = {"uid": "u", "resourceVersion": "7"}
    metadata = {**fields, **known} if order == "built-in" else {**known, **fields}
    with pytest.raises(codec.DecodeError):
        codec.head(msgspec.json.encode({"metadata": metadata}))


def test_head_keeps_the_names_that_api_servers_allow() -> None:
    for name in ("system:node", "a_b", "é", "a b", "web.shop.svc", "x" * 253):
        assert codec.head(msgspec.json.encode({"metadata": {"name": name}})).key == Key("", name)


def test_text_that_is_no_utf_8_is_malformed_wherever_it_stands() -> None:
    with pytest.raises(codec.DecodeError):
        codec.head(b'{"metadata":{"name":"\xff","uid":"u","resourceVersion":"7"}}')
    for fields in (b'"uid":"\xff","resourceVersion":"7"', b'"uid":"u","resourceVersion":"\xff"'):
        text = b'{"metadata":{"name":"a",%s}}' % fields
        assert codec.head(text).key == Key("", "a")
        assert codec.UNREADABLE in codec.observed(text)


def test_beginning_of_an_api_servers_reply_is_enough() -> None:
    """Behind it nothing is read, so it costs the same for any size."""
    begun = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7","x'
    assert codec.head(begun) == codec.Head(Key("b", "a"), "u", "7", "Pod")
    listed = b'{"metadata":{"name":"a","generateName":"a-","uid":"u","resourceVersion":"7"}'
    assert codec.head(listed) == codec.Head(Key("", "a"), "u", "7", "")


# -- what can't be read ----------------------------------------------------------------------------

#: JSON that an API server takes and we can't read, or that no JSON library takes.
UNREADABLE = [b"[" * 5000 + b"]" * 5000, b"1e999", rb'"a\ud800"']


def _whole(name: str, contents: bytes = b'"x"') -> bytes:
    """Return a custom resource as API servers write it, with `{`, `]` and a quotation mark where
    they must not count.
    """
    notes = rb'"annotations":{"a":"{[\"]"},"labels":{"b":"c"}'
    fields = b'"name":"%s","namespace":"shop","resourceVersion":"7","uid":"u1"' % name.encode()
    return b'{"apiVersion":"example.org/v1","kind":"Widget","metadata":{%s,%s},"spec":%s}' % (notes, fields, contents)


@pytest.mark.parametrize("contents", UNREADABLE, ids=["too deep", "too large", "half a character"])
def test_object_that_cannot_be_read_is_there_without_its_contents(contents: bytes) -> None:
    text = _whole("web", contents)
    with pytest.raises(codec.DecodeError):
        codec.decode(text)
    assert codec.head(text) == codec.Head(Key("shop", "web"), "u1", "7", "Widget")
    observed_obj = codec.observed(text)
    assert observed_obj.pop(codec.UNREADABLE)
    assert observed_obj == {name: value for name, value in codec.decode(_whole("web")).items() if name != "spec"}


def test_object_without_contents_keeps_only_well_formed_fields() -> None:
    metadata = {"name": "a", "uid": 5, "labels": {"b": "c"}, "annotations": {"d": 1}, "finalizers": "e"}
    error = codec.DecodeError("why")
    kept = {"name": "a", "resourceVersion": "", "labels": {"b": "c"}}
    for obj in ({"kind": "X", "metadata": metadata}, {"kind": "X", "metadata": metadata, "spec": float("1e308")}):
        assert codec.identity(obj, error) == {"kind": "X", "metadata": kept, codec.UNREADABLE: "why"}
    nothings: list[Any] = [5, None, [], {}, {"metadata": []}, {"metadata": {"name": 5}}]
    for nothing in nothings:
        with pytest.raises(codec.DecodeError, match="why"):
            codec.identity(nothing, error)


@pytest.mark.parametrize("contents", UNREADABLE, ids=["too deep", "too large", "half a character"])
def test_unreadable_metric_leaves_the_others_readable(contents: bytes) -> None:
    items = b",".join([_whole("a"), _whole("b", contents), _whole("c")])
    page = codec.split_list(b'{"kind":"WidgetList","metadata":{"resourceVersion":"9"},"items":[%s]}' % items)
    assert page.resource_version == "9"
    assert [codec.head(raw).key.name for raw in page.items] == ["a", "b", "c"]
    assert [codec.UNREADABLE in codec.observed(raw) for raw in page.items] == [False, True, False]
    event = codec.watch_event(b'{"type":"ADDED","object":%s}' % _whole("b", contents))
    assert (event.type, codec.head(event.object).key.name) == ("ADDED", "b")


@pytest.mark.parametrize("broken", [b"", b"{", b'{"items":[1e999]}', b'{"metadata":{"uid":"u"},"a":1e999}'])
def test_malformed_event_is_an_error(broken: bytes) -> None:
    for read in (codec.observed, codec.watch_event):
        with pytest.raises(codec.DecodeError):
            read(broken)


@pytest.mark.parametrize("broken", [b"", b"{", b'{"items":[', b"[" * 5000, b'{"metadata":{"a":' + b"[" * 5000])
def test_response_that_is_no_list_is_an_error(broken: bytes) -> None:
    with pytest.raises(codec.DecodeError):
        codec.split_list(broken)


def test_large_malformed_text_is_not_cut_up() -> None:
    """Each takes up to a second a megabyte, in a single step of the event loop."""
    filler = b"[" + b"0," * codec.MOST_CUT + b"0]"
    with pytest.raises(codec.DecodeError):
        codec.split_list(b'{"metadata":{},"items":[{"a":nope},%s]}' % filler)
    with pytest.raises(codec.DecodeError):
        codec.watch_event(b'{"type": "ADDED", "object": {"a":nope, "b": %s}}' % filler)
    named, late = _whole("a", b"nope"), b'{"spec":{"a":%s,"b":nope},%s' % (filler, _whole("a")[1:])
    found = codec.without_contents(named[:-1] + b',"z":%s}' % filler, ValueError("why"))
    assert found["metadata"]["name"] == "a"
    long = b'{"spec":{"a":"%s","b":nope},%s' % (b"x" * codec.MOST_CUT, _whole("a")[1:])
    assert codec.without_contents(long, ValueError("why"))["metadata"]["name"] == "a"
    with pytest.raises(codec.DecodeError, match="why"):
        codec.without_contents(late, codec.DecodeError("why"))


def test_large_malformed_list_is_cut_up_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "BREATH", 50)
    items = b",".join([_whole("a"), _whole("b", b"[" + b"0," * 1000 + b"nope]"), _whole("c")])
    body = b'{"metadata":{"resourceVersion":"9"},"items":[%s]}' % items

    async def scenario() -> tuple[codec.Page, int]:
        steps, cutting = 0, asyncio.create_task(codec.cut_list_in_steps(body))
        while not cutting.done():
            steps += 1
            await asyncio.sleep(0)
        return cutting.result(), steps

    page, steps = asyncio.run(scenario())
    assert page == codec.cut_list(body)
    assert [codec.head(raw).key.name for raw in page.items] == ["a", "b", "c"]
    assert steps > 20


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda below: st.lists(below) | st.dictionaries(st.text(max_size=3), below),
    max_leaves=5,
)


@given(st.dictionaries(st.text(max_size=3), _JSON, max_size=3), st.booleans())
def test_pieces_are_read_as_a_reader_splits_them(value: Obj, spaced: bool) -> None:
    text = json.dumps(value, indent=1 if spaced else None, ensure_ascii=spaced).encode()
    found = {json.loads(name): json.loads(piece) for name, piece in pieces.members(text).items()}
    assert found == value
    items = json.dumps(list(value.values())).encode()
    assert [json.loads(piece) for piece in pieces.elements(items)] == list(value.values())


@pytest.mark.parametrize("end", [b'\\"', b"\\", b"\\\\", b"]}"])
def test_string_without_an_end_is_read_once(end: bytes) -> None:
    """Reading it again from each of its quotation marks would take hours."""
    unterminated = b'{"metadata":{},"items":["' + b'\\"' * 1_000_000 + end
    assert pieces.members(unterminated) == {b'"metadata"': b"{}"}


# -- without managedFields -------------------------------------------------------------------------

JSON_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a]}[{,":\\ ', max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a]},"', max_size=5), inner, max_size=3),
    max_leaves=8,
)
ENTRIES = st.lists(st.dictionaries(st.sampled_from(["manager", "fieldsV1", "}]"]), JSON_VALUE, min_size=1), max_size=3)
TEXT = st.text('a]}[{,":\\ ', max_size=12)


@st.composite
def objects_as_written(draw: st.DrawFn) -> tuple[dict[str, Any], bytes]:
    """An object, and its text in the order of the Go types."""
    metadata: dict[str, Any] = {"name": "a", "namespace": "shop", "uid": "u1", "resourceVersion": "7"}
    metadata["annotations"] = draw(st.dictionaries(TEXT, TEXT, max_size=2))
    if draw(st.booleans()):
        metadata["managedFields"] = draw(ENTRIES)
    template = {"metadata": {"managedFields": draw(ENTRIES)}, "spec": draw(JSON_VALUE)}
    rest = {"spec": draw(st.sampled_from([{"template": template}, {"managedFields": [{}]}])), "data": draw(JSON_VALUE)}
    obj = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, **draw(st.sampled_from([rest, {}, {"data": rest}]))}
    return obj, codec.encode(obj)


def without_managed_fields(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "metadata": metadata}


@given(objects_as_written())
def test_lean_object_lacks_managed_fields_at_most(written: tuple[dict[str, Any], bytes]) -> None:
    obj, text = written
    assert without_managed_fields(codec.lean(text)) == without_managed_fields(obj)
    assert codec.lean(text).get("spec") == obj.get("spec")


@pytest.mark.parametrize("manager", ["kubelet", "a]b"])
def test_managed_fields_as_an_api_server_writes_them_are_cut_out(manager: str) -> None:
    entry = {"manager": manager, "operation": "Update", "fieldsV1": {"f:status": {'k:{"type":"Ready"}': {".": {}}}}}
    metadata = {"name": "a", "uid": "u1", "resourceVersion": "7", "managedFields": [entry, entry]}
    obj = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {"nodeName": "n"}}
    assert codec.lean(codec.encode(obj)) == without_managed_fields(obj)


def test_managed_fields_of_a_custom_resource_are_left_in_its_contents() -> None:
    obj = {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a"}, "spec": {"b": 1, "managedFields": [{"c": 1}]}}
    text = codec.encode({**obj, "status": {}})
    assert codec.lean(text) == {**obj, "status": {}}


@given(objects_as_written())
def test_text_of_a_lean_object_gives_the_object_again(written: tuple[dict[str, Any], bytes]) -> None:
    found, text = codec.lean_with_text(written[1])
    assert codec.decode(text) == found == codec.lean(written[1])


LARGE = 3 << 20


@pytest.mark.parametrize(
    "parts",
    [
        b'"data":[' + b"{}," * LARGE + b"0]",
        b'"data":' + b"[" * 3 + b",".join([b"[]"] * LARGE) + b"]" * 3,
        b'"data":{' + b",".join(b'"%d":1' % number for number in range(LARGE // 8)) + b"}",
    ],
    ids=["items", "brackets", "fields"],
)
@pytest.mark.parametrize("labels", [b'{"a":"b"}', b"{%s}" % b",".join(b'"%d":""' % n for n in range(LARGE // 8))])
def test_large_object_with_many_parts_is_never_decoded_whole(
    parts: bytes, labels: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []

    def decode(data: Any, decode: Any = codec._decode) -> Any:
        decoded.append(memoryview(data).nbytes)
        return decode(data)

    monkeypatch.setattr(codec, "_decode", decode)
    named = b'{"apiVersion":"v1","kind":"X","metadata":{"name":"a","resourceVersion":"7","labels":%s},%s}'
    text = named % (labels, parts)
    with pytest.raises(codec.DecodeError, match=f"{len(text)} bytes with .* fields, items and brackets"):
        codec.lean(text)
    found = codec.observed(msgspec.Raw(text))
    assert max(decoded) <= codec.MOST_KEPT
    assert found["metadata"]["name"] == "a"
    assert found["metadata"].get("labels") == ({"a": "b"} if len(labels) < 20 else None)
    assert "brackets" in found[codec.UNREADABLE]


def test_reply_with_many_parts_is_decoded_with_a_higher_limit() -> None:
    text = b'{"resources":[%s0]}' % (b"1," * codec.MOST_PARTS)
    assert len(text) <= codec.UNCOUNTED
    assert codec.decode(text)["resources"]
    text = b'{"resources":[%s0],"more":"%s"}' % (b"1," * codec.MOST_PARTS, b"x" * codec.UNCOUNTED)
    with pytest.raises(codec.DecodeError, match="fields, items and brackets"):
        codec.decode(text)
    assert codec.decode(text, most=2 * codec.MOST_PARTS)["resources"]


@pytest.mark.parametrize("kind", ["v1", "x/v1"])
@pytest.mark.parametrize("name", ["uid", "resourceVersion"])
def test_object_with_an_endless_uid_or_version_is_refused(name: str, kind: str) -> None:
    metadata = {"name": "a", "uid": "1", "resourceVersion": "2", name: "1" * 513}
    named = {"kind": "X", "apiVersion": kind} if kind == "v1" else {"apiVersion": kind, "kind": "X"}
    text = codec.encode({**named, "metadata": metadata})
    with pytest.raises(codec.DecodeError, match="its uid or resourceVersion has more than 512 characters"):
        codec.head(text)
    with pytest.raises(codec.DecodeError, match="its uid or resourceVersion has more than 512 characters"):
        codec.check(codec.decode(text), Key("", "a"))
    with pytest.raises(codec.DecodeError):
        codec.head(text[:-1])  # it is cut, so that only its identity can be read


@pytest.mark.parametrize("data", [b'"%s"' % (b"1,2,{[" * LARGE), b"[%s0]" % (b"1," * 100_000)], ids=["text", "items"])
def test_large_object_with_few_parts_is_decoded(data: bytes) -> None:
    text = b'{"metadata":{"name":"a"},"data":%s,"more":"%s"}' % (data, b"x" * LARGE)
    assert codec.lean(text)["data"] == json.loads(data)
