"""A kind in a package of its own: its class, an entry point, cases and a sample are all that is written."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "plugins/README.md").read_text()
CHAPTER = GUIDE.partition("\n## Add a kind\n")[2].partition("\n## ")[0]
#: All of the package, as the guide has it: a file each for the entry point, the class, the cases, and the sample.
FILES: dict[str, str] = dict(re.findall(r"`([\w/.]+)`, [^\n]*\n\n```\w+\n(.*?)^```", CHAPTER, re.DOTALL | re.MULTILINE))
SAMPLE = "tests/kinds/kind_gadgets.py"


def tried(folder: Path, **instead: str) -> tuple[int, str]:
    """Return the output of hack/kind for the package with some files replaced; ``""`` removes a file."""
    for path, text in {**FILES, **instead}.items():
        if text:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    done = subprocess.run([ROOT / "hack/kind", folder], capture_output=True, text=True, check=False, timeout=600)
    return done.returncode, done.stdout + done.stderr


def _without_counts(text: str) -> str:
    return re.sub(r"\d+ points", "points", text)


def status() -> str:
    git = shutil.which("git")
    assert git
    return subprocess.run(
        [git, "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=600
    ).stdout


def test_guide_has_the_four_files_of_a_package() -> None:
    assert FILES.keys() == {"setup.cfg", "gadgets.py", "tests/cases/gadgets.yaml", SAMPLE}


def test_package_with_a_new_kind_passes_all_suites(tmp_path: Path) -> None:
    before = status()
    code, output = tried(tmp_path)
    assert code == 0, output
    for suite in ("cases, laws, matrix, straight path", "odd shapes", "sieve", "chaos"):
        assert suite in output
    shown = re.search(r"```console\n\$ [^\n]*\n(.*?)```", CHAPTER, re.DOTALL)
    assert shown
    for line in shown[1].splitlines():
        assert _without_counts(line) in _without_counts(output), "the guide shows another end"
    assert status() == before
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == FILES.keys()


@pytest.mark.parametrize(
    ("instead", "output"),
    [
        ({SAMPLE: ""}, "write kind_gadgets.py"),
        (
            {SAMPLE: FILES[SAMPLE].replace("reports=", "#")},
            "it has `up`, so give two `reports` of the host",
        ),
        (
            {SAMPLE: FILES[SAMPLE].replace("make=", "#")},
            "give the sample a `make`",
        ),
        ({"gadgets.py": FILES["gadgets.py"].replace("Mirror)", "object)")}, "is not a subclass of syncer.api.Syncer"),
    ],
    ids=["no sample", "no reports", "no objects", "no syncer"],
)
def test_incomplete_package_gets_an_error_that_names_the_missing_part(
    tmp_path: Path, instead: dict[str, str], output: str
) -> None:
    code, found = tried(tmp_path, **instead)
    assert code != 0
    assert output in found


def test_entry_point_with_capitals_is_found(tmp_path: Path) -> None:
    point = FILES["setup.cfg"].replace("gadgets = gadgets:", "httpGadgets = gadgets:")
    section = FILES["gadgets.py"].replace(
        'name = "gadgets"\n', 'name = "gadgets"\n    section = "toHost.httpGadgets"\n'
    )
    code, found = tried(tmp_path, **{"setup.cfg": point, "gadgets.py": section, "tests/cases/gadgets.yaml": ""})
    assert code != 0
    assert "write cases for it" in found
