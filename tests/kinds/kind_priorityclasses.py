"""PriorityClasses of the host. Matrix and sieve have a row of their own for classes."""

from hypothesis import strategies as st

from syncer.api import Obj, key_of
from syncer.resources.classes import PriorityClassSyncer
from syncer.resources.kinds import PRIORITY_CLASSES
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.samples import Sample


def _on_host(host: Obj) -> Scene:
    return Scene(key_of(host), (), (host,))


SAMPLE = Sample(
    syncer=PriorityClassSyncer,
    objects=strategies.objects(
        PRIORITY_CLASSES,
        strategies.some(
            {
                "value": st.integers(0, 1000),
                "preemptionPolicy": st.sampled_from(["Never", "PreemptLowerPriority"]),
                "globalDefault": st.booleans(),
                "description": st.sampled_from(["for batches", "for the shop"]),
            }
        ),
    ).map(_on_host),
    config={"sync": {"fromHost": {"priorityClasses": {"enabled": True}}}},
    dropped=(),
)
