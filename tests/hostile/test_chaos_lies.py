"""A lie of `hack/chaos --hostile` is about one object alone: what it did to others would be its own fault."""

import json

import pytest
from hostile_chaos.lies import LIES, RAW, falsified

from syncer.testing.objects import configmap


@pytest.mark.parametrize("choice", [*LIES, *RAW])
def test_lie_in_a_list_is_about_one_item(choice: str) -> None:
    known = {"uid": "u", "resourceVersion": "5"}
    items = [configmap(name, metadata=known) for name in ("one", "liar", "two")]
    whole = {"kind": "List", "metadata": {"resourceVersion": "7"}, "items": items}
    sent = falsified(json.dumps(whole, separators=(",", ":")).encode(), "liar", choice)
    before, liar, after = (json.dumps(each, separators=(",", ":")).encode() for each in items)
    assert sent.startswith(b'{"kind":"List","metadata":{"resourceVersion":"7"},"items":[' + before + b",")
    assert sent.endswith(b"," + after + b"]}")
    assert (liar in sent) == (choice in ("cut", "object is a list"))
