"""Two daemons that share their virtual clusters, as processes on real API servers, with no more rights than
`syncer rbac` prints.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import yaml
from api import Api, eventually
from scene import OWN_ADDRESSES, Scene

from hack.bench.daemon import Process
from syncer.api import Key, Obj
from syncer.testing.objects import configmap

#: Short, for the test's sake.
TIMES = {"leaseDuration": "6s", "renewDeadline": "4s", "retryPeriod": "1s"}


def leads(daemon: Process) -> bool:
    """Return True if a daemon leads a shard."""
    return daemon.total("leader_election_master_status") > 0


@contextmanager
def frozen(daemon: Process) -> Iterator[None]:
    """Stop a process, and let it go on at the end."""
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def test_clusters_of_a_killed_or_frozen_replica_are_led_by_the_other(scene: Scene, second: Api) -> None:
    space = f"fleet-{scene.name}"
    apis = {scene.name: scene.virtual, "second": second}
    for api in apis.values():
        api.make_namespace(space)
    given = scene.config(sync=dict(OWN_ADDRESSES, toHost={**OWN_ADDRESSES["toHost"], "configMaps": {"all": True}}))
    for short in ("cluster", "virtual"):
        del given[short]
    given["host"] = {"kubeconfig": str(scene.host.plane.kubeconfig("daemon"))}
    given["leaderElection"] = {
        **TIMES,
        "enabled": True,
        "namespace": scene.host_namespace,
        "name": "fleet",
        "shards": 4,
    }
    given["virtualClusters"] = [
        {
            "name": name,
            "hostNamespace": scene.host_namespace,
            "kubeconfig": str(api.plane.kubeconfig("admin")),
        }
        for name, api in apis.items()
    ]
    replicas = [scene.daemon(yaml.safe_load(yaml.safe_dump(given))) for _ in range(2)]
    scene.grant(replicas[0], "daemon")
    for each in replicas:
        each.start()

    def all_are_led() -> bool:
        leases = [each for each in scene.host.list("Lease", namespace=scene.host_namespace) if is_shard(each)]
        return len(leases) == 4 and all(each["spec"].get("holderIdentity") for each in leases)

    def is_shard(lease: Obj) -> bool:
        return str(lease["metadata"]["name"]).removeprefix("fleet-").isdigit()

    def copied(name: str) -> None:
        for cluster, api in apis.items():
            api.create(configmap(name, namespace=space))
            eventually(partial(scene.host.get, "ConfigMap", host_key(cluster, name)), f"the copy of {cluster}'s {name}")

    def host_key(cluster: str, name: str) -> Key:
        return Key(scene.host_namespace, f"{name}-x-{space}-x-{cluster}")

    eventually(all_are_led, "all shards are led")
    copied("first")
    for number, replica in enumerate(replicas):
        with frozen(replica):
            copied(f"frozen-{number}")
        copied(f"goes-on-{number}")
    replicas[0].kill()
    copied("killed")
    assert leads(replicas[1])
    found = replicas[1].log.read_text()
    assert "Traceback" not in found, found[-3000:]
