"""charts/syncer, installed by Helm on a real host with the controllers of Deployments, in a namespace that enforces
*restricted*. No kubelet runs there: the tests run the containers of its pods.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from api import PATIENCE, Api, eventually, nothing_left
from installed import CHART, ELECTION, RELEASE, SECRET, Release, Replica
from scene import Scene

from hack.chart_build import built
from syncer.api import Key, Obj, dig
from syncer.testing.objects import service

pytestmark = pytest.mark.controlplane

ROOT = Path(__file__).parents[2]
FOO = ROOT / "plugins" / "foo"
#: What a shop has that is copied.
SHOP = [("ConfigMap", "settings"), ("Secret", "login"), ("Service", "web"), ("Pod", "web")]


@pytest.fixture
def prepared(apis: tuple[Api, Api], chart_host: Api, tmp_path: Path) -> Iterator[Release]:
    """A release that isn't installed yet."""
    scene = Scene(apis[0], chart_host, tmp_path)
    made = Release(scene, tmp_path)
    made.prepare()
    yield made
    scene.close()


@pytest.fixture
def release(prepared: Release) -> Release:
    """A release with two pods and no started container."""
    prepared.helm("install", RELEASE, str(built("syncer")), values=prepared.values())
    return prepared


@pytest.fixture
def both(prepared: Release, apis: tuple[Api, Api], chart_host: Api, tmp_path: Path) -> Iterator[list[Release]]:
    """An installed release with two virtual clusters, as the parts that belong to each, in the order of their names."""
    folder = tmp_path / "further"
    folder.mkdir()
    scene = Scene(apis[1], chart_host, folder)
    further = Release(scene, folder, namespace=prepared.namespace, secret="further")
    further.make_secret()
    prepared.helm("install", RELEASE, str(built("syncer")), values=values_of([prepared, further]))
    yield sorted((prepared, further), key=lambda each: each.scene.name)
    scene.close()


def values_of(releases: list[Release], **more: Any) -> Obj:
    """Return the values of a release with the virtual clusters of all."""
    entries = [entry for each in releases for entry in each.values()["virtualClusters"]]
    return {**releases[0].values(), "virtualClusters": entries, **more}


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


def parts(release: Release, namespace: str) -> list[str]:
    """Return the names of what a release makes in a namespace, but for its accounts and configuration."""
    kinds = "deployments,jobs,roles,rolebindings,poddisruptionbudgets,services"
    selector = f"app.kubernetes.io/instance={RELEASE}"
    return release.kubectl("get", kinds, f"--namespace={namespace}", f"--selector={selector}", "--output=name").split()


def holder(release: Release) -> str:
    [lease] = release.leases()
    return str(dig(lease, "spec.holderIdentity"))


def shop_in_step(release: Release) -> str:
    """Make a shop in the virtual cluster, and wait for its copies; return its namespace."""
    shop = release.scene.shop(settings="settings", login="login")
    for kind, name in SHOP:
        release.scene.copied(kind, Key(shop, name))
    return shop


def copies(release: Release, shop: str) -> list[tuple[str, str]]:
    """Return what has a copy of a shop."""
    return [(kind, name) for kind, name in SHOP if release.scene.copy(kind, Key(shop, name)) is not None]


def remove_copies(release: Release) -> str:
    """Run the pods that the hook has for a virtual cluster; return the name of the last, which isn't reported yet."""
    ended = release.pod_of(f"{release.daemon}-uninstall-end")
    [end], [wait] = ended["spec"]["initContainers"], ended["spec"]["containers"]
    release.run_kubectl(ended, end)
    eventually(lambda: not release.pods(), "the pods are gone")
    for daemon in release.scene.daemons:
        daemon.stop()
    release.run_kubectl(ended, wait)
    release.report(ended["metadata"]["name"], "Succeeded")
    pod = release.pod_of(f"{release.daemon}-uninstall")
    done = release.replica(pod).once()
    assert done.returncode == 0, (done.stdout, done.stderr)
    return str(pod["metadata"]["name"])


def test_replicas_bring_a_shop_in_step_and_the_other_leads_when_the_leader_is_killed(
    release: Release, figure: Callable[[str], None]
) -> None:
    leader, other = run(release)
    shop = shop_in_step(release)
    release.scene.must_be_content()
    led = f"{release.namespace}/{release.daemon}-"
    assert holder(release).startswith(led), "the holder of the Lease bears the names of the release and its namespace"
    leader.kill()
    killed = time.monotonic()
    release.scene.virtual.create(service("later", namespace=shop))
    eventually(lambda: leads(other), "the other one leads")
    took = time.monotonic() - killed
    release.scene.copied("Service", Key(shop, "later"))
    copied = time.monotonic() - killed
    figure(f"the other led {took:.1f} s after the kill, and had copied after {copied:.1f} s; {ELECTION}")
    release.scene.must_be_content()


def test_install_without_the_host_namespace_names_it_makes_nothing_and_goes_on_once_it_is_there(
    prepared: Release,
) -> None:
    values, missing = prepared.values(), f"{prepared.scene.host_namespace}-missing"
    values["virtualClusters"][0]["hostNamespace"] = missing
    with prepared.helping("install", RELEASE, str(built("syncer")), values=values) as refused:
        assert f'namespaces "{missing}" not found' in refused.communicate(timeout=PATIENCE)[1]
    assert refused.returncode != 0
    assert parts(prepared, prepared.namespace) == []
    prepared.scene.host.make_namespace(missing)
    prepared.helm("upgrade", "--install", RELEASE, str(built("syncer")), values=values)
    assert len(prepared.made(2)) == 2
    roles = yaml.safe_load(prepared.kubectl("get", "roles", f"--namespace={missing}", "--output=yaml"))["items"]
    assert not [each for each in roles if not each["rules"]], "the role that finds the namespace out is gone"


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
    with second.helping("install", RELEASE, str(built("syncer")), values=second.values()) as refused:
        assert "exists and cannot be imported into the current release" in refused.communicate(timeout=PATIENCE)[1]
    values = {**second.values(), "rbac": {"create": False}}
    second.helm("install", RELEASE, str(built("syncer")), values=values)
    replica = second.replica(second.made(2)[0])
    second.bind(release, second.daemon)
    replica.spawn()
    led = f"{release.namespace}/{release.daemon}-"
    eventually(lambda: f"lease degraded: {led}" in replica.readyz()[1], "/readyz names who leads")
    assert not leads(replica)
    assert "uninstall one of them" in replica.readyz()[1]
    assert '"standing by"' in replica.log_text()


def test_chart_tests_each_virtual_cluster_with_the_rights_of_its_daemon(both: list[Release]) -> None:
    for each in both:
        each.allow(each.replica(each.made(2)[0]))
    with both[0].helping("test", RELEASE, "--timeout=5m") as testing:
        try:
            for each in both:
                selector = f"vsyncer.dev/part=test,vsyncer.dev/serves={each.scene.name}"
                [pod] = eventually(partial(each.objects, "Pod", selector), "Helm has made the pod")
                assert pod["spec"]["serviceAccountName"] == each.daemon
                for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
                    done = each.replica(pod, container).once()
                    assert done.returncode == 0, (container["name"], done.stdout, done.stderr)
                each.report(pod["metadata"]["name"], "Succeeded")
            output, complaint = testing.communicate(timeout=PATIENCE)
        finally:
            testing.kill()
    assert testing.returncode == 0, (output, complaint)


def test_plugin_installed_by_an_init_container_syncs_its_kind(prepared: Release, tmp_path: Path) -> None:
    scene, source, wheels = prepared.scene, tmp_path / "source", tmp_path / "wheels"
    shutil.copytree(FOO, source)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={wheels}", str(source)]
    constraints = dict.fromkeys(("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"), str(ROOT / "hack" / "constraints.txt"))
    subprocess.run(build, env={**os.environ, **constraints}, check=True, timeout=PATIENCE)
    crd = yaml.safe_load((FOO / "crd.yaml").read_text())
    scene.definitions.append(crd["metadata"]["name"])
    for api in scene.sides:
        api.define(crd)

    values = prepared.values(sync={"toHost": {"foos": {"enabled": True}}})
    [guide] = re.findall(r"command: (\[pip.*\])", (CHART / "README.md").read_text())
    command = yaml.safe_load(guide.replace("baz", "foo"))
    image = "docker.io/library/python:3.14-slim"
    values["plugins"] = [{"name": "foo", "image": image, "initContainer": {"command": command}}]
    verbs = ["get", "list", "watch", "create", "patch", "delete"]
    values["extraRules"] = {"host": [{"apiGroups": [crd["spec"]["group"]], "resources": ["foos"], "verbs": verbs}]}
    prepared.helm("install", RELEASE, str(built("syncer")), values=values)

    pod = prepared.made(2)[0]
    [init] = pod["spec"]["initContainers"]
    installing, replica = prepared.replica(pod, init), prepared.replica(pod)
    installing.run_pip(wheels)
    installing.share("/plugins/foo", replica)
    prepared.allow(replica)
    replica.start()
    key = Key(scene.namespace("foos"), "one")
    metadata = {"name": key.name, "namespace": key.namespace}
    scene.virtual.create(
        {"apiVersion": f"{crd['spec']['group']}/v1alpha1", "kind": "Foo", "metadata": metadata, "spec": {"replicas": 2}}
    )
    assert scene.copied("Foo", key)["spec"] == {"replicas": 2}
    scene.must_be_content()


def test_upgrade_makes_pods_of_the_new_configuration_and_rollback_those_of_the_old_one(release: Release) -> None:
    old = release.config()
    release.made(2)
    release.helm("upgrade", RELEASE, str(built("syncer")), values=release.values(log={"level": "debug"}))
    new = release.config()
    assert new != old
    [pod, *_] = eventually(lambda: release.pods_with(new), "there is a pod of the new configuration")
    replica = release.replica(pod)
    release.allow(replica)
    replica.start()
    eventually(lambda: '"level": "debug"' in replica.log_text(), "it logs at the new level")
    release.helm("rollback", RELEASE)
    assert release.config() == old
    assert len(release.pods_with(old)) == 2, "pods of the old configuration go before those of the new one are ready"


def test_further_virtual_cluster_of_a_release_leaves_the_pods_of_the_first_alone(release: Release) -> None:
    before = {each["metadata"]["uid"] for each in release.made(2)}
    further = f"{release.scene.host_namespace}-too"
    release.scene.host.make_namespace(further)
    values = release.values()
    entry = {"name": "further", "hostNamespace": further, "kubeconfigSecret": {"name": "comes-later"}}
    values["virtualClusters"].append(entry)
    release.helm("upgrade", RELEASE, str(built("syncer")), values=values)
    selector = "vsyncer.dev/part=syncer,vsyncer.dev/serves=further"
    eventually(lambda: len(release.objects("Pod", selector)) == 2, "the further one has two pods of its own")
    assert {each["metadata"]["uid"] for each in release.pods()} == before


def test_virtual_clusters_of_a_release_are_each_served_by_a_daemon_of_their_own(both: list[Release]) -> None:
    for each in both:
        replica = each.replica(each.made(2)[0])
        each.allow(replica)
        replica.start()
        shop_in_step(each)
    for each in both:
        each.scene.must_be_content()


def test_uninstall_leaves_the_copies_and_nothing_else(release: Release) -> None:
    run(release)
    shop = shop_in_step(release)
    for daemon in release.scene.daemons:
        daemon.stop()
    release.helm("uninstall", RELEASE)
    eventually(lambda: not release.pods(), "the pods are gone")
    assert release.scene.copy("ConfigMap", Key(shop, "settings")) is not None
    for namespace in (release.namespace, release.scene.host_namespace):
        assert parts(release, namespace) == []


def test_uninstall_hook_ends_one_daemon_after_the_other_and_removes_its_copies_before_the_release_goes(
    both: list[Release],
) -> None:
    release, shops = both[0], []
    for each in both:
        run(each)
        shops.append((each, shop_in_step(each)))
    release.helm("upgrade", RELEASE, str(built("syncer")), values=values_of(both, uninstall={"enabled": True}))
    with release.helping("uninstall", RELEASE) as removing:
        try:
            for number, (each, shop) in enumerate(shops, start=1):
                pod = remove_copies(each)
                assert copies(each, shop) == []
                for later, further in shops[number:]:
                    assert len(later.pods()) == 2, "a later one goes on until it is its turn"
                    assert copies(later, further) == SHOP
                each.report(pod, "Succeeded")
            output, complaint = removing.communicate(timeout=PATIENCE)
        finally:
            removing.kill()
    assert removing.returncode == 0, (output, complaint)
    for each, shop in shops:
        kept = each.scene.virtual.get("ConfigMap", Key(shop, "settings"))
        assert kept is not None, "the tenant's own stays"
        assert each.leases() == []
        for namespace in (each.namespace, each.scene.host_namespace):
            nothing_left(partial(parts, each, namespace), f"nothing of the release is in {namespace}")
