"""Something broken in a virtual cluster, and the command that the documentation gives for its symptom."""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from commands_scene import Commands
from harness import NAMESPACE

from kube_envtest.apiserver.admission import Plugins
from kube_envtest.apiserver.errors import ApiError, forbidden
from syncer.api import Obj

PAGE = Path(__file__).parents[2] / "docs" / "operate" / "objects.md"
#: A symptom of the page.
NO_COPY = "an object has no copy"
PENDING = "a Pod or a claim stays pending"
NOT_AS_WRITTEN = "a copy isn't as its original"
UNUSABLE = "a Pod on the host lacks a ConfigMap or Secret"
NOT_SHOWN = "an object of the host doesn't appear"
NOT_DELETED = "an object or its copy isn't deleted"
NO_ADDRESS = "a Service or an Ingress gets no address"
KIND_MISSING = "a whole kind is missing"
CLUSTER_MISSING = "a whole virtual cluster is missing"
NO_START = "the daemon doesn't start"

#: Returns the host's answer instead of a creation, from the request and the object's name.
Refusal = Callable[[Any, str], ApiError]


class Broken(NamedTuple):
    """Something broken: its symptom on the page, the object that an operator misses, and the cause in the answer."""

    symptom: str
    kind: str
    key: str
    cause: tuple[str, ...]
    #: False if only an API server's answer to a write shows it.
    is_decided: bool = True


def commands_of_page() -> dict[str, str]:
    """Return the command of each symptom in the page's table."""
    table = PAGE.read_text().split("\n## From the symptom to the command\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| `(syncer [^`]+)`.*\|$", table, re.MULTILINE)
    return dict(rows)


def typed(symptom: str, kind: str = "", key: str = "") -> list[str]:
    """Return the words of a symptom's command, for an object."""
    command = commands_of_page()[symptom]
    words = shlex.split(command)[1:]
    for name, value in (("KIND", kind), ("NAMESPACE/NAME", key)):
        words = [value if word == name else word for word in words]
    return words


async def find_causes(scene: Commands, each_broken: Iterable[Broken]) -> None:
    """Wait until the command of each symptom says the cause, with and without a daemon."""
    for broken in each_broken:
        command = typed(broken.symptom, broken.kind, broken.key)
        await scene.until(*command, says=broken.cause)
        if broken.is_decided:
            await scene.until(*command, "--once", says=broken.cause)


def forbidding(why: str) -> Refusal:
    """Return the refusal of an admission plugin."""

    def refusal(call: Any, name: str) -> ApiError:
        return forbidden(call.type, name, why)

    return refusal


def failing(why: str) -> Refusal:
    """Return an internal error of the API server."""

    def refusal(call: Any, name: str) -> ApiError:
        return ApiError(500, "InternalError", f"Internal error occurred: {why}")

    return refusal


def refuse(monkeypatch: pytest.MonkeyPatch, refusals: Mapping[str, Refusal]) -> None:
    """Let an API server refuse to create objects with these names."""
    admitted = Plugins.create

    def create(self: Plugins, call: Any, obj: Obj) -> Obj:
        name = obj["metadata"].get("name", "")
        if name in refusals:
            raise refusals[name](call, name)
        return admitted(self, call, obj)

    monkeypatch.setattr(Plugins, "create", create)


def claim(name: str, **spec: Any) -> Obj:
    resources = {"requests": {"storage": "1Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec},
    }


def storage_class(name: str, **labels: str) -> Obj:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "labels": labels},
        "provisioner": "disks.example.org",
    }
