"""Expressions of the configuration, over values that a tenant makes large."""

import pytest
from hostile_scene import COPIED, NAMESPACE, HostileScene

from syncer.testing.objects import configmap

#: The data, if no key occurs twice: quadratic in the number of keys.
EACH_KEY_ONCE = "value.all(a, value.exists_one(b, b == a)) ? value : null"


@pytest.mark.translators("single-namespace", reason="no name is translated in an expression")
def test_expression_over_a_long_mapping_delays_no_other_cluster(hostile: HostileScene) -> None:
    patch = {"path": "data", "cel": EACH_KEY_ONCE}
    hostile.start(sync={"toHost": {"configMaps": {"patches": {"down": [patch]}}}})
    long = configmap("long", {f"key-{number}": "" for number in range(6000)}, namespace=NAMESPACE, metadata=COPIED)
    hostile.tenant.put(long)
    # 0aeb964: all threads stand still, "not within 5 s: bank/beat-0 is served meanwhile".
    hostile.serves_others()
    [parked] = hostile.parked()
    assert parked["key"] == "shop/long"
    assert "would take too long" in parked["reason"]
