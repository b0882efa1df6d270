"""PodDisruptionBudgets, with and without the numbers that a virtual cluster's controller has worked out."""

from hypothesis import strategies as st

from syncer.api import Obj
from syncer.resources.budgets import BudgetSyncer
from syncer.resources.kinds import DISRUPTION_BUDGETS
from syncer.testing import strategies
from syncer.testing.objects import build
from syncer.testing.samples import Sample

_SELECTOR = {"matchLabels": {"app": "web"}}


def _budget(name: str) -> Obj:
    return build(DISRUPTION_BUDGETS, name, spec={"minAvailable": 2, "selector": _SELECTOR})


_NUMBER = st.one_of(st.integers(0, 9), st.sampled_from(["0%", "50%", "100%"]))
_SPEC = strategies.some(
    {
        "minAvailable": _NUMBER,
        "maxUnavailable": _NUMBER,
        "selector": st.sampled_from([{}, _SELECTOR, {"matchExpressions": [{"key": "app", "operator": "Exists"}]}]),
        "unhealthyPodEvictionPolicy": st.sampled_from(["IfHealthyBudget", "AlwaysAllow"]),
    }
)
_STATUS = strategies.some(
    {
        "observedGeneration": st.integers(0, 3),
        "expectedPods": st.integers(0, 9),
        "desiredHealthy": st.integers(0, 9),
        "conditions": st.just([{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed"}]),
    }
)

SAMPLE = Sample(
    syncer=BudgetSyncer,
    objects=strategies.objects(DISRUPTION_BUDGETS, strategies.some({"spec": _SPEC, "status": _STATUS})),
    make=_budget,
    change={"spec": {"minAvailable": 3}},
    tamper={"spec": {"minAvailable": None, "maxUnavailable": 5}},
)
