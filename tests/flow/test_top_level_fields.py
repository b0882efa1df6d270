"""Custom kinds whose CRD has other top-level fields than ``spec``, as API servers prune and validate them."""

from typing import Any

from custom_scene import running
from harness import CLUSTER, HOME, Two, until, writes
from sampled import config_model, registry

from syncer.api import Obj
from syncer.config import SyncerConfig
from syncer.testing.merge import merged
from syncer.testing.objects import crd, crd_version

TEMPLATES, CLASSES = "templates.example.test", "volumesnapshotclasses.snapshot.storage.k8s.io"
CONTENTS: Obj = {"objects": [{"kind": "ConfigMap", "data": {"a": "b"}}], "parameters": {"A": "1"}}
SHOWN: Obj = {"driver": "d.example.org", "deletionPolicy": "Delete", "parameters": {"size": "1"}}


def definition(name: str, fields: Obj, **parts: Any) -> Obj:
    """Return the CRD of a kind with these top-level fields, and no others."""
    made = crd(name, [crd_version("v1", storage=True)], **parts)
    made["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {"type": "object", "properties": fields}}
    return made


def config_of(custom: Obj) -> SyncerConfig:
    given = {"cluster": CLUSTER, "host": {"namespace": HOME}, "sync": {"custom": custom}}
    return config_model(registry()).model_validate(given)


def template(**parts: Any) -> Obj:
    metadata = {"name": "t", "namespace": "shop"}
    return {"apiVersion": "example.test/v1", "kind": "Template", "metadata": metadata, **parts}


def contents(obj: Obj | None) -> Obj:
    return {name: each for name, each in (obj or {}).items() if name not in ("apiVersion", "kind", "metadata")}


ANYTHING: Obj = {"x-kubernetes-preserve-unknown-fields": True}
FIELDS: Obj = dict.fromkeys(("objects", "parameters", "status"), ANYTHING)


async def test_copy_has_all_top_level_fields_that_the_host_knows(two: Two) -> None:
    two.host.put(definition(TEMPLATES, FIELDS))
    two.virtual.put(definition(TEMPLATES, {**FIELDS, "message": ANYTHING}))
    two.virtual.put(template(message="m", **CONTENTS))
    async with running(two, config_of({TEMPLATES: {}})) as daemon:
        await daemon.settled()
        assert contents(two.copy(TEMPLATES, "t")) == CONTENTS
        two.host.put(merged(two.copy(TEMPLATES, "t") or {}, {"status": {"phase": "Ready"}}))
        await until(lambda: contents(two.original(TEMPLATES, "t")).get("status") == {"phase": "Ready"})
        original = two.original(TEMPLATES, "t") or {}
        two.virtual.put({name: each for name, each in original.items() if name != "parameters"})
        await until(lambda: "parameters" not in contents(two.copy(TEMPLATES, "t")))
        await daemon.settled()
        since = len(two.virtual.requests), len(two.host.requests)
        await daemon.settled()
        assert (writes(two.virtual, since[0]), writes(two.host, since[1])) == ([], [])


async def test_field_that_the_definition_gets_later_goes_down_without_a_restart(two: Two) -> None:
    for server in (two.virtual, two.host):
        server.put(definition(TEMPLATES, FIELDS))
    async with running(two, config_of({TEMPLATES: {}})) as daemon:
        await daemon.settled()
        for server in (two.virtual, two.host):
            server.put(definition(TEMPLATES, {**FIELDS, "message": ANYTHING}))
        two.virtual.put(template(message="m", **CONTENTS))
        await until(lambda: contents(two.copy(TEMPLATES, "t")) == {**CONTENTS, "message": "m"})


async def test_kind_that_takes_any_top_level_field_is_copied_whole(two: Two) -> None:
    for server in (two.virtual, two.host):
        made = definition(TEMPLATES, {})
        made["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {"type": "object", **ANYTHING}}
        server.put(made)
    two.virtual.put(template(**CONTENTS, spec={"a": 1}))
    async with running(two, config_of({TEMPLATES: {}})) as daemon:
        await daemon.settled()
        assert contents(two.copy(TEMPLATES, "t")) == {**CONTENTS, "spec": {"a": 1}}


async def test_class_of_a_group_below_k8s_io_appears_with_its_fields_and_is_restored(two: Two) -> None:
    text: Obj = {"type": "string"}
    names = {
        "kind": "VolumeSnapshotClass",
        "listKind": "VolumeSnapshotClassList",
        "singular": "volumesnapshotclass",
    }
    for server in (two.virtual, two.host):
        fields = {"driver": text, "deletionPolicy": text, "parameters": ANYTHING}
        made = definition(CLASSES, fields, scope="Cluster", spec={"names": names})
        made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["required"] = ["driver", "deletionPolicy"]
        server.put(made)
    shown = {"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", **SHOWN}
    two.host.put({**shown, "metadata": {"name": "fast"}})
    async with running(two, config_of({CLASSES: {"direction": "fromHost"}})) as daemon:
        await until(lambda: contents(two.virtual.get(CLASSES, "fast")) == SHOWN)
        two.virtual.put(merged(two.virtual.get(CLASSES, "fast") or {}, {"driver": "mine", "parameters": {"b": "2"}}))
        await until(lambda: contents(two.virtual.get(CLASSES, "fast")) == SHOWN)
        two.host.put({**shown, "metadata": {"name": "fast"}, "parameters": None})
        await until(lambda: "parameters" not in contents(two.virtual.get(CLASSES, "fast")))
        await daemon.settled()
