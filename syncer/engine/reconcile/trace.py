"""Trace a decision: which policies answered it, or changed it, for `syncer explain`.

The policies of a pipeline are wrapped for one decision, so that others cost nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from syncer.api.decision import Decision
from syncer.api.objects import SyncRequest
from syncer.engine.reconcile.controller import Read
from syncer.engine.reconcile.pipeline import Answer, CallPolicy, DecisionPolicy, Pipeline
from syncer.engine.reconcile.plan import Observed, Plan, PlannedWrite


@dataclass(frozen=True, slots=True)
class TraceStep:
    """What a policy, or the syncer's role, did to a decision."""

    #: The name of the policy, such as ``pause``; of a role, such as ``SyncDown.sync_down``.
    name: str
    what: str


@dataclass(frozen=True, slots=True)
class Explained:
    """A decision with all that led to it."""

    #: None if there is an error.
    plan: Plan | None
    #: None if there is a plan.
    error: Exception | None
    steps: tuple[TraceStep, ...]
    #: The objects that were read besides the two of the request.
    reads: tuple[Read, ...]
    #: The fields of the virtual object that are not copied.
    left_out: tuple[str, ...]


def traced(pipeline: Pipeline, steps: list[TraceStep]) -> Pipeline:
    """Return a pipeline that decides the same, and notes in ``steps`` what its policies do."""

    def answers(policy: Answer) -> Answer:
        def answer(observed: Observed) -> Decision | None:
            found = policy(observed)
            if found is not None:
                steps.append(TraceStep(_name(policy), f"decides: {found.reason}"))
            return found

        return answer

    def decides(policy: DecisionPolicy) -> DecisionPolicy:
        def decide(observed: Observed, decision: Decision) -> Decision:
            found = policy(observed, decision)
            if found is not decision and found != decision:
                steps.append(TraceStep(_name(policy), _change(decision, found)))
            return found

        return decide

    def leaves_out(policy: CallPolicy) -> CallPolicy:
        def leave_out(planned: PlannedWrite, request: SyncRequest) -> PlannedWrite:
            found = policy(planned, request)
            if list(found.calls) != list(planned.calls):
                what = f"leaves out parts of the write to {planned.ref}"
                steps.append(TraceStep(_name(policy), what))
            return found

        return leave_out

    def ask_role(observed: Observed) -> Decision | None:
        direction = observed.controller.direction
        role = direction.role_for(observed.ctx, observed.virtual, observed.host)
        steps.append(TraceStep(role, "is asked"))
        return None

    revocation = pipeline.revocation
    return replace(
        pipeline,
        revocation=None if revocation is None else answers(revocation),
        answers=tuple([answers(each) for each in pipeline.answers]),
        substitutes=tuple([answers(each) for each in pipeline.substitutes]),
        role_substitutes=(*[answers(each) for each in pipeline.role_substitutes], ask_role),
        decisions=tuple([decides(each) for each in pipeline.decisions]),
        deletions=tuple([decides(each) for each in pipeline.deletions]),
        calls=tuple([leaves_out(each) for each in pipeline.calls]),
    )


def _name(policy: Callable[..., Any]) -> str:
    """Return the name of a policy: that of its module; patches are applied by the pipeline."""
    module = policy.__module__.rpartition(".")[2]
    return "patches" if module == "pipeline" else module


def _change(before: Decision, after: Decision) -> str:
    parts = []
    if after.outcome is not before.outcome:
        parts.append(f"makes it {after.outcome.value}")
    if after.reason != before.reason:
        parts.append(f"decides: {after.reason}")
    if len(after.writes) != len(before.writes):
        parts.append(f"has {len(after.writes)} writes instead of {len(before.writes)}")
    elif after.writes != before.writes:
        parts.append("changes its writes")
    return "; ".join(parts) or "adds to it"
