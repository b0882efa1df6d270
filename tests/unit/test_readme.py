"""The code and configurations of the README, and of the pages that begin where it ends, work."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from syncer.cli.app import app

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = (README, ROOT / "docs" / "running.md", ROOT / "docs" / "synced.md")


def configurations() -> list[str]:
    """Return the blocks of YAML of all pages."""
    found = []
    for page in PAGES:
        found += re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    return found


def test_first_syncer_of_the_readme_passes_its_own_test() -> None:
    code, _ = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(code, str(README), "exec"), names)
    names["test_a_widget_goes_to_the_host"]()


@pytest.mark.parametrize("block", configurations())
def test_configurations_of_the_pages_are_valid(block: str, tmp_path: Path) -> None:
    given = yaml.safe_load(block)
    named = {} if "virtualClusters" in given else {"cluster": "shop", "host": {"namespace": "vc-shop"}}
    config = {"apiVersion": "vsyncer.dev/v1alpha1", "kind": "SyncerConfig", **named, **given}
    file = tmp_path / "syncer.yaml"
    file.write_text(yaml.safe_dump(config))
    result = CliRunner().invoke(app, ["config", "validate", str(file)], env={"SYNCER_CONFIG": str(file)})
    assert result.exit_code == 0, result.output
