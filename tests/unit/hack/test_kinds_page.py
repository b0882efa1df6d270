"""The page of the kinds that are synced."""

import re
from importlib.metadata import distribution

import pytest

from hack.kinds_page import kinds_page
from syncer.daemon.pages.kind_names import UNSYNCED
from syncer.plugins import OURS, Installed

SYNCERS = Installed(distribution(OURS).entry_points, lambda group: ()).syncers()


def test_each_syncer_has_a_part_to_which_the_table_leads() -> None:
    page = kinds_page(SYNCERS)
    headings = re.findall("^## (.*)$", page, re.MULTILINE)
    anchors = [re.sub("[`.:]", "", heading).lower().replace(" ", "-") for heading in headings]
    assert re.findall(r"\]\(#(.*?)\)", page) == anchors[:-1]
    assert len(anchors) == len(set(anchors)) == len(list(SYNCERS)) + 1


def test_part_has_the_rules_the_owners_and_the_options_of_the_kind_alone() -> None:
    _, part = kinds_page(SYNCERS).split("## PriorityClass: `toHost.priorityClasses`\n")
    part, _, _ = part.partition("\n## ")
    assert "(`preemptionPolicy: Never`)" in part
    assert "| owned by the virtual side | `value` `preemptionPolicy` `globalDefault` `description` |" in part
    assert "| of these translated | `value` `preemptionPolicy` `globalDefault` |" in part
    assert re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE) == ["maxValue", "most"]


def test_kind_with_a_syncer_must_not_be_listed_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(UNSYNCED, "Pod", "nothing")
    with pytest.raises(ValueError, match=r"aren't synced: Pod$"):
        kinds_page(SYNCERS)
