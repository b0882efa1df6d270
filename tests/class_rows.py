"""Classes and CSIDrivers, for suites with rows of their own for them: one of the host of each kind that appears in
virtual clusters, and a tenant's own class.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from syncer.api import Obj, Resource
from syncer.resources.kinds import (
    CSI_CAPACITIES,
    CSI_DRIVERS,
    CSI_NODES,
    INGRESS_CLASSES,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
    VOLUME_ATTRIBUTES_CLASSES,
    VOLUME_SNAPSHOT_CLASSES,
)
from syncer.testing.merge import merged
from syncer.testing.objects import build, node


@dataclass(frozen=True)
class ClassRow:
    """A kind of classes, or CSIDrivers."""

    resource: Resource
    section: str
    parts: Obj
    #: A merge patch of what an API server lets be changed, and one of what makes it another class.
    edit: Obj
    other: Obj

    @property
    def syncer(self) -> str:
        """The name of the syncer."""
        return self.resource.plural

    @property
    def sync(self) -> Mapping[str, Any]:
        """The configuration in which classes appear."""
        return {"fromHost": {self.section: {"enabled": True}}}

    def named(self, name: str, **parts: Any) -> Obj:
        """Return a class."""
        return build(self.resource, name, **merged(self.parts, parts))


_PRIORITY = {"value": 5, "preemptionPolicy": "Never", "description": "for batches"}
_LABELLED: Obj = {"metadata": {"labels": {"zone": "a"}}}

ROWS = (
    ClassRow(
        STORAGE_CLASSES,
        "storageClasses",
        {"provisioner": "disk.example.org", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
        {"allowVolumeExpansion": True},
        {"provisioner": "nfs.example.org"},
    ),
    ClassRow(
        VOLUME_ATTRIBUTES_CLASSES,
        "volumeAttributesClasses",
        {"driverName": "disk.example.org", "parameters": {"iops": "10"}},
        _LABELLED,
        {"parameters": {"iops": "20"}},
    ),
    ClassRow(
        VOLUME_SNAPSHOT_CLASSES,
        "volumeSnapshotClasses",
        {"driver": "disk.example.org", "deletionPolicy": "Delete"},
        {"deletionPolicy": "Retain"},
        {"driver": "nfs.example.org"},
    ),
    ClassRow(
        INGRESS_CLASSES,
        "ingressClasses",
        {"spec": {"controller": "example.org/a"}},
        _LABELLED,
        {"spec": {"controller": "example.org/b"}},
    ),
    ClassRow(PRIORITY_CLASSES, "priorityClasses", _PRIORITY, {"description": "for the shop"}, {"value": 6}),
    ClassRow(
        RUNTIME_CLASSES,
        "runtimeClasses",
        {"handler": "runsc"},
        {"overhead": {"podFixed": {"memory": "64Mi"}}},
        {"handler": "kata"},
    ),
    ClassRow(
        CSI_DRIVERS,
        "csiDrivers",
        {"spec": {"attachRequired": True, "volumeLifecycleModes": ["Persistent"]}},
        {"spec": {"requiresRepublish": True}},
        {"spec": {"attachRequired": False}},
    ),
)

#: A tenant's own PriorityClass, above the limit of the configuration beside it.
TENANTS_PRIORITY = ClassRow(
    PRIORITY_CLASSES, "priorityClasses", {"value": 50, "description": "x"}, {"description": "y"}, {}
)
TENANTS_PRIORITIES: Mapping[str, Any] = {"toHost": {"priorityClasses": {"enabled": True, "maxValue": 10}}}

#: A driver of a CSINode, and another one.
DISK: Obj = {"name": "disk.example.org", "nodeID": "i-0123", "allocatable": {"count": 25}}
NFS: Obj = {"name": "nfs.example.org", "nodeID": "i-0123"}
#: The host namespace of the capacities of storage.
STORAGE = "storage"
#: The configuration in which CSINodes and capacities appear with the nodes and the class that they are of.
CSI: Mapping[str, Any] = {
    "csiDrivers": {"enabled": True},
    "csiNodes": {"enabled": True, "metadata": {"labels": {"allow": ["tier"]}}},
    "csiStorageCapacities": {
        "enabled": True,
        "namespaces": [STORAGE],
        "metadata": {"labels": {"allow": ["tier"]}},
    },
    "nodes": {"enabled": True},
    "storageClasses": {"enabled": True},
}
#: The syncers of that configuration.
CSI_SYNCERS = ("csidrivers", "csinodes", "csistoragecapacities", "host-nodes", "storageclasses")
_ZONE = "topology.kubernetes.io/zone"


def csi_node(name: str, *drivers: Obj, **parts: Any) -> Obj:
    """Return a CSINode of the host."""
    return build(CSI_NODES, name, spec={"drivers": list(drivers or (DISK,))}, **parts)


def capacity(name: str, **parts: Any) -> Obj:
    """Return a capacity of the class ``fast`` in the zone of :func:`zoned`."""
    topology = {"matchLabels": {_ZONE: "a"}}
    made = build(CSI_CAPACITIES, name, storageClassName="fast", nodeTopology=topology, capacity="10Gi")
    return merged(merged(made, parts), {"metadata": {"namespace": STORAGE}})


def zoned(name: str, zone: str = "a") -> Obj:
    """Return a node of the host in a zone."""
    return node(name, metadata={"labels": {_ZONE: zone}})


def fast() -> Obj:
    """Return the class of the capacities."""
    return ROWS[0].named("fast")
