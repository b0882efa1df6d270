"""charts/syncer, installed by Helm on a real host with the controllers of Deployments, in a namespace that enforces
*restricted*. No kubelet runs there: the tests run the containers of its pods.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from api import PATIENCE, Api, Loop, eventually
from installed import CHART, RELEASE, SECRET, Release, Replica
from scene import Scene

from hack.planes import HOST_CONTROLLERS
from hack.realnode import builds
from kube_envtest import ControlPlane, Programs
from syncer.api import Key, Side, dig
from syncer.testing.objects import service

pytestmark = pytest.mark.controlplane


@pytest.fixture(scope="module")
def host(control_plane_programs: Programs, loop: Loop) -> Iterator[Api]:
    """A host where Deployments make pods."""
    if not control_plane_programs.has("kube-controller-manager"):
        pytest.skip("these programs have no kube-controller-manager")
    if not builds.is_built("helm") and os.environ.get("CI") != "true":
        pytest.skip("helm is not built: python -m hack.realnode.builds")
    controllers = f"{HOST_CONTROLLERS},deployment-controller,replicaset-controller"
    plane = ControlPlane("chart-host", programs=control_plane_programs, controllers=controllers)
    plane.start()
    api = Api(loop, plane, Side.HOST)
    yield api
    api.close()
    plane.stop()


@pytest.fixture
def release(apis: tuple[Api, Api], host: Api, tmp_path: Path) -> Iterator[Release]:
    """A release with two pods, whose containers nobody has started yet."""
    scene = Scene(apis[0], host, tmp_path)
    made = Release(scene, tmp_path)
    made.prepare()
    made.helm("install", RELEASE, str(CHART), values=made.values())
    yield made
    scene.close()


def run(release: Release) -> tuple[Replica, Replica]:
    """Start the daemons of both pods, with their rights; return the one that leads first."""
    first, second = (release.replica(pod) for pod in release.made(2))
    release.allow(first)
    first.start()
    eventually(lambda: leads(first), "the first one leads")
    second.start()
    return first, second


def leads(replica: Replica) -> bool:
    return replica.total("leader_election_master_status") == 1


def holder(release: Release) -> str:
    [lease] = release.leases()
    return str(dig(lease, "spec.holderIdentity"))


def shop_in_step(release: Release) -> str:
    """Make a shop in the virtual cluster, and wait for its copies; return its namespace."""
    shop = release.scene.shop(settings="settings", login="login")
    for kind, name in (("ConfigMap", "settings"), ("Secret", "login"), ("Service", "web"), ("Pod", "web")):
        release.scene.copied(kind, Key(shop, name))
    return shop


def test_replicas_bring_a_shop_in_step_and_the_other_leads_when_the_leader_is_killed(release: Release) -> None:
    leader, other = run(release)
    shop = shop_in_step(release)
    release.scene.must_be_content()
    assert holder(release).startswith(f"{RELEASE}-"), "the holder of the Lease bears the name of the release"
    leader.kill()
    release.scene.virtual.create(service("later", namespace=shop))
    release.scene.copied("Service", Key(shop, "later"))
    assert leads(other)
    release.scene.must_be_content()


def test_daemon_runs_without_the_secret_names_the_missing_file_and_takes_it_when_it_comes(release: Release) -> None:
    release.kubectl("delete", "secret", SECRET)
    replica = release.replica(release.made(2)[0])
    release.allow(replica)
    replica.spawn()
    missing = f"there is no kubeconfig {replica.folder}"
    eventually(lambda: missing in replica.readyz()[1], "/readyz names the missing file")
    release.make_secret()
    replica.mount()
    replica.wait_ready()
    shop_in_step(release)


def test_second_release_for_the_virtual_cluster_is_refused_or_stands_by_and_names_the_one_that_leads(
    release: Release, tmp_path: Path
) -> None:
    run(release)
    (tmp_path / "second").mkdir()
    second = Release(release.scene, tmp_path / "second")
    second.prepare()
    with second.helping("install", RELEASE, str(CHART), values=second.values()) as refused:
        assert "exists and cannot be imported into the current release" in refused.communicate(timeout=PATIENCE)[1]
    values = {**second.values(), "rbac": {"create": False}}
    second.helm("install", "second", str(CHART), values=values)
    replica = second.replica(second.made(2)[0])
    second.bind(release, "second-syncer")
    replica.spawn()
    led = f"{RELEASE}-"
    eventually(lambda: f"lease degraded: {led}" in replica.readyz()[1], "/readyz names who leads")
    assert not leads(replica)
    assert "uninstall one of them" in replica.readyz()[1]
    assert '"standing by"' in replica.said()


def test_chart_tests_itself_with_the_rights_of_the_daemon(release: Release) -> None:
    release.allow(release.replica(release.made(2)[0]))
    with release.helping("test", RELEASE, "--timeout=5m") as testing:
        try:
            [pod] = eventually(lambda: release.objects("pods", "vsyncer.dev/part=test"), "Helm has made the pod")
            for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
                done = release.replica(pod, container).once()
                assert done.returncode == 0, (container["name"], done.stdout, done.stderr)
            release.report(pod["metadata"]["name"], "Succeeded")
            said, complaint = testing.communicate(timeout=PATIENCE)
        finally:
            testing.kill()
    assert testing.returncode == 0, (said, complaint)


def test_upgrade_makes_pods_of_the_new_configuration_and_rollback_those_of_the_old_one(release: Release) -> None:
    old = release.config()
    release.made(2)
    release.helm("upgrade", RELEASE, str(CHART), values=release.values(log={"level": "debug"}))
    new = release.config()
    assert new != old
    [pod, *_] = eventually(lambda: release.pods_with(new), "there is a pod of the new configuration")
    replica = release.replica(pod)
    release.allow(replica)
    replica.start()
    assert '"level": "debug"' in replica.said()
    release.helm("rollback", RELEASE)
    assert release.config() == old
    assert len(release.pods_with(old)) == 2, "pods of the old configuration go before those of the new one are ready"


def test_uninstall_leaves_the_copies_and_nothing_else(release: Release) -> None:
    run(release)
    shop = shop_in_step(release)
    for daemon in release.scene.daemons:
        daemon.stop()
    release.helm("uninstall", RELEASE)
    eventually(lambda: not release.pods(), "the pods are gone")
    assert release.scene.copy("ConfigMap", Key(shop, "settings")) is not None
    for kind in ("deployments", "roles", "rolebindings", "poddisruptionbudgets", "services"):
        assert release.objects(kind) == []
