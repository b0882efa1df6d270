"""The conformance suite's tests, results and table, without a cluster."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hack.realnode.inside import Failed
from hack.realnode.node_site import ROOT
from hack.suite import images, runner, table
from hack.suite.__main__ import locked
from hack.suite.cases import NETWORK_POLICIES, BadChoice, Case, batches, chosen, listed
from hack.suite.results import Outcome, Results, State, reported

LISTED = """\
I1122 13:51:42.1 1 e2e.go:109] Starting e2e run
The following spec names can be used with 'ginkgo run --focus/skip':
    ../e2e/apps/job.go:100: [sig-apps] Job should run to its end [Conformance]
    ../e2e/node/pods.go:42: [sig-node] Pods should be killed [Serial] [Conformance]
    ../e2e/node/pods.go:43: [sig-node] Pods should be slow [Slow]
    ../e2e/network/policy.go:80: [sig-network] Netpol NetworkPolicy should deny all
    ../e2e/network/policy.go:90: [sig-network] Netpol [Feature:SCTPConnectivity] NetworkPolicy should deny SCTP
    ../e2e/node/pods.go:44: [sig-node] Pods [It's (odd)] should run [NodeConformance] [Conformance]

"""
JOB = Case("[sig-apps] Job should run to its end [Conformance]")
KILLED = Case("[sig-node] Pods should be killed [Serial] [Conformance]")
ODD = Case("[sig-node] Pods [It's (odd)] should run [NodeConformance] [Conformance]")
TESTS = [JOB, ODD, KILLED]


def test_list_keeps_conformance_tests_with_sig_and_serial() -> None:
    assert listed(LISTED) == TESTS
    assert [(test.sig, test.is_serial) for test in TESTS] == [
        ("sig-apps", False),
        ("sig-node", False),
        ("sig-node", True),
    ]


def test_list_of_network_policies_leaves_out_sctp() -> None:
    assert listed(LISTED, NETWORK_POLICIES) == [Case("[sig-network] Netpol NetworkPolicy should deny all")]


@pytest.mark.parametrize(
    ("focus", "names"),
    [("", TESTS), ("sig-node", [ODD, KILLED]), ("Job.*end", [JOB]), (r"\(odd\)", [ODD])],
)
def test_focus_is_a_sig_or_a_regular_expression(focus: str, names: list[Case]) -> None:
    assert chosen(TESTS, focus) == names


@pytest.mark.parametrize(
    ("focus", "shard", "part"),
    [
        ("sig-storage", "1/1", "--focus sig-storage: no test has that in its name; the sigs are sig-apps"),
        ("(", "1/1", "--focus (: neither a sig nor a regular expression"),
        ("", "0/2", "--shard 0/2: not I/N"),
        ("", "3/2", "--shard 3/2: not I/N"),
        ("", "half", "--shard half: not I/N"),
    ],
)
def test_focus_or_shard_without_tests_is_refused(focus: str, shard: str, part: str) -> None:
    with pytest.raises(BadChoice) as refused:
        chosen(TESTS, focus, shard)
    assert part in str(refused.value)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_shards_have_every_test_once(count: int) -> None:
    many = [Case(f"[sig-node] {number}") for number in range(20)]
    shards = [chosen(many, "", f"{number}/{count}") for number in range(1, count + 1)]
    assert sorted(test for shard in shards for test in shard) == sorted(many)
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


def test_batches_hold_serial_tests_apart_and_last() -> None:
    assert list(batches([KILLED, JOB, ODD], 1)) == [[JOB], [ODD], [KILLED]]
    assert list(batches([KILLED, JOB, ODD], 9)) == [[JOB, ODD], [KILLED]]


def spec(test: Case, state: str, failure: str = "", **more: object) -> dict[str, object]:
    """Return a test of Ginkgo's report; its container has no text, as many of Kubernetes have."""
    found = {"ContainerHierarchyTexts": ["", test.name[:10].strip()], "LeafNodeText": test.name[10:].strip()}
    return {
        **found,
        "State": state,
        "RunTime": 1_500_000_000,
        **({"Failure": {"Message": failure}} if failure else {}),
        **more,
    }


def test_report_distinguishes_skipped_tests_from_tests_that_never_began() -> None:
    report = [{"SpecReports": [spec(JOB, "skipped", "needs two nodes"), spec(ODD, "skipped")]}]
    outcomes, output = reported(report, TESTS)
    assert outcomes == [
        Outcome(JOB.name, State.SKIPPED, 1.5, "needs two nodes"),
        Outcome(ODD.name, State.FAILED, 0.0, "never began: the run was cut off"),
        Outcome(KILLED.name, State.FAILED, 0.0, "never began: the run was cut off"),
    ]
    assert output == {}


@pytest.mark.parametrize("state", ["failed", "timedout", "panicked", "interrupted", "aborted"])
def test_report_of_a_failure_has_its_message_and_output(state: str) -> None:
    report = [{"SpecReports": [spec(JOB, "passed"), spec(ODD, state, "no pod", CapturedGinkgoWriterOutput="STEP: …")]}]
    outcomes, output = reported(report, [JOB, ODD])
    assert outcomes == [Outcome(JOB.name, State.PASSED, 1.5), Outcome(ODD.name, State.FAILED, 1.5, "no pod")]
    assert output == {ODD.name: "STEP: …"}


def results(folder: Path, side: str, **states: State) -> Results:
    """Return results of `job`, `odd` and `killed`."""
    tests = {"job": JOB, "odd": ODD, "killed": KILLED}
    made = Results(folder, side)
    made.add([Outcome(tests[name].name, state, 1.0, "broken | here") for name, state in states.items()], {})
    return made


def test_results_are_found_again_and_those_of_other_tests_stay(tmp_path: Path) -> None:
    first = Results(tmp_path, "host")
    first.add([Outcome(JOB.name, State.FAILED, 2.0, "no")], {JOB.name: "long \x1b output"})
    [text] = (tmp_path / "host").iterdir()
    assert "long" in text.read_text()
    results(tmp_path, "host", odd=State.PASSED)
    again = Results(tmp_path, "host")
    assert JOB in again
    assert ODD in again
    assert KILLED not in again
    again.forget([JOB])
    assert not text.exists()
    assert again.get(JOB) is None
    again.add([], {})
    assert [one["name"] for one in json.loads((tmp_path / "host.json").read_text())] == [ODD.name]


def test_results_are_junit_too(tmp_path: Path) -> None:
    made = results(tmp_path, "host", job=State.PASSED, odd=State.SKIPPED)
    made.add([Outcome(KILLED.name, State.FAILED, 3.0, "a \x1b[1m <bold> & \x00 line")], {})
    suite = ElementTree.parse(tmp_path / "host.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    assert {case.get("name"): [child.tag for child in case] for case in suite} == {
        JOB.name: [],
        ODD.name: ["skipped"],
        KILLED.name: ["failure"],
    }


def test_table_counts_by_sig_and_compares_with_passes_on_the_host(tmp_path: Path) -> None:
    host = results(tmp_path, "host", job=State.PASSED, odd=State.PASSED, killed=State.FAILED)
    virtual = results(tmp_path, "virtual", job=State.PASSED, odd=State.FAILED, killed=State.PASSED)
    lines = table.report(TESTS, [host, virtual], []).splitlines()
    assert "| sig-apps | 1 | 1 | 0 | 0 | 1 | 0 | 0 | 1 of 1, 100 % |" in lines
    assert "| sig-node | 2 | 1 | 1 | 0 | 1 | 1 | 0 | 0 of 1, 0 % |" in lines
    assert "| all | 3 | 2 | 1 | 0 | 2 | 1 | 0 | 1 of 2, 50 % |" in lines


def test_table_gives_reasons_of_failures_and_marks_unexplained_ones(tmp_path: Path) -> None:
    host = results(tmp_path, "host", job=State.FAILED, odd=State.PASSED, killed=State.PASSED)
    virtual = results(tmp_path, "virtual", job=State.FAILED, odd=State.FAILED, killed=State.FAILED)
    reasons = tmp_path / "reasons.yaml"
    reasons.write_text(
        "- {test: 'Job should run', side: host, reason: two nodes are needed}\n"
        "- {test: '(odd)', side: virtual, reason: no such kind}\n"
    )
    text = table.report(TESTS, [host, virtual], table.known_reasons(reasons))
    on_host, on_virtual = text.partition("## Failed on the virtual side")[::2]
    assert f"- {JOB.name}: two nodes are needed" in on_host
    assert f"- {ODD.name}: no such kind" in on_virtual
    assert f"- {KILLED.name}: **not explained**: `broken | here`" in on_virtual
    assert JOB.name not in on_virtual


def test_reasons_of_the_suite_name_a_side_and_have_a_text() -> None:
    assert all(reason.side in ("host", "virtual") and reason.text for reason in table.known_reasons())


def test_time_of_a_batch_grows_with_its_tests_and_falls_with_processes() -> None:
    assert runner.seconds(48, 1) > runner.seconds(48, 8) > runner.seconds(1, 8) > 600


def test_images_are_described_with_their_differences() -> None:
    text = (ROOT / "docs" / "conformance.md").read_text()
    tags = [value for name, value in vars(images).items() if name[0].isupper() and name.isupper() and ":" in str(value)]
    assert len(tags) == 12
    assert [tag for tag in tags if f"| `{tag}` | " not in text] == []


def test_run_beside_another_of_the_same_checkout_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bin" / "lock"
    with locked(path), pytest.raises(Failed, match="runs already in this checkout"):
        locked(path)
    locked(path).close()
