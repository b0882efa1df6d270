"""CustomResourceDefinitions for the tests on real API servers: those that people run, and small ones."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml
from api import Api, eventually
from scene import OWN_ADDRESSES, Scene

from syncer.api import Key, Obj, dig, labels_of
from syncer.resources.definitions.config import PUBLIC_LABEL
from syncer.testing.merge import merged
from syncer.testing.objects import crd

#: One file a CustomResourceDefinition, named as it is.
FOLDER = Path(__file__).parents[1] / "crds"
CRD = "CustomResourceDefinition"
PUBLIC: Obj = {"metadata": {"labels": {PUBLIC_LABEL: "true"}}}


def load(name: str) -> Obj:
    """Return the CRD of this name as it is in its file."""
    found: Obj = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return found


def small(scene: Scene, plural: str = "widgets", versions: list[Obj] | None = None, **parts: Any) -> Obj:
    """Return a small CRD in an API group of the scene's own, which is not public."""
    made = crd(f"{plural}.{scene.name}.example.com", versions, **parts)
    scene.definitions.append(made["metadata"]["name"])
    return made


def public(obj: Obj) -> Obj:
    """Return the CRD with the label."""
    return merged(obj, PUBLIC)


def named(obj: Obj) -> Key:
    """Return where a CRD is."""
    return Key("", obj["metadata"]["name"])


def defined(api: Api, obj: Obj) -> Obj | None:
    """Return the CRD of this name in a cluster."""
    return api.get(CRD, named(obj))


def comes(scene: Scene, obj: Obj) -> Obj:
    """Return the virtual CRD, as soon as it is there and its objects can be written."""
    eventually(lambda: defined(scene.virtual, obj), f"the virtual cluster has the CRD {named(obj).name}")
    scene.virtual.serves(obj)
    found = defined(scene.virtual, obj)
    assert found
    return found


def shown(scene: Scene, crd: Obj, look: Callable[[Obj], bool], expectation: str) -> Obj:
    """Return the virtual CRD, as soon as it is as it should be."""

    def found() -> Obj | None:
        virtual = defined(scene.virtual, crd)
        return virtual if virtual and look(virtual) else None

    return eventually(found, f"the virtual CRD {expectation}")


def warning_about(scene: Scene, crd: Obj) -> Obj:
    """Return the warning about a virtual CRD."""

    def look() -> list[Obj]:
        events = scene.virtual.list("Event", namespace="default")
        return [each for each in events if dig(each, "involvedObject.name") == named(crd).name]

    return eventually(look, f"there is an Event about {named(crd).name}")[0]


def resource(obj: Obj, name: str, namespace: str = "", **parts: Any) -> Obj:
    """Return an object of the kind that a CRD defines, in the version that is stored."""
    spec = obj["spec"]
    version = next(each["name"] for each in spec["versions"] if each["storage"])
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    made = {"apiVersion": f"{spec['group']}/{version}", "kind": spec["names"]["kind"], "metadata": metadata}
    return merged(made, parts)


def configured(scene: Scene, custom: Obj, *, allow: Iterable[str], user: str = "admin", **public_crds: Any) -> Obj:
    """Return a configuration that syncs these CRDs to the virtual cluster, and custom resources as
    these entries say.
    """
    section = {"enabled": True, "allow": list(allow), **public_crds}
    return scene.config(
        user=user, sync={**OWN_ADDRESSES, "fromHost": {"customResourceDefinitions": section}, "custom": custom}
    )


def is_marked(scene: Scene, obj: Obj) -> bool:
    """Return True if the daemon has made it."""
    return labels_of(obj).get("vsyncer.dev/cluster") == scene.identity
