"""On real API servers: paused objects are left alone, and `syncer uninstall` leaves nothing of ours, or no marks."""

import pytest
from scene import Scene

from syncer.api import Key, annotations_of, labels_of
from syncer.engine.stores import identity as claim
from syncer.testing.objects import configmap

pytestmark = pytest.mark.controlplane

PAUSED = "vsyncer.dev/paused"
KINDS = ("ConfigMap", "Secret", "Service", "Pod")


def shop(scene: Scene) -> str:
    """Return a namespace with one of each, all of them synced."""
    namespace = scene.shop(settings="web", login="web")
    for kind in KINDS:
        scene.copied(kind, Key(namespace, "web"))
    return namespace


def test_pause_by_a_tenant_stops_changes_and_one_on_a_copy_stops_deletions_too(scene: Scene) -> None:
    scene.start()
    namespace = shop(scene)
    web = Key(namespace, "web")
    kubectl = scene.virtual.plane.kubectl
    kubectl("annotate", "-n", namespace, "configmap", "web", f"{PAUSED}=true")
    kubectl("patch", "-n", namespace, "configmap", "web", "-p", '{"data": {"changed": "yes"}}')
    scene.virtual.create(configmap("other", namespace=namespace))
    scene.copied("ConfigMap", Key(namespace, "other"))
    copy = scene.copy("ConfigMap", web)
    assert copy
    assert "changed" not in (copy.get("data") or {})
    kubectl("annotate", "namespace", namespace, f"{PAUSED}=true")
    kubectl("delete", "-n", namespace, "secret", "web")
    scene.gone("Secret", web)
    of_copy = ("-n", copy["metadata"]["namespace"], "configmap", copy["metadata"]["name"])
    scene.host.plane.kubectl("annotate", *of_copy, f"{PAUSED}=true")
    kubectl("annotate", "namespace", namespace, f"{PAUSED}-")
    for name in ("web", "other"):
        kubectl("delete", "-n", namespace, "configmap", name)
    scene.gone("ConfigMap", Key(namespace, "other"))
    assert scene.copy("ConfigMap", web)
    scene.host.plane.kubectl("annotate", *of_copy, f"{PAUSED}-")
    scene.gone("ConfigMap", web)


@pytest.mark.parametrize("keep", [False, True])
def test_uninstall_leaves_nothing_of_ours_or_no_marks(scene: Scene, keep: bool) -> None:
    daemon = scene.start(scene.config(leaderElection={"enabled": True}))
    namespace = shop(scene)
    web = Key(namespace, "web")
    refused = daemon.run("uninstall", "--yes", seconds=120)
    assert refused.returncode == 1
    assert "leads" in refused.stderr
    daemon.stop()
    flags = ["--keep"] if keep else []
    plan = daemon.run("uninstall", *flags, seconds=120)
    assert plan.returncode == 0, plan
    assert "nothing was written" in plan.stdout
    done = daemon.run("uninstall", "--yes", *flags, seconds=120)
    assert done.returncode == 0, done
    assert done.stdout.splitlines()[-1] == "done"
    for kind in KINDS:
        assert scene.virtual.get(kind, web), "it is the tenant's"
        copy = scene.copy(kind, web)
        assert bool(copy) == keep
        marks = [*labels_of(copy), *annotations_of(copy)] if copy else []
        assert [mark for mark in marks if mark.startswith("vsyncer.dev/")] == sorted(
            ["vsyncer.dev/cluster", "vsyncer.dev/namespace"] if keep and kind in ("Pod", "Service") else []
        )
    assert scene.virtual.get("ConfigMap", claim.NOTE_KEY) is None
    assert scene.host.get("Lease", Key(scene.host_namespace, f"vsyncer-{scene.name}")) is None


def test_uninstall_of_the_host_side_needs_no_virtual_cluster(scene: Scene) -> None:
    daemon = scene.start(scene.config(leaderElection={"enabled": True}))
    web = Key(shop(scene), "web")
    daemon.stop()
    config = scene.config(leaderElection={"enabled": True}, virtual={"kubeconfig": "/there/is/none"})
    without = scene.daemon(config)
    assert without.run("uninstall", "--yes", seconds=120).returncode == 2
    tried = without.run("uninstall", "--yes", "--side", "host-first", seconds=120)
    assert (tried.returncode, tried.stdout.splitlines()[-1]) == (0, "done")
    assert "the virtual side is not finished" in tried.stdout
    assert [kind for kind in KINDS if scene.copy(kind, web)] == []
    assert scene.host.get("Lease", Key(scene.host_namespace, f"vsyncer-{scene.name}")) is None
    again = without.run("uninstall", "--yes", "--side", "host", seconds=120)
    assert (again.returncode, again.stdout.splitlines()[-1]) == (0, "done")
    assert scene.virtual.get("ConfigMap", claim.NOTE_KEY)
