"""Everything at once, made up by hypothesis: what must never be never is, and in the end all is in step.

A failure prints the shortest script that was found for it; put it into test_chaos_found.py. `hack/chaos` does the same
for as long as one likes.
"""

import pytest
from chaos.machine import explore
from chaos.steps import Depose, Put, Wait, written, wrong_in

from syncer.leaderelection.lease import Lease

#: Plays; some 30 s of CPU together.
PLAYS = 30
#: The same plays in each run; hack/chaos and hack/explore play others.
SEED = 20_261_124


def test_sides_end_in_step_whatever_happens() -> None:
    report = explore(SEED, plays=PLAYS, length=50)
    assert not report.wrong, "\n".join([f"hack/chaos --seed {SEED} --print", *report.wrong, written(report.script)])
    assert report.plays >= PLAYS
    assert report.faults.total() > PLAYS, "hardly anything went wrong, so this shows nothing"


def test_leader_that_goes_on_after_failed_renewals_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    script = (Depose("ann"), Wait(8.0), Wait(8.0), Wait(8.0), Put("red", "pods", "blog", "a", look=0))
    assert wrong_in(script) == []
    believes = property(lambda lease: lease._clock() < lease._leads_until + 60)
    monkeypatch.setattr(Lease, "is_leader", believes)
    monkeypatch.setattr(Lease, "until", property(lambda lease: lease._leads_until + 60))
    assert any("while vsyncer-bob-1 led" in fault for fault in wrong_in(script))
