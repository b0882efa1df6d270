"""CRDs of the host in the virtual cluster, on real API servers: they come, change, and go without a restart."""

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from api import RESOURCES, eventually
from definitions import (
    CRD,
    PUBLIC,
    comes,
    configured,
    defined,
    is_marked,
    named,
    public,
    resource,
    shown,
    small,
    warning_about,
)
from sampled import SAMPLES
from scene import OWN_ADDRESSES, Scene, quiet, untouched

from hack.bench.daemon import Process
from syncer.api import Key, Obj, Side, annotations_of, dig, key_of, labels_of, uid_of
from syncer.resources.definitions.config import PUBLIC_LABEL
from syncer.resources.kinds import VOLUME_SNAPSHOT_CLASSES, VOLUME_SNAPSHOTS
from syncer.testing.merge import merged
from syncer.testing.objects import build, configmap, crd_version

pytestmark = pytest.mark.controlplane

#: How an API server refuses an object of a kind that is about to go.
TERMINATING = "create not allowed while custom resource definition is terminating"
#: Seconds after which all that a test does has been looked at once more by a daemon that can't let it rest.
A_WHILE = 3.0


@pytest.fixture
def tenant(scene: Scene) -> Iterator[Scene]:
    """A virtual cluster whose daemons may do what `syncer rbac` prints; they must not need more, nor write in vain."""
    yield scene
    for running in scene.daemons:
        if running.process and running.process.poll() is None:
            eventually(partial(is_refused_those_alone, running), "each refusal is one of those")
            assert running.requests("syncer_futile_writes_total") == 0, running.log_text()


def is_refused_those_alone(running: Process) -> bool:
    return running.requests(code="403") == running.log_text().count(TERMINATING)


def start(scene: Scene, *crds: Obj, custom: Obj | None = None, **options: Any) -> Process:
    """Return a ready daemon that syncs these CRDs and their objects."""
    names = [named(each).name for each in crds]
    entries = {key: {} for key in names} if custom is None else custom
    running = scene.daemon(configured(scene, entries, allow=names, user="alice", **options))
    scene.grant(running, "alice")
    running.start()
    return running


def widget(crd: Obj, name: str, namespace: str, size: int = 1, **parts: Any) -> Obj:
    return resource(crd, name, namespace, **merged({"spec": {"size": size}}, parts))


# -- they come -------------------------------------------------------------------------------------


def test_new_virtual_cluster_has_the_public_crds_when_it_connects(tenant: Scene, figure: Callable[[str], None]) -> None:
    crds = [public(small(tenant, f"{color}widgets")) for color in ("blue", "green", "red")]
    for each in crds:
        tenant.host.define(each)
    start(tenant, *crds)
    ready = time.monotonic()
    for each in crds:
        comes(tenant, each)
    figure(f"{len(crds)} CRDs are served {time.monotonic() - ready:.2f} s after the daemon is ready")


def test_labelled_crd_brings_its_objects_without_a_restart(tenant: Scene, figure: Callable[[str], None]) -> None:
    crd = small(tenant)
    tenant.host.define(crd)
    running = start(tenant, crd)
    first = running.pid
    assert defined(tenant.virtual, crd) is None
    assert named(crd).name in running.readyz()[1]
    namespace = tenant.namespace()
    times = [time.monotonic()]
    tenant.host.patch(CRD, named(crd), PUBLIC)
    comes(tenant, crd)
    times.append(time.monotonic())
    tenant.virtual.create(widget(crd, "one", namespace))
    times.append(time.monotonic())
    tenant.copied("Widget", Key(namespace, "one"), "spec.size", 1)
    times.append(time.monotonic())
    served, created, copied = (after - before for before, after in itertools.pairwise(times))
    figure(
        f"served {served:.2f} s after the label; the API server took {created:.2f} s to create the first object; it"
        f" was on the host {copied:.2f} s later"
    )
    assert running.pid == first
    eventually(lambda: named(crd).name not in running.readyz()[1], "nothing waits any more")


def test_the_tenants_own_crd_is_put_on_the_host_where_that_is_wanted(tenant: Scene) -> None:
    crd = small(tenant)
    names = [named(crd).name]
    section = {"toHost": {"customResourceDefinitions": {"enabled": True, "names": names}}, "custom": {names[0]: {}}}
    running = tenant.daemon(tenant.config(user="alice", sync=section))
    tenant.grant(running, "alice")
    running.start()
    namespace = tenant.namespace()
    tenant.virtual.define(crd)
    tenant.virtual.create(widget(crd, "one", namespace))
    tenant.copied("Widget", Key(namespace, "one"))
    tenant.virtual.delete(CRD, named(crd))
    eventually(lambda: defined(tenant.virtual, crd) is None, "the virtual CRD is gone")
    found = defined(tenant.host, crd)
    assert found
    assert is_marked(tenant, found)


# -- they change -----------------------------------------------------------------------------------


def test_labels_annotations_and_columns_follow(tenant: Scene) -> None:
    crd = public(small(tenant, metadata={"labels": {"team": "a"}, "annotations": {"note": "x"}}))
    tenant.host.define(crd)
    start(tenant, crd)
    assert annotations_of(comes(tenant, crd))["note"] == "x"
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    versions = [merged(crd_version("v1", storage=True), {"additionalPrinterColumns": columns})]
    metadata = {"labels": {"team": "b"}, "annotations": {"note": None}}
    tenant.host.patch(CRD, named(crd), {"metadata": metadata, "spec": {"versions": versions}})
    found = shown(tenant, crd, lambda each: labels_of(each).get("team") == "b", "has the new label")
    assert "note" not in annotations_of(found)
    assert found["spec"]["versions"][0]["additionalPrinterColumns"] == columns


def test_twenty_edits_in_a_second_end_in_one_state(tenant: Scene, figure: Callable[[str], None]) -> None:
    crd = public(small(tenant))
    tenant.host.define(crd)
    running = start(tenant, crd)
    comes(tenant, crd)
    # Objects that earlier tests have left behind are work for a daemon that has just started.
    before = eventually(lambda: quiet(running), "the daemon has nothing to do")
    calls, began = running.calls(), time.monotonic()
    for number in range(20):
        tenant.host.patch(CRD, named(crd), {"metadata": {"labels": {"edit": str(number)}}})
    took = time.monotonic() - began
    shown(tenant, crd, lambda each: labels_of(each).get("edit") == "19", "is as edited last")
    time.sleep(A_WHILE)
    asked, patches = running.requests() - before, running.calls().get("PATCH", 0) - calls.get("PATCH", 0)
    figure(f"20 edits in {took:.2f} s: {patches:g} patches, {asked:g} requests in all")
    assert patches <= 20
    # A patch an edit, and at most four times a second a look at both sides, of two requests each.
    assert asked <= 60 + 16 * (time.monotonic() - began)


def test_a_new_version_is_synced_without_a_restart(tenant: Scene) -> None:
    crd = public(small(tenant))
    tenant.host.define(crd)
    start(tenant, crd)
    comes(tenant, crd)
    namespace = tenant.namespace()
    tenant.virtual.create(widget(crd, "one", namespace))
    tenant.copied("Widget", Key(namespace, "one"))
    versions = [crd_version("v2", storage=True), crd_version("v1")]
    tenant.host.patch(CRD, named(crd), {"spec": {"versions": versions}})
    tenant.virtual.serves(merged(crd, {"spec": {"versions": versions}}))
    assert RESOURCES["Widget"].version == "v2"
    tenant.virtual.patch("Widget", Key(namespace, "one"), {"spec": {"size": 2}})
    tenant.copied("Widget", Key(namespace, "one"), "spec.size", 2)
    tenant.virtual.create(widget(merged(crd, {"spec": {"versions": versions}}), "two", namespace))
    tenant.copied("Widget", Key(namespace, "two"))


def test_a_version_that_is_stored_in_the_virtual_cluster_does_not_go_before_it_is_migrated(tenant: Scene) -> None:
    crd = public(small(tenant, versions=[crd_version("v2", storage=True), crd_version("v1")]))
    tenant.host.define(public(merged(crd, {"spec": {"versions": [crd_version("v1", storage=True)]}})))
    start(tenant, crd)
    comes(tenant, merged(crd, {"spec": {"versions": [crd_version("v1", storage=True)]}}))
    tenant.host.patch(CRD, named(crd), {"spec": {"versions": crd["spec"]["versions"]}})
    shown(tenant, crd, lambda each: dig(each, "status.storedVersions") == ["v1", "v2"], "has stored both versions")
    tenant.host.patch(CRD, named(crd), {"status": {"storedVersions": ["v2"]}}, subresource="status")
    tenant.host.patch(CRD, named(crd), {"spec": {"versions": [crd_version("v2", storage=True)]}})
    assert "v1 is gone" in warning_about(tenant, crd)["message"]
    assert len(dig(defined(tenant.virtual, crd) or {}, "spec.versions")) == 2
    tenant.virtual.patch(CRD, named(crd), {"status": {"storedVersions": ["v2"]}}, subresource="status")
    shown(tenant, crd, lambda each: len(dig(each, "spec.versions")) == 1, "has the new version only")


def test_a_tenants_own_crd_is_never_touched(tenant: Scene) -> None:
    crd = small(tenant)
    own = tenant.virtual.define(crd)
    tenant.virtual.serves(crd)
    own = eventually(lambda: defined(tenant.virtual, crd), "the tenant's CRD is there")
    tenant.host.define(public(crd))
    with untouched(tenant.virtual, [own]):
        running = start(tenant, crd)
        eventually(lambda: "that is not ours; it is left alone" in running.log_text(), "the daemon says why")
        tenant.host.patch(CRD, named(crd), {"metadata": {"labels": {"edit": "1", PUBLIC_LABEL: "false"}}})
        namespace = tenant.namespace()
        tenant.virtual.create(widget(crd, "one", namespace))
        tenant.copied("Widget", Key(namespace, "one"))  # it is served on both sides, and so its objects are synced


# -- they go ---------------------------------------------------------------------------------------


def test_crd_without_its_label_stays_with_its_objects(tenant: Scene) -> None:
    crd = public(small(tenant))
    tenant.host.define(crd)
    start(tenant, crd)
    first = comes(tenant, crd)
    namespace = tenant.namespace()
    tenant.virtual.create(widget(crd, "one", namespace))
    tenant.copied("Widget", Key(namespace, "one"))
    tenant.host.patch(CRD, named(crd), {"metadata": {"labels": {PUBLIC_LABEL: None, "edit": "1"}}})
    tenant.virtual.create(widget(crd, "two", namespace))
    tenant.copied("Widget", Key(namespace, "two"))
    assert "edit" not in labels_of(defined(tenant.virtual, crd) or {})
    tenant.host.patch(CRD, named(crd), PUBLIC)
    again = shown(tenant, crd, lambda each: labels_of(each).get("edit") == "1", "follows again")
    assert uid_of(again) == uid_of(first)


def test_unused_crd_is_deleted_with_its_label(tenant: Scene) -> None:
    crd = public(small(tenant))
    tenant.host.define(crd)
    start(tenant, crd, onRemoval="delete-if-unused")
    comes(tenant, crd)
    namespace = tenant.namespace()
    tenant.virtual.create(widget(crd, "one", namespace))
    tenant.copied("Widget", Key(namespace, "one"))
    tenant.host.patch(CRD, named(crd), {"metadata": {"labels": {PUBLIC_LABEL: None}}})
    assert warning_about(tenant, crd)["reason"] == "InUse"
    assert tenant.virtual.get("Widget", Key(namespace, "one"))
    tenant.virtual.delete("Widget", Key(namespace, "one"))
    tenant.gone("Widget", Key(namespace, "one"))
    tenant.virtual.patch(CRD, named(crd), {"metadata": {"labels": {"look": "again"}}})
    eventually(lambda: defined(tenant.virtual, crd) is None, "the virtual CRD is gone")


def test_crd_that_a_tenant_deletes_is_recreated(tenant: Scene) -> None:
    crd = public(small(tenant))
    tenant.host.define(crd)
    start(tenant, crd)
    first = comes(tenant, crd)
    namespace = tenant.namespace()
    tenant.virtual.create(widget(crd, "one", namespace))
    tenant.copied("Widget", Key(namespace, "one"))
    tenant.virtual.delete(CRD, named(crd))
    shown(tenant, crd, lambda each: uid_of(each) != uid_of(first), "is created again")
    tenant.gone("Widget", Key(namespace, "one"))  # the tenant has deleted it with its CRD
    tenant.virtual.serves(crd)
    tenant.virtual.create(widget(crd, "two", namespace))
    tenant.copied("Widget", Key(namespace, "two"))


def test_a_host_that_loses_a_crd_loses_nothing_of_the_tenants(tenant: Scene) -> None:
    crd = public(small(tenant))
    tenant.host.define(crd)
    running = start(tenant, crd)
    comes(tenant, crd)
    namespace = tenant.namespace()
    own = [tenant.virtual.create(widget(crd, name, namespace)) for name in ("one", "two")]
    tenant.copied("Widget", Key(namespace, "two"))
    tenant.copied("Widget", Key(namespace, "one"))
    tenant.host.delete(CRD, named(crd))
    eventually(lambda: named(crd).name in running.readyz()[1], "the daemon says that the kind is missing")
    forced = {"annotations": {"vsyncer.dev/force-sync": "true"}}
    tenant.virtual.create(configmap("a", namespace=namespace, metadata=forced))
    tenant.copied("ConfigMap", Key(namespace, "a"))
    assert defined(tenant.virtual, crd)
    assert [tenant.virtual.get("Widget", key_of(each)) for each in own] == own
    tenant.host.define(crd)
    for each in own:
        tenant.copied("Widget", key_of(each), "spec", each["spec"])
    eventually(lambda: named(crd).name not in running.readyz()[1], "nothing is missing any more")


def test_kinds_of_snapshots_go_with_the_hosts_crds(tenant: Scene) -> None:
    """The syncers of these kinds run meanwhile, and each leaves when its kind has gone on one of the sides."""
    approved = {"metadata": {"annotations": {"api-approved.kubernetes.io": "unapproved, for tests"}}}
    crds = [
        public(merged(SAMPLES[name].definition(Side.HOST), approved))
        for name in ("volumesnapshotclasses", "volumesnapshots")
    ]
    for each in crds:
        tenant.definitions.append(named(each).name)
    shown = build(VOLUME_SNAPSHOT_CLASSES, f"shown-{tenant.name}", driver="disk.example.org", deletionPolicy="Delete")
    from_host = {
        "customResourceDefinitions": {"enabled": True, "onRemoval": "delete"},
        "volumeSnapshotClasses": {"enabled": True},
    }
    sync = {**merged(OWN_ADDRESSES, {"toHost": {"volumeSnapshots": {"enabled": True}}}), "fromHost": from_host}
    running = tenant.daemon(tenant.config(user="alice", sync=sync))
    tenant.grant(running, "alice")
    running.start()
    for each in crds:
        tenant.host.define(each)
    tenant.host.create(shown)
    for each in crds:
        comes(tenant, each)
    kind = shown["kind"]
    eventually(lambda: tenant.virtual.get(kind, key_of(shown)), "the class appears")
    namespace = tenant.namespace()
    key = Key(namespace, "daily")
    spec = {"source": {"persistentVolumeClaimName": "data"}}
    tenant.virtual.create(build(VOLUME_SNAPSHOTS, "daily", namespace=namespace, spec=spec))
    tenant.copied("VolumeSnapshot", key)
    tenant.virtual.delete("VolumeSnapshot", key)
    tenant.gone("VolumeSnapshot", key)
    tenant.host.delete(kind, key_of(shown))
    for each in crds:
        tenant.host.delete(CRD, named(each))
    for each in crds:
        eventually(partial(is_undefined, tenant, each), f"{named(each).name} is gone in the virtual cluster")


def is_undefined(scene: Scene, crd: Obj) -> bool:
    return defined(scene.virtual, crd) is None


# -- what goes wrong with one object ---------------------------------------------------------------


def test_a_patch_that_fails_parks_its_object_and_nothing_else(tenant: Scene) -> None:
    crd = public(small(tenant))
    patch = {"op": "replace", "path": "/spec/color", "value": "blue"}
    tenant.host.define(crd)
    start(tenant, crd, custom={named(crd).name: {"patches": {"down": [patch]}}})
    comes(tenant, crd)
    namespace = tenant.namespace()
    wrong = tenant.virtual.create(widget(crd, "wrong", namespace))
    warning = eventually(lambda: tenant.virtual.list("Event", namespace=namespace), "there is an Event")[0]
    assert (warning["type"], warning["involvedObject"]["uid"]) == ("Warning", uid_of(wrong))
    assert warning["reason"] == "PatchFailed"
    assert "patches.down[0]" in warning["message"]
    tenant.virtual.create(widget(crd, "right", namespace, spec={"color": "red"}))
    tenant.copied("Widget", Key(namespace, "right"), "spec.color", "blue")
    assert tenant.copy("Widget", Key(namespace, "wrong")) is None
    tenant.virtual.patch("Widget", Key(namespace, "wrong"), {"spec": {"color": "red"}})
    tenant.copied("Widget", Key(namespace, "wrong"), "spec.color", "blue")
