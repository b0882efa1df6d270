"""Custom resources from which a controller of the host may make Pods are named in the log at a start."""

import asyncio
from typing import Any, cast

import pytest

from syncer.api import Forbidden, Marks, Obj, Resource, Settings
from syncer.clusters.client import SideClient
from syncer.daemon.start.pod_templates import has_containers, warn_of_pod_templates
from syncer.names import SingleNamespace

ROLLOUTS = Resource("argoproj.io/v1alpha1", "Rollout", "rollouts")
ISSUERS = Resource("argoproj.io/v1alpha1", "Issuer", "issuers")
CONTAINER = {"type": "object", "properties": {"name": {"type": "string"}, "image": {"type": "string"}}}
CONTAINERS = {"type": "object", "properties": {"containers": {"type": "array", "items": CONTAINER}}}


def below(schema: Any, *names: str) -> Any:
    """Return a schema that has another one below these names; `[]` stands for items, `*` for any name."""
    for name in reversed(names):
        if name == "[]":
            schema = {"type": "array", "items": schema}
        elif name == "*":
            schema = {"type": "object", "additionalProperties": schema}
        else:
            schema = {"type": "object", "properties": {name: schema}}
    return schema


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        pytest.param(below(CONTAINERS, "spec", "template", "spec"), True, id="template"),
        pytest.param(below(CONTAINERS, "spec", "jobs", "[]", "template", "spec"), True, id="list of templates"),
        pytest.param(below(CONTAINERS, "spec", "roles", "*", "spec"), True, id="mapping of templates"),
        pytest.param(below(CONTAINERS, "spec"), True, id="spec of a Pod"),
        pytest.param(below({"type": "integer"}, "spec", "containers"), False, id="number of containers"),
        pytest.param(below({"type": "string"}, "spec", "containers", "[]"), False, id="names of containers"),
        pytest.param({"x-kubernetes-preserve-unknown-fields": True}, False, id="anything"),
        pytest.param(below(True, "spec", "*"), False, id="mapping of anything"),
    ],
)
def test_schema_with_containers_is_found_at_any_depth(schema: Any, found: bool) -> None:
    assert has_containers(schema) is found


class Host:
    """A host that publishes the schemas of two kinds."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    async def fetch(self, path: str) -> Obj:
        assert path == "/openapi/v3/apis/argoproj.io/v1alpha1"
        if self.error:
            raise self.error
        schemas = {kind.kind: self.schema(kind) for kind in (ROLLOUTS, ISSUERS)}
        return {"openapi": "3.0.0", "components": {"schemas": {"ObjectMeta": CONTAINERS, **schemas}}}

    def schema(self, kind: Resource) -> Obj:
        schema = below(CONTAINERS if kind == ROLLOUTS else {"type": "object"}, "spec", "template", "spec")
        name = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        return {**schema, "x-kubernetes-group-version-kind": [name]}


def output(host: Host, capsys: pytest.CaptureFixture[str]) -> list[str]:
    names = SingleNamespace(cluster="vc", namespace="vc-ns")
    settings = Settings(cluster="vc", host_namespace="vc-ns", names=names, marks=Marks(), sections={})
    asyncio.run(warn_of_pod_templates(cast("SideClient", host), settings, [ROLLOUTS, ISSUERS]))
    return capsys.readouterr().err.splitlines()


def test_kind_with_a_pod_template_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    [line] = output(Host(), capsys)
    assert "rollouts.argoproj.io" in line
    assert "without the rules for Pods" in line


def test_kind_without_a_readable_schema_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    lines = output(Host(Forbidden("no right to read it")), capsys)
    assert len(lines) == 2
    assert all("can't read the schema of a kind" in line for line in lines)
