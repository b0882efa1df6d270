"""The examples of custom resources are configurations that work, and say so to editors."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from syncer.config import load
from syncer.plugins import installed

EXAMPLES = Path(__file__).parents[3] / "examples"
CUSTOM = sorted((EXAMPLES / "custom").glob("*.yaml"))


@pytest.mark.parametrize("path", CUSTOM, ids=lambda path: path.stem)
def test_example_loads_and_makes_syncers(path: Path) -> None:
    entries = load(str(path), installed()).cluster.custom_entries()
    assert entries
    for entry in entries:
        assert entry.assumed(), entry.name


@pytest.mark.parametrize("path", CUSTOM, ids=lambda path: path.stem)
def test_example_is_valid_by_the_schema_that_it_names(path: Path) -> None:
    text = path.read_text()
    assert "$schema=../syncer.schema.json" in text
    jsonschema.validate(yaml.safe_load(text), json.loads((EXAMPLES / "syncer.schema.json").read_text()))
