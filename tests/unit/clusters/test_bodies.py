"""Bodies that no API server accepts aren't sent."""

import pytest

from syncer.api import Key, TooLarge
from syncer.clusters import api_requests
from syncer.clusters.bodies import LARGEST
from syncer.resources.kinds import CONFIG_MAPS

KEY = Key("shop", "a")


def test_body_of_the_largest_size_is_sent_and_a_larger_one_is_not() -> None:
    room = LARGEST - len('{"data":{"a":""}}')
    sent = api_requests.patch(CONFIG_MAPS, KEY, {"data": {"a": "x" * room}})
    assert len(sent.body or b"") == LARGEST
    with pytest.raises(TooLarge):
        api_requests.patch(CONFIG_MAPS, KEY, {"data": {"a": "x" * (room + 1)}})


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        ({"metadata": {"name": "a"}, "data": {"a": "x" * LARGEST, "b": "y"}}, "data.a"),
        ({"spec": {"containers": [{"name": "x" * LARGEST}], "volumes": []}}, "spec.containers"),
        ({"data": {"a": "x" * LARGEST, "b": "y" * LARGEST, "c": "z" * LARGEST}}, "data"),
        ({"data": {"k" * 64: "x" * LARGEST}}, "data"),
    ],
    ids=["a field", "a list", "several fields", "a long name"],
)
def test_refusal_of_a_large_body_names_the_size_and_the_largest_part(obj: dict[str, object], path: str) -> None:
    with pytest.raises(TooLarge) as refused:
        api_requests.create(CONFIG_MAPS, KEY, {"metadata": {"name": "a", "namespace": "shop"}, **obj})
    assert refused.value.path == path
    assert f"an API server accepts {LARGEST >> 10} KiB; make it smaller" in refused.value.why
    assert "xxx" not in str(refused.value)
