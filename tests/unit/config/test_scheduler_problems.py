"""Options that a scheduler in the virtual cluster takes, and those that it rules out."""

from typing import Any

import pytest

from syncer.api import ConfigError
from syncer.config import Document, build
from syncer.plugins import installed
from syncer.testing.merge import merged

#: Looked up once: each time, all built-in syncers are checked.
INSTALLED = installed()
WHOLE: dict[str, Any] = {
    "toHost": {"pods": {"scheduler": "virtual"}},
    "fromHost": {"nodes": {"enabled": True}, "storageClasses": {"enabled": True}},
}


def problems(**sync: Any) -> list[str]:
    data = {"cluster": "shop", "host": {"namespace": "vc-shop"}, "sync": merged(WHOLE, sync)}
    try:
        build(Document(data=data), INSTALLED)
    except ConfigError as error:
        return [str(problem) for problem in error.problems]
    return []


def test_whole_configuration_is_accepted() -> None:
    assert problems() == []
    assert problems(toHost={"persistentVolumeClaims": {"enabled": False}}, fromHost={"storageClasses": None}) == []
    storage = {"csiStorageCapacities": {"enabled": True, "namespaces": ["storage"]}, "csiDrivers": {"enabled": True}}
    assert problems(fromHost=storage) == []
    off = {"pods": {"scheduler": "host"}}
    assert problems(toHost=off, fromHost={"nodes": {"onlyUsed": True}, "storageClasses": None}) == []


@pytest.mark.parametrize(
    ("lacking", "words"),
    [
        ({"nodes": None}, "sync.toHost.pods.scheduler: is virtual, so Pods are bound to Nodes that the host shows"),
        ({"nodes": {"enabled": False}}, "set sync.fromHost.nodes.enabled to true"),
        ({"storageClasses": None}, "set sync.fromHost.storageClasses.enabled to true"),
        (
            {"csiStorageCapacities": {"enabled": True, "namespaces": ["storage"]}},
            "sync.fromHost.csiStorageCapacities.enabled: has no effect, as a scheduler looks for room only if it finds",
        ),
        (
            {"csiStorageCapacities": {"enabled": True}, "csiDrivers": {"enabled": True}},
            "sync.fromHost.csiStorageCapacities.namespaces: lists no host namespace",
        ),
        ({"nodes": {"onlyUsed": True}}, "sync.fromHost.nodes.onlyUsed: shows a node once a Pod is on it"),
    ],
)
def test_configuration_that_a_scheduler_could_not_work_with_is_refused(lacking: dict[str, Any], words: str) -> None:
    [problem] = problems(fromHost=lacking)
    assert words in problem
