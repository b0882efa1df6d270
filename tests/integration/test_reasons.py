"""Refusals of a copy by real API servers come to the tenant as the reason, without the value."""

from collections.abc import Iterator
from copy import deepcopy

import pytest
from api import Api, Loop, eventually
from definitions import named, small
from scene import Scene

from syncer.api import Key, Obj, dig

pytestmark = pytest.mark.controlplane

RULES = [{"rule": "!has(self.spec.named) || self.metadata.name.size() <= 5", "message": "the name is too long: 5"}]
STRICT: Obj = {
    "named": {"type": "boolean"},
    "mode": {"type": "string", "enum": ["fast", "slow"]},
    "replicas": {"type": "integer"},
}
LENIENT: Obj = {
    "named": {"type": "boolean"},
    "mode": {"type": "string"},
    "replicas": {"x-kubernetes-preserve-unknown-fields": True},
}


def schema(properties: Obj, **more: object) -> Obj:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}, **more}


@pytest.fixture(scope="module")
def picky(apis: tuple[Api, Api], loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scene, Obj]]:
    """A kind whose CRD on the host is stricter than that of the virtual cluster."""
    made = Scene(*apis, tmp_path_factory.mktemp("picky"))
    try:
        lenient = small(made, "limiteds")
        [version] = lenient["spec"]["versions"]
        version["schema"] = {"openAPIV3Schema": schema(LENIENT)}
        strict = deepcopy(lenient)
        [version] = strict["spec"]["versions"]
        version["schema"] = {"openAPIV3Schema": schema(STRICT, **{"x-kubernetes-validations": RULES})}
        made.virtual.define(lenient)
        made.host.define(strict)
        for api in made.sides:
            api.serves(lenient)
        made.start(made.config(sync={"custom": {named(lenient).name: {}}}))
        yield made, lenient
    finally:
        made.close()


@pytest.mark.parametrize(
    ("name", "spec", "reason"),
    [
        ("short", {"named": True}, "<nil>: Invalid value: the name is too long: 5"),
        ("s", {"mode": "medium"}, 'spec.mode: Unsupported value: supported values: "fast", "slow"'),
        ("t", {"replicas": "three"}, "spec.replicas: Invalid value: spec.replicas in body must be of type integer"),
    ],
)
def test_event_has_the_complete_reason(picky: tuple[Scene, Obj], name: str, spec: Obj, reason: str) -> None:
    scene, crd = picky
    namespace = scene.namespace()
    kind = crd["spec"]["names"]["kind"]
    obj = {"apiVersion": f"{crd['spec']['group']}/v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}}
    scene.virtual.create(obj | {"spec": spec})
    [event] = eventually(lambda: scene.virtual.list("Event", namespace=namespace), "there is an Event")
    assert dig(event, "involvedObject.name") == name
    assert f"is not accepted: {reason}" in event["message"]
    assert scene.host_key(kind, Key(namespace, name)).name not in event["message"]
