"""Widgets are synced as they should be, without a cluster."""

import pytest
from vsyncer_template.widgets import WIDGETS, WidgetSyncer

from syncer.api import Obj
from syncer.testing import World
from syncer.testing.cases import Case, load
from syncer.testing.objects import build
from syncer.testing.samples import load as load_samples


def widget(name: str, **spec: object) -> Obj:
    return build(WIDGETS, name, spec=spec)


def test_a_widget_goes_to_the_host_with_its_owner() -> None:
    world = World([WidgetSyncer]).given(virtual=[widget("one", size=3)])
    [write] = world.decide(WidgetSyncer, "shop/one").writes
    assert write.obj["spec"] == {"size": 3, "owner": "vc"}


@pytest.mark.parametrize("case", load("tests/cases"), ids=str)
def test_case(case: Case) -> None:
    case.check([WidgetSyncer])


[SAMPLE] = load_samples("tests/kinds")
TestLaws = SAMPLE.laws()
