"""All that a kind needs beside its class and its entry point is there: a sample and cases."""

import re

import pytest
from class_rows import ROWS
from sampled import CASES, MADE, OURS, SAMPLES, registry

from syncer.api import Syncer
from syncer.directions import direction_class
from syncer.names import SingleNamespace
from syncer.plugins import installed
from syncer.testing.samples import Sample

ROOT = OURS.parents[1]
SYNCERS = [pytest.param(syncer, id=syncer.name) for syncer in registry()]
#: Those that begin elsewhere than in a virtual namespace, or have a life of their own. Every suite has rows for them.
SPECIAL = {
    "csinodes",
    "csistoragecapacities",
    "events",
    "host-configmaps",
    "host-nodes",
    "host-secrets",
    "host-services",
    "namespaces",
    "nodes",
    "persistentvolumes",
    "pod-tokens",
    "pods",
    "public-crds",
    "published-services",
    "tenant-crds",
    "tenant-priorityclasses",
} | {row.syncer for row in ROWS}


@pytest.mark.parametrize("syncer", SYNCERS)
def test_syncer_has_a_sample(syncer: type[Syncer]) -> None:
    name = syncer.name.replace("-", "_")
    assert syncer.name in SAMPLES, f"write kind_{name}.py beside the others in tests/kinds"
    assert SAMPLES[syncer.name].syncer is syncer


@pytest.mark.parametrize("syncer", SYNCERS)
def test_syncer_has_cases(syncer: type[Syncer]) -> None:
    names = {case.file.syncer for case in CASES}
    assert syncer.name in names, "write cases for it in tests/cases"


def _could_be_made(sample: Sample) -> bool:
    """Return True if a tenant creates objects of the kind that go to the single host namespace of the suites."""
    goes_down = direction_class(sample.syncer).goes_down
    return goes_down and sample.resource.namespaced and sample.translator is SingleNamespace


def test_sample_can_be_made_unless_every_suite_has_rows_of_its_own() -> None:
    lacking = set()
    for name in SAMPLES.keys() - MADE.keys():
        # The suites have rows for kinds of ours alone; of a package's kind that can't be made, its laws are checked.
        is_ours = SAMPLES[name].syncer.__module__.startswith("syncer.")
        if is_ours or _could_be_made(SAMPLES[name]):
            lacking.add(name)
    assert lacking <= SPECIAL, "give the sample a `make`, from which every suite derives its rows"


def test_page_of_synced_kinds_names_every_kind() -> None:
    table = (ROOT / "docs" / "synced.md").read_text().partition("\nNames:")[0]
    for kind in {syncer.resource.kind for syncer in installed().syncers()}:
        assert re.search(rf"\b({kind}(s|es)|{kind[:-1]}ies)\b", table), f"the table in docs/synced.md lacks {kind}"
