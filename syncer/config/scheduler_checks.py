"""Checks of the options that a scheduler in the virtual cluster takes (``pods.scheduler``)."""

from collections.abc import Iterator, Mapping
from typing import Any

from syncer.config.document import Mistake, as_mapping

_PODS = ("sync", "toHost", "pods")
_CLAIMS = ("sync", "toHost", "persistentVolumeClaims")
_NODES = ("sync", "fromHost", "nodes")
_CLASSES = ("sync", "fromHost", "storageClasses")
_DRIVERS = ("sync", "fromHost", "csiDrivers")
_CAPACITIES = ("sync", "fromHost", "csiStorageCapacities")


def scheduler(data: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield what a scheduler in the virtual cluster lacks."""
    if _section(data, _PODS).get("scheduler") != "virtual":
        return
    path = (*_PODS, "scheduler")
    nodes = _section(data, _NODES)
    if nodes.get("enabled") is not True:
        why = "is virtual, so Pods are bound to Nodes that the host shows"
        yield path, f"{why}: set {'.'.join(_NODES)}.enabled to true."
    elif nodes.get("onlyUsed") is True:
        why = "shows a node once a Pod is on it, and a scheduler needs it before"
        yield (*_NODES, "onlyUsed"), f"{why}: leave it out with {'.'.join(path)}: virtual."
    if _section(data, _CAPACITIES).get("enabled") is True:
        yield from _capacities(data)
    if _section(data, _CLAIMS).get("enabled") is False:
        return
    if _section(data, _CLASSES).get("enabled") is not True:
        why = "is virtual, and a scheduler looks up the class of each claim that a Pod mounts"
        yield path, f"{why}: set {'.'.join(_CLASSES)}.enabled to true."


def _capacities(data: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield the options without which a scheduler doesn't go by CSIStorageCapacities."""
    if not _section(data, _CAPACITIES).get("namespaces"):
        yield (*_CAPACITIES, "namespaces"), "lists no host namespace: list those of the drivers."
    if _section(data, _DRIVERS).get("enabled") is not True:
        why = "has no effect, as a scheduler looks for room only if it finds the CSIDriver"
        yield (*_CAPACITIES, "enabled"), f"{why}: set {'.'.join(_DRIVERS)}.enabled to true."


def _section(data: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
    section = data
    for step in path:
        section = as_mapping(section.get(step))
    return section
