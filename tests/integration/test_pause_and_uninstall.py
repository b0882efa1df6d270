"""On real API servers: paused objects are left alone, and `syncer uninstall` leaves nothing of ours, or no marks."""

import pytest
from api import eventually
from scene import Scene

from syncer.api import Key, annotations_of, labels_of
from syncer.engine.leaderelection import identity as claim
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


def test_what_kubectl_annotates_is_left_alone_until_it_no_longer_is(scene: Scene) -> None:
    scene.start()
    namespace = shop(scene)
    web = Key(namespace, "web")
    kubectl = scene.virtual.plane.kubectl
    kubectl("annotate", "-n", namespace, "configmap", "web", f"{PAUSED}=true")
    eventually(lambda: annotations_of(scene.copy("ConfigMap", web) or {"metadata": {}}).get(PAUSED), "it is marked")
    kubectl("annotate", "namespace", namespace, f"{PAUSED}=true")
    eventually(lambda: annotations_of(scene.copy("Secret", web) or {"metadata": {}}).get(PAUSED), "it is marked, too")
    kubectl("annotate", "-n", "kube-system", "configmap", "vsyncer", f"{PAUSED}=true")
    for kind in ("configmap", "secret"):
        kubectl("delete", "-n", namespace, kind, "web")
    scene.virtual.create(configmap("other", namespace=namespace))
    kubectl("annotate", "-n", "kube-system", "configmap", "vsyncer", f"{PAUSED}-")
    kubectl("annotate", "namespace", namespace, f"{PAUSED}-")
    scene.gone("Secret", web)
    scene.copied("ConfigMap", Key(namespace, "other"))
    copy = scene.copy("ConfigMap", web)
    assert copy
    assert annotations_of(copy)[PAUSED] == "virtual"
    scene.host.plane.kubectl(
        "annotate", "-n", copy["metadata"]["namespace"], "configmap", copy["metadata"]["name"], f"{PAUSED}-"
    )
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
    assert scene.virtual.get("ConfigMap", claim.PLACE) is None
    assert scene.host.get("Lease", Key(scene.host_namespace, f"vsyncer-{scene.name}")) is None
