"""Widgets: which there are, and what may happen to them."""

from hypothesis import strategies as st
from vsyncer_template.widgets import WIDGETS, WidgetSyncer

from syncer.testing import strategies
from syncer.testing.objects import build
from syncer.testing.samples import Sample

SPEC = strategies.some({"size": st.integers(0, 12) | strategies.TEXT, "color": strategies.TEXT})

SAMPLE = Sample(
    syncer=WidgetSyncer,
    objects=strategies.objects(
        WIDGETS, strategies.some({"spec": SPEC, "status": {"phase": "Ready"}})
    ),
    make=lambda name: build(WIDGETS, name, spec={"size": 3}),
    change={"spec": {"size": 5}},
    tamper={"spec": {"size": 7}},
    reports=({"status": {"phase": "Ready"}}, {"status": {"phase": "Failed"}}),
)
