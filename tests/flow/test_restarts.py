"""The restart matrix: changes while no daemon runs have the same result as changes while one does."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from harness import Two, between
from restart_scene import CASES, DEEDS, Case, end_of, perform, work

from hack.side_tasks import helped_by
from syncer.api import dig
from syncer.translate.alike import covers

#: What may be configured for a kind that has a policy for deleted copies.
POLICIES: Mapping[str, Mapping[str, Any]] = {
    "as is usual": {},
    "propagate": {"onHostDeletion": "propagate"},
    "report": {"onHostDeletion": "report"},
}


def rows() -> list[Any]:
    """Return every kind under every policy that it may have."""
    found = []
    for case in CASES:
        for name, options in POLICIES.items() if case.section else [("as is usual", {})]:
            found.append(pytest.param(case, options, id=f"{case.name}, {name}"))
        for owner in ("both", "host") if case.shared else ():
            authority = {"authority": {case.shared: owner}}
            found.append(pytest.param(case, authority, id=f"{case.name}, owned by {owner}"))
    return found


@contextlib.asynccontextmanager
async def at_work(two: Two) -> AsyncIterator[None]:
    """Let users of the host work in it meanwhile."""

    async def forever() -> None:
        while True:
            work(two)
            await asyncio.sleep(0.3)

    async with helped_by(forever()):
        yield


async def end(case: Case, options: Mapping[str, Any], deed: str, *, stopped: bool) -> tuple[Any, Any]:
    """Return both sides before and after a change that a daemon saw, or missed."""
    two, config = case.stage(), case.config(options)

    async with at_work(two):
        async with between(two.host, [(config, two.virtual)]) as daemon:
            await asyncio.sleep(20)
            await daemon.settled()
            before = end_of(two)
            if not stopped:
                perform(two, case, deed)
                await asyncio.sleep(60)
        if stopped:
            perform(two, case, deed)
            await asyncio.sleep(5)
        async with between(two.host, [(config, two.virtual)]) if stopped else contextlib.nullcontext():
            await asyncio.sleep(60)
            return before, end_of(two)


def _has_the_right_end(case: Case, options: Mapping[str, Any], deed: str, end: Mapping[str, Any]) -> None:
    """Check the promise of a policy or an owner for the change that it is about."""
    virtual, host = (end.get(where, {}) for where in ends(case))
    policy, owner = options.get("onHostDeletion"), options.get("authority", {}).get(case.shared)
    if case.section and deed == "delete host":
        assert (not virtual, not host) == (policy == "propagate", policy in ("propagate", "report"))
    if case.shared and deed.startswith("edit"):
        winner = 1 if owner == "host" or (owner == "both" and deed == "edit host") else 0
        wanted = dig(case.edits[winner], case.shared)
        changed = wanted is not None and deed in ("edit both", f"edit {('virtual', 'host')[winner]}")
        for side in (virtual, host) if changed else ():
            assert covers(wanted, dig(side, case.shared))


def ends(case: Case) -> list[str]:
    """Return where the object and its copy are, as the end names them."""
    sides = (("virtual", case.virtual), ("host", case.host))
    return [f"{side} {resource} {key if '/' in key else '/' + key}" for side, (resource, key) in sides]


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize(("case", "options"), rows())
async def test_stop_leads_to_the_same_end(case: Case, options: Mapping[str, Any], deed: str) -> None:
    before, observed = await end(case, options, deed, stopped=False)
    assert [where for where in ends(case) if where not in before] == [], "there is nothing to do it to"
    _has_the_right_end(case, options, deed, observed)
    _, unobserved = await end(case, options, deed, stopped=True)
    if deed in case.otherwise:
        assert observed != unobserved, f"the end is the same, so it is no exception: {case.otherwise[deed]}"
    else:
        assert unobserved == observed
