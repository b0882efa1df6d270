"""The examples of custom resources are configurations that work, and say so to editors."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from syncer.api import Key, Resource
from syncer.config import load
from syncer.plugins import installed
from syncer.testing import World

#: Looked up once: each time, all built-in syncers are checked.
INSTALLED = installed()

EXAMPLES = Path(__file__).parents[3] / "examples"
CUSTOM = sorted((EXAMPLES / "custom").glob("*.yaml"))


@pytest.mark.parametrize("path", CUSTOM, ids=lambda path: path.stem)
def test_example_loads_and_makes_syncers(path: Path) -> None:
    entries = load(str(path), INSTALLED).cluster.custom_entries()
    assert entries
    for entry in entries:
        assert entry.assumed(), entry.name


@pytest.mark.parametrize("path", CUSTOM, ids=lambda path: path.stem)
def test_example_is_valid_by_the_schema_that_it_names(path: Path) -> None:
    text = path.read_text()
    assert "$schema=../syncer.schema.json" in text
    jsonschema.validate(yaml.safe_load(text), json.loads((EXAMPLES / "syncer.schema.json").read_text()))


@pytest.mark.parametrize(
    ("kind", "plural", "endpoints"),
    [("ServiceMonitor", "servicemonitors", "endpoints"), ("PodMonitor", "podmonitors", "podMetricsEndpoints")],
)
def test_example_leads_the_hosts_prometheus_to_the_tenants_own_targets_alone(
    kind: str, plural: str, endpoints: str
) -> None:
    custom = yaml.safe_load((EXAMPLES / "custom" / "prometheus-operator.yaml").read_text())["sync"]["custom"]
    resource = Resource("monitoring.coreos.com/v1", kind, plural)
    elsewhere = {
        "port": "web",
        "relabelings": [{"targetLabel": "__address__", "replacement": "169.254.169.254"}],
        "proxyUrl": "http://10.0.0.1",
        "proxyFromEnvironment": True,
        "noProxy": "x",
        "followRedirects": True,
    }
    monitor = {
        "apiVersion": resource.api_version,
        "kind": kind,
        "metadata": {"name": "web", "namespace": "shop", "uid": "u-1"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, endpoints: [elsewhere, {"port": "more"}]},
    }
    custom = {name: entry for name, entry in custom.items() if name.startswith(plural)}
    world = World(config={"sync": {"custom": custom}}, serves=[resource]).given(virtual=[monitor])
    [write] = world.decide(f"{plural}.monitoring.coreos.com", Key("shop", "web")).writes
    assert write.obj["spec"][endpoints] == [
        {"port": "web", "followRedirects": False},
        {"port": "more", "followRedirects": False},
    ]
