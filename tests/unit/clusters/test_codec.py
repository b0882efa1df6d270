"""JSON in and out, and the shortcuts past it."""

import json
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncer.api.objects import Key, Obj
from syncer.clusters import codec


def test_numbers_come_back_as_they_were() -> None:
    text = b'{"big":123456789012345678901234567890,"neg":-9223372036854775809,"one":1,"float":1.0,"exp":1e300}'
    decoded = codec.decode(text)
    assert decoded == json.loads(text)
    assert [type(value) for value in decoded.values()] == [int, int, int, float, float]
    assert codec.decode(codec.encode(decoded)) == decoded
    assert b'"big":123456789012345678901234567890' in codec.encode(decoded)


@pytest.mark.parametrize("broken", [b"", b"{", b'{"a":1e999}', b"\xff", b"{} {}"])
def test_what_is_not_json_is_one_kind_of_error(broken: bytes) -> None:
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


def test_a_list_is_cut_into_items() -> None:
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


def test_the_last_page_and_an_empty_list() -> None:
    assert codec.split_list(b'{"metadata":{"resourceVersion":"7"},"items":null}') == ([], "7", None, "")
    assert codec.split_list(b'{"metadata":{},"items":[]}') == ([], "", None, "")


def test_the_head_of_a_cluster_scoped_object() -> None:
    assert codec.head(b'{"metadata":{"name":"n","other":[1]},"spec":{}}') == (Key("", "n"), "", "")


def test_an_event_keeps_its_object_undecoded() -> None:
    event = codec.watch_event(b'{"type":"ADDED","object":{"metadata":{"name":"n"}}}')
    assert (event.type, codec.exact(event.object)) == ("ADDED", b'{"metadata":{"name":"n"}}')
    with pytest.raises(codec.DecodeError):
        codec.watch_event(b"{}")


@pytest.mark.parametrize("levels", [1_100, 9_000])
def test_what_is_nested_deeper_than_can_be_read_is_an_error_like_any_other(levels: int) -> None:
    """An API server takes 10,000 levels, and a tenant may write them into a field without a schema."""
    deep = b'{"apiVersion":"v1","metadata":{"name":"a"},"spec":' + b'{"a":' * levels + b"1" + b"}" * levels + b"}"
    for read in (
        codec.decode,
        codec.head,
        lambda obj: codec.watch_event(b'{"type":"ADDED","object":' + obj + b"}"),
        lambda obj: codec.split_list(b'{"items":[' + obj + b"]}"),
    ):
        with pytest.raises(codec.DecodeError, match="nested deeper"):
            read(deep)


_FIELDS = st.sampled_from(["name", "generateName", "namespace", "uid", "resourceVersion", "labels"])
_TEXT = st.text(st.characters(codec="utf-8"), max_size=6)


@given(st.dictionaries(_FIELDS, _TEXT), st.booleans(), st.booleans())
def test_a_head_is_the_same_in_whatever_order_the_fields_come(metadata: Obj, kind: bool, sort: bool) -> None:
    order = {"name": 0, "generateName": 1, "namespace": 2, "uid": 3, "resourceVersion": 4, "labels": 5}
    metadata = dict(sorted(metadata.items(), key=lambda item: item[0] if sort else str(order[item[0]])))
    obj: Obj = {"kind": "Pod", "apiVersion": "v1"} if kind else {}
    raw = msgspec.json.encode({**obj, "metadata": metadata, "spec": {"name": "other"}})
    found = {name: metadata.get(name, "") for name in ("name", "namespace", "uid", "resourceVersion")}
    key = Key(found["namespace"], found["name"])
    assert codec.head(raw) == (key, found["uid"], found["resourceVersion"])


def test_the_beginning_of_what_an_api_server_sends_is_enough() -> None:
    """Behind it nothing is read, so it costs the same for any size."""
    begun = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7","x'
    assert codec.head(begun) == (Key("b", "a"), "u", "7")
    listed = b'{"metadata":{"name":"a","generateName":"a-","uid":"u","resourceVersion":"7"}'
    assert codec.head(listed) == (Key("", "a"), "u", "7")
