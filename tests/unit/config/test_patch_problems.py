"""Problems of patches are reported when the file is read: with line, place and a way out."""

from typing import Any

import pytest

from syncer.api import ConfigError, Patch
from syncer.config import Loaded, build, parse

HEAD = "apiVersion: vsyncer.dev/v1alpha1\nkind: SyncerConfig\ncluster: shop\nhost: {namespace: vc-shop}\n"
FILE = HEAD + "sync:\n  toHost:\n    widgets:\n      patches:\n        down:\n          - {path: spec.a, cel: value}\n"
LINE = 11
WHERE = "sync.toHost.widgets.patches.down[1]"


def loaded(plugins: Any, patch: str, before: str = "") -> Loaded:
    return build(parse(FILE + f"          - {patch}\n" + before, "f.yaml"), plugins)


def problems(plugins: Any, patch: str, more: str = "") -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loaded(plugins, patch, more)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    "patch",
    [
        "{op: replace, path: /spec/class, value: x}",
        "{op: add, path: /spec/class, value: null}",
        "{op: remove, path: /spec/containers/0}",
        "{op: move, from: /spec/a, path: /spec/b}",
        "{op: test, path: /kind, value: Widget}",
        "{op: test, path: /metadata/labels/vsyncer.dev~1cluster, value: shop.vc-shop}",
        "{path: spec.ref, rename: Secret}",
        "{path: spec.ref, rename: Widget}",
        "{path: 'spec.refs[].name', rename: issuers.cert-manager.io}",
        "{path: spec.selector, labels: selector}",
        "{path: 'spec.containers[0].image', cel: \"value + '-x'\"}",
        "{path: /metadata/annotations/example.org~1a, cel: self.kind}",
    ],
)
def test_right_patches_load(plugins: Any, patch: str) -> None:
    [widgets, _] = loaded(plugins, patch).cluster.enabled()
    assert len(widgets.section.patches.down) == 2
    assert widgets.section.patches.up == ()


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ("{op: replce, path: /spec/a}", ".op: 'replce' is not one of add, remove, replace, move, copy, test."),
        (
            "{op: remove, path: spec.a}",
            ".path: expected a JSON pointer such as /spec/replicas, found 'spec.a'. Did you mean /spec/a?",
        ),
        (
            "{op: remove, path: 'spec.a[0].b'}",
            ".path: expected a JSON pointer such as /spec/replicas, found 'spec.a[0].b'. Did you mean /spec/a/0/b?",
        ),
        ("{op: remove, path: ''}", ".path: expected a JSON pointer such as /spec/replicas, found ''."),
        ("{op: remove, path: /a~2b}", ".path: expected a JSON pointer: ~ is written ~0, and / in a name ~1,"),
        (
            "{path: spec..a, cel: value}",
            ".path: expected a path such as spec.replicas or spec.containers[].image, found 'spec..a'.",
        ),
        ("{path: 'spec.a[', cel: value}", ".path: expected a path such as spec.replicas"),
        ("{path: 'spec.a[x]', cel: value}", ".path: expected a path such as spec.replicas"),
        ("{path: '', cel: value}", ".path: expected a path such as spec.replicas"),
        ("{path: metadata.name, cel: value}", ".path: would change metadata.name, which says what the object is; no"),
        ("{op: move, from: /kind, path: /spec/a}", ".from: would change kind, which says what the object is; no patch"),
        ("{op: move, from: a, path: /spec/a}", ".from: expected a JSON pointer such as /spec/replicas, found 'a'."),
        ("{op: remove}", ".path: is required and not given."),
        ("{path: spec.a}", ": has none of op, rename, labels and cel; a patch does one thing."),
        ("{path: spec.a, cel: value, labels: selector}", ": has labels and cel; a patch does one thing."),
        ("{op: add, path: /spec/a}", ": op add needs a value."),
        ("{op: remove, path: /spec/a, value: 1}", ": op remove takes no value."),
        ("{op: copy, path: /spec/a}", ": op copy needs a from."),
        ("{op: add, path: /spec/a, value: 1, from: /spec/b}", ": op add takes no from."),
        ("{path: spec.a, cel: value, value: 1}", ": a patch without op takes no value."),
        ("{op: move, from: /spec/a, path: /spec/a/b}", ": op move can't move a value into itself."),
        (
            "{op: add, path: /spec/a, value: 2020-01-01}",
            ".value: holds a date, which JSON does not have. Put it in quo",
        ),
        ("{op: add, path: /spec/a, value: {a: [.nan]}}", ".value: holds a float, which JSON does not have."),
        ("{path: spec.a, labels: false}", ".labels: false is not one of selector, map, text."),
        (
            "{path: spec.a, labels: selectors}",
            ".labels: 'selectors' is not one of selector, map, text. Did you mean selector?",
        ),
        ("{path: spec.a, lables: true}", ".lables: no such option. Did you mean labels?"),
        ("{path: spec.a, cel: 3}", ".cel: expected text, found 3. Put it in quotes."),
        ("{path: spec.a, cel: 'value +'}", ".cel: is not a CEL expression: column 8: it ends too early."),
        (
            "{path: spec.a, cel: 'valeu'}",
            ".cel: is wrong at column 1: there is no variable 'valeu'. Did you mean value?",
        ),
        (
            "{path: spec.a, rename: Secrt}",
            (
                ".rename: no kind 'Secrt' is known here; others are written plural.group, such as "
                "issuers.cert-manager.io. Did you mean Secret?"
            ),
        ),
        (
            "{path: /metadata/labels/vsyncer.dev~1cluster, cel: value}",
            ".path: would change a mark, 'vsyncer.dev/cluster', by which our copies are known; no patch may.",
        ),
        (
            "{op: move, from: /metadata/annotations/vsyncer.dev~1fields, path: /spec/a}",
            ".from: would change a mark, 'vsyncer.dev/fields', by which our copies are known; no patch may.",
        ),
    ],
)
def test_wrong_patch_is_a_problem_with_its_path(plugins: Any, patch: str, message: str) -> None:
    [problem] = problems(plugins, patch)
    assert problem.startswith(f"f.yaml:{LINE}: {WHERE}{message}")


def test_marks_are_those_of_the_configured_prefix(plugins: Any) -> None:
    ours = "{path: /metadata/labels/acme.example~1cluster, cel: value}"
    assert loaded(plugins, ours)
    assert "by which our copies are known" in problems(plugins, ours, "marks: {prefix: acme.example}\n")[0]


def test_problems_come_all_at_once_also_in_other_sections(plugins: Any) -> None:
    more = "  fromHost:\n    gadgetParts:\n      patches:\n        up:\n        - path: spec.b\n"
    more += "          cel: |\n            1 +\n            * 2\n"
    more += "  custom:\n    things.example.org:\n      patches: {up: [{path: spec.c, cel: 'valeu'}]}\n"
    found = problems(plugins, "{path: spec..a, cel: 'value +'}", more)
    locations = [problem.split(": ")[:2] for problem in found if "custom: no such" not in problem]
    assert locations == [
        ["f.yaml:11", f"{WHERE}.path"],
        ["f.yaml:11", f"{WHERE}.cel"],
        ["f.yaml:17", "sync.fromHost.gadgetParts.patches.up[0].cel"],
        ["f.yaml:22", "sync.custom.things.example.org.patches.up[0].cel"],
    ]
    assert "line 2, column 1" in "".join(found)


@pytest.mark.usefixtures("without_cel")
def test_expression_without_the_extra_is_refused_with_the_way_out(plugins: Any) -> None:
    found = problems(plugins, "{op: remove, path: /spec/a}")
    why = "needs CEL, which is not installed. Run: pip install 'vsyncer[cel]'"
    assert found == [f"f.yaml:10: sync.toHost.widgets.patches.down[0].cel: {why}"]


def test_patches_are_frozen_and_written_as_they_are_read() -> None:
    patch = Patch.model_validate({"op": "move", "from": "/spec/a~1b", "path": "/spec/c"})
    assert (patch.from_steps, patch.steps) == (("spec", "a/b"), ("spec", "c"))
    assert patch.model_dump(by_alias=True, exclude_unset=True) == {
        "op": "move",
        "from": "/spec/a~1b",
        "path": "/spec/c",
    }
    with pytest.raises(ValueError, match="frozen"):
        patch.path = "/spec/d"
