"""The examples are configurations that work, and say so to editors."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from syncer.config import load
from syncer.plugins import installed

#: Looked up once: each time, all built-in syncers are checked.
INSTALLED = installed()

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("name", ["minimal.yaml", "full.yaml"])
def test_example_loads(name: str) -> None:
    cluster = load(str(EXAMPLES / name), INSTALLED).cluster
    assert "configmaps" in {enabled.syncer.name for enabled in cluster.enabled()}


@pytest.mark.parametrize("name", ["minimal.yaml", "full.yaml"])
def test_example_is_valid_by_the_schema_that_it_names(name: str) -> None:
    text = (EXAMPLES / name).read_text()
    assert "$schema=syncer.schema.json" in text
    jsonschema.validate(yaml.safe_load(text), json.loads((EXAMPLES / "syncer.schema.json").read_text()))
