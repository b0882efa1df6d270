"""Figures and the tree are made of recorded steps."""

from hack.callpath.figures import figures, ratios, shortest, tree
from hack.callpath.probe import Step

CALL_PATH = [
    Step("Reader.read", "clusters/reader.py", 10, resumed=False, depth=0, caller=None, caller_line=0),
    Step(
        "Applier.put",
        "engine/apply/applier.py",
        20,
        resumed=False,
        depth=1,
        caller="clusters/reader.py",
        caller_line=12,
    ),
    Step(
        "Worker.run",
        "engine/controllers/worker.py",
        30,
        resumed=True,
        depth=0,
        caller=None,
        caller_line=0,
    ),
    Step(
        "version",
        "version.py",
        3,
        resumed=False,
        depth=1,
        caller="engine/controllers/worker.py",
        caller_line=33,
    ),
]


def test_figures_are_of_the_shortest_path_with_the_spread_of_all() -> None:
    assert figures([[*CALL_PATH, CALL_PATH[0]], CALL_PATH, [*CALL_PATH, CALL_PATH[0], CALL_PATH[0]]]) == {
        "calls": 3,
        "files": 4,
        "resumptions": 1,
        "spread": {"objects": 3, "min": 3, "median": 4, "max": 5},
        "layers": {
            ".": {"calls": 1, "files": 1},
            "clusters": {"calls": 1, "files": 1},
            "engine": {"calls": 1, "files": 2},
        },
        "folders": {
            ".": {"calls": 1, "files": 1},
            "clusters": {"calls": 1, "files": 1},
            "engine/apply": {"calls": 1, "files": 1},
            "engine/controllers": {"calls": 0, "files": 1},
        },
    }


def test_shortest_path_has_the_fewest_calls() -> None:
    resumed = [CALL_PATH[2]] * 5
    assert shortest([CALL_PATH, resumed]) is resumed


def test_ratio_is_this_by_the_other() -> None:
    this, other = figures([CALL_PATH[:2]]), figures([[*CALL_PATH, CALL_PATH[0]]])
    assert ratios(this, other) == {"calls": 0.5, "files": 0.5, "resumptions": 0.0}


def test_ratio_to_nothing_is_none() -> None:
    assert ratios(figures([CALL_PATH]), figures([CALL_PATH[:1]]))["resumptions"] is None


def test_tree_indents_a_step_below_its_caller_with_both_lines() -> None:
    assert [line.split("  syncer/") for line in tree(CALL_PATH[:3])] == [
        [f"{'Reader.read':<72}", "clusters/reader.py:10"],
        [f"{'  Applier.put':<72}", "engine/apply/applier.py:20  from syncer/clusters/reader.py:12"],
        [f"{'~ Worker.run':<72}", "engine/controllers/worker.py:30"],
    ]
