"""PriorityClasses of tenants. Matrix, restarts and sieve have rows of their own for them, as they have no namespace."""

from hypothesis import strategies as st

from syncer.resources.kinds import PRIORITY_CLASSES
from syncer.resources.priorities import TenantPrioritySyncer
from syncer.testing import strategies
from syncer.testing.samples import Sample

SAMPLE = Sample(
    syncer=TenantPrioritySyncer,
    objects=strategies.objects(
        PRIORITY_CLASSES,
        strategies.some(
            {
                "value": st.integers(-1000, 1000),
                "preemptionPolicy": st.sampled_from(["Never", "PreemptLowerPriority"]),
                "globalDefault": st.booleans(),
                "description": st.sampled_from(["for batches", "for the shop"]),
            }
        ),
    ),
    config={"sync": {"toHost": {"priorityClasses": {"enabled": True, "maxValue": 500}}}},
    dropped=("globalDefault",),
)
