"""Classes and CSIDrivers, for suites with rows of their own for them: one of the host of each kind that appears in
virtual clusters, and a tenant's own class.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from syncer.api import Obj, Resource
from syncer.resources.kinds import (
    CSI_DRIVERS,
    INGRESS_CLASSES,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
    VOLUME_ATTRIBUTES_CLASSES,
    VOLUME_SNAPSHOT_CLASSES,
)
from syncer.testing.merge import merged
from syncer.testing.objects import build


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
