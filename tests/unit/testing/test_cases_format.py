"""YAML cases: problems of a file are reported with their line, failed expectations with their place."""

from pathlib import Path

import pytest

from syncer.api import ConfigError
from syncer.testing.cases import load
from syncer.testing.differences import differences

GIVEN = """\
syncer: configmaps
config: {sync: {toHost: {configMaps: {all: true}}}}
given:
  virtual:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: db, namespace: shop}, data: {color: blue}}
cases:
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "some.yaml"
    path.write_text(text)
    return path


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(written(folder, text))
    return [f"{problem.line}: {problem.path}: {problem.message} {problem.hint}" for problem in caught.value.problems]


def failure(folder: Path, expect: str, more: str = "") -> str:
    [case] = load(written(folder, f"{GIVEN}  - name: one\n    ask: shop/db\n{more}    expect: {expect}\n"))
    with pytest.raises(AssertionError) as caught:
        case.check()
    return str(caught.value).replace(str(folder), "")


def test_unknown_keys_are_problems_with_their_line(tmp_path: Path) -> None:
    text = f"{GIVEN}  - name: one\n    ask: shop/db\n    expectt: {{calls: []}}\n    expect: {{call: []}}\n"
    assert problems(tmp_path, text) == [
        "9: cases[0].expectt: no such option. Did you mean expect?",
        "10: cases[0].expect.call: no such option. Did you mean calls?",
    ]


def test_keys_given_twice_are_problems(tmp_path: Path) -> None:
    text = f"{GIVEN}  - name: one\n    ask: shop/db\n    ask: shop/web\n    expect: {{calls: []}}\n"
    assert problems(tmp_path, text) == ["9: cases[0].ask: is given twice, first in line 8. "]


def test_case_that_expects_nothing_is_a_problem(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, f"{GIVEN}  - name: one\n    ask: shop/db\n    expect: {{}}\n")
    assert "expects nothing, so it could never fail" in problem


def test_file_without_cases_is_a_problem(tmp_path: Path) -> None:
    assert "has no cases" in problems(tmp_path, "syncer: pods\ncases: []\n")[0]


def test_folder_without_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no \*\.yaml file below"):
        load(tmp_path)


def test_good_case_passes_and_is_named_by_file_and_name(tmp_path: Path) -> None:
    text = f"{GIVEN}  - {{name: it is copied, ask: shop/db, expect: {{reason: no copy on the host yet}}}}\n"
    [case] = load(written(tmp_path, text))
    assert str(case) == "some: it is copied"
    case.check()


@pytest.mark.parametrize(
    ("expect", "message"),
    [
        ("{calls: []}", "calls: expected [], found ['create host configmaps vc-ns/db-x-shop-x-vc']"),
        ("{reason: because}", "reason: expected 'because' in 'the virtual object has no copy on the host yet'"),
        ("{outcome: skipped}", "outcome: expected skipped, found in_step"),
        ("{after: 3}", "after: expected 3.0, found None"),
        ("{refused: mine}", "refused: expected 'mine', found ''"),
        ("{writes: []}", "writes: expected 0, found 1: apply host"),
        ("{writes: [{verb: delete, side: virtual}]}", "writes[0].side: expected virtual, found host"),
        (
            "{writes: [{verb: apply, side: host, contains: {data: {color: red}}}]}",
            "writes[0].data.color: expected 'red', found 'blue'",
        ),
        (
            "{writes: [{verb: apply, side: host, contains: {spec: null, data: null}}]}",
            "writes[0].data: expected None, found {",
        ),
        (
            "{writes: [{verb: apply, side: host, object: {kind: ConfigMap, apiVersion: v1, data: {color: blue}}}]}",
            "writes[0].metadata: expected nothing, found {",
        ),
    ],
)
def test_differences_from_the_expectation_are_listed(tmp_path: Path, expect: str, message: str) -> None:
    text = failure(tmp_path, expect)
    assert text.startswith("/some.yaml:7: one\n")
    assert message in text


def test_unexpected_refusal_is_reported(tmp_path: Path) -> None:
    squatter = "{apiVersion: v1, kind: ConfigMap, metadata: {name: db-x-shop-x-vc, namespace: vc-ns}}"
    text = failure(tmp_path, "{calls: []}", f"    given: {{host: [{squatter}]}}\n")
    assert "refused: expected None, found 'the host" in text


def test_differences_of_wholes_and_of_parts() -> None:
    expected, found = {"a": [1, {"b": 2}], "c": 3}, {"a": [1, {"b": 2, "x": 0}], "d": 4}
    assert list(differences(expected, found, "it", whole=True)) == [
        "it.a[1].x: expected nothing, found 0",
        "it.c: expected 3, found nothing",
        "it.d: expected nothing, found 4",
    ]
    assert list(differences(expected, found, "it", whole=False)) == ["it.c: expected 3, found nothing"]
    assert list(differences([1], [1, 2], "it", whole=False)) == ["it: expected [1], found [1, 2]"]
