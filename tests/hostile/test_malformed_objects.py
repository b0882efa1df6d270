"""Nothing that an API server says about an object ends more than that object, at the start or later."""

import json
from collections.abc import Callable
from typing import Any

from hostile_scene import COPIED, NAMESPACE, HostileScene, eventually

from kube_envtest import ApiServer, Rule
from syncer.api import Obj
from syncer.testing.objects import configmap

#: Stands for a byte that is no UTF-8.
BYTE = "\ue000"


def _without_version(obj: Obj) -> None:
    del obj["metadata"]["resourceVersion"]


def _with(**metadata: Any) -> Callable[[Obj], None]:
    return lambda obj: obj["metadata"].update(metadata)


#: What the virtual API server makes of the ConfigMaps of these names.
SPOILT: dict[str, Callable[[Obj], None]] = {
    "no-version": _without_version,
    "number-as-version": _with(resourceVersion=5),
    "labels": _with(labels=["a"]),
    "annotations": _with(annotations={"a": 1}),
    "owners": _with(ownerReferences=[5]),
    "text": lambda obj: obj.update(data={"a": BYTE}),
    "version-of-others": lambda obj: obj.update(apiVersion="evil/v1", kind="ConfigMap"),
}
#: These can't even be known by their names.
NAMELESS: dict[str, Callable[[Obj], None]] = {
    "name": _with(name=f"a{BYTE}"),
    "no-name": _with(name=None),
    "path": _with(name="../x"),
    "kind": lambda obj: obj.update(kind="Secret"),
}
#: Lines of a watch that are no events.
NONSENSE = b'{"type":"ADDED"}\n5\n{"type":"BOOKMARK","object":[]}\n{"type":7,"object":{}}\n{"type":"NEW","object":{}}'


def _lie(body: bytes) -> bytes:
    """Return a response, or a line of a watch, as an API server may send it that doesn't validate."""
    whole = json.loads(body)
    for obj in whole.get("items") or [whole.get("object", whole)]:
        spoil = {**SPOILT, **NAMELESS}.get(obj.get("metadata", {}).get("name"))
        if spoil is not None:
            spoil(obj)
    sent = json.dumps(whole, ensure_ascii=False).encode().replace(BYTE.encode(), b"\xff")
    return sent + b"\n" + NONSENSE if "object" in whole else sent


def _lies(hostile: HostileScene) -> None:
    def lie(server: ApiServer) -> None:
        for verb in ("list", "watch"):
            server.faults.add(Rule(verb=verb, resource="configmaps", rewrite=_lie))

    hostile.tenant.call(lie)


def test_malformed_object_ends_nothing_but_itself(hostile: HostileScene) -> None:
    """On 0aeb964 the kind stands still: `not within 20 s: they are parked`."""
    names = [*SPOILT, *NAMELESS]
    made = [hostile.tenant.put(configmap(name, {"turn": "1"}, namespace=NAMESPACE, metadata=COPIED)) for name in names]
    hostile.start()
    for each in made:
        hostile.copied(each)
    _lies(hostile)
    for name in names:
        hostile.tenant.patch("configmaps", f"{NAMESPACE}/{name}", data={"turn": "2"})
    hostile.serves_others()
    for _ in range(2):
        parked = {each["key"] for each in eventually(hostile.parked, "they are parked")}
        eventually(
            lambda: {f"{NAMESPACE}/{name}" for name in SPOILT} <= {e["key"] for e in hostile.parked()}, "all are"
        )
        assert parked
        assert "can't be read" in hostile.degraded()
        hostile.restart()
        hostile.serves_others()
    for name in SPOILT:
        copy = hostile.copy(configmap(name, namespace=NAMESPACE))
        assert copy is not None, f"the copy of {name} is no orphan"
        assert copy["data"] == {"turn": "1"}
    hostile.tenant.call(lambda server: server.faults.clear())
    for name in SPOILT:
        hostile.tenant.patch("configmaps", f"{NAMESPACE}/{name}", data={"turn": "3"})
    for name in SPOILT:
        wanted = configmap(name, namespace=NAMESPACE)
        eventually(lambda: (hostile.copy(wanted) or {}).get("data") == {"turn": "3"}, f"{name} is well again")  # noqa: B023
        hostile.tenant.delete("configmaps", f"{NAMESPACE}/{name}")
        eventually(lambda: hostile.copy(wanted) is None, f"{name} is gone")  # noqa: B023
