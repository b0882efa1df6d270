"""The daemon is killed at random moments while tenants work, and started again: in the end both sides agree."""

import contextlib
import json
import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

import pytest
from api import Sightings, nothing_left
from load import Load
from scene import MARKS, Scene, untouched

from hack.bench.daemon import Process
from hack.kubelet import Kubelet, is_ready
from syncer.api import Key, Obj, annotations_of, key_of, uid_of
from syncer.testing.objects import configmap, secret, service

pytestmark = pytest.mark.controlplane

#: Seconds after its start within which a daemon is killed: while it starts, fills its caches, catches up, keeps up.
LIFE = (0.05, 1.8)
KILLS, POD_KILLS = 25, 10


@pytest.fixture
def rng(figure: Callable[[str], None]) -> random.Random:
    """Chance, the same in each run; SYNCER_TEST_SEED makes another."""
    seed = int(os.environ.get("SYNCER_TEST_SEED", "1"))
    figure(f"seed: SYNCER_TEST_SEED={seed}")
    return random.Random(seed)


def killed(daemon: Process, rng: random.Random, times: int) -> None:
    """Start it and kill it so many times."""
    for _ in range(times):
        daemon.spawn()
        time.sleep(rng.uniform(*LIFE))
        daemon.kill()


def foreign_objects(scene: Scene) -> list[Obj]:
    """Return objects of the host namespace that aren't ours, however much some look like it."""
    ns = scene.host_namespace
    lookalike = {
        "labels": MARKS.labels(scene.identity, Key("shop", "a")),
        "annotations": {
            MARKS.name: "a",
            MARKS.namespace: "shop",
            MARKS.kind: "Secret",
            MARKS.uid: "1",
            MARKS.host_name: "original",
            MARKS.host_namespace: ns,
        },
    }
    other = {"labels": MARKS.labels(f"other.{ns}", Key("shop", "a"))}
    return [
        scene.host.create(each)
        for each in (
            configmap("bystander", namespace=ns),
            configmap("of-another", namespace=ns, metadata=other),
            secret("copy-of-a-copy", namespace=ns, metadata=lookalike),
        )
    ]


def test_kill_9_at_random_moments_under_load_loses_and_doubles_nothing(
    scene: Scene, rng: random.Random, figure: Callable[[str], None]
) -> None:
    namespaces = [scene.namespace() for _ in range(3)]
    load = Load(scene.virtual, rng, namespaces, ("ConfigMap", "Secret", "Service"), rate=80, names=15)
    daemon = scene.daemon()
    with untouched(scene.host, foreign_objects(scene)):
        with load.running():
            killed(daemon, rng, KILLS)
            daemon.start()
        scene.agree()
    assert daemon.requests("syncer_futile_writes_total") == 0
    assert sum(load.done.values()) > KILLS, "the load did not run"
    figure(f"{KILLS} kills during {dict(load.done)}; both sides agree")


def test_a_restarted_daemon_catches_up_on_missed_changes(scene: Scene) -> None:
    namespace = scene.namespace()
    for make in (configmap, secret, service):
        for name in ("kept", "changed", "gone", "again", "lost"):
            scene.virtual.create(make(name, namespace=namespace))
    daemon = scene.start()
    scene.agree()
    before = {kind: uid_of(scene.copied(kind, Key(namespace, "again"))) for kind in ("ConfigMap", "Secret", "Service")}
    daemon.kill()
    for kind, make in (("ConfigMap", configmap), ("Secret", secret), ("Service", service)):
        scene.virtual.patch(kind, Key(namespace, "changed"), {"metadata": {"labels": {"changed": "yes"}}})
        scene.virtual.delete(kind, Key(namespace, "gone"))
        scene.virtual.delete(kind, Key(namespace, "again"))
        scene.virtual.create(make("again", namespace=namespace))
        scene.host.delete(kind, scene.host_key(kind, Key(namespace, "lost")))
        scene.virtual.create(make("new", namespace=namespace))
    kept = [scene.copied(kind, Key(namespace, "kept")) for kind in ("ConfigMap", "Secret", "Service")]
    with untouched(scene.host, kept):
        daemon.start()
        scene.agree()
    for kind, uid in before.items():
        assert uid_of(scene.copied(kind, Key(namespace, "again"))) != uid
    assert daemon.requests("syncer_futile_writes_total") == 0


def unready(scene: Scene) -> list[Obj]:
    """Return the virtual Pods that aren't Ready."""
    return [each for each in scene.virtual.list("Pod") if not is_ready(each)]


@contextlib.contextmanager
def explained(scene: Scene, daemon: Process) -> Iterator[None]:
    """If something isn't so in the end, show the Pods of both sides, and the daemon's log."""
    try:
        yield
    except AssertionError:
        for each in scene.virtual.list("Pod"):
            print(f"virtual Pod {key_of(each)}: {json.dumps(each)}")
        for each in scene.host.list("Pod", selector=scene.selector):
            print(f"copy {key_of(each)}: {json.dumps(each)}")
        print(daemon.run("parked", "-o", "json").stdout, daemon.readyz())
        raise


def unpaired(scene: Scene) -> list[str]:
    """Return the uids of virtual Pods without a host pod, of those with two, and of those that are gone."""
    copies = [annotations_of(each)[MARKS.uid] for each in scene.host.list("Pod", selector=scene.selector)]
    virtual = Counter(uid_of(each) for each in scene.virtual.list("Pod"))
    return [*(virtual - Counter(copies)), *(Counter(copies) - virtual)]


def test_kill_9_never_runs_a_pod_twice(scene: Scene, rng: random.Random, figure: Callable[[str], None]) -> None:
    kubelet = Kubelet(scene.host.cluster, scene.host_namespace, node=f"node-{scene.name}")
    sightings, loop = Sightings(scene.host, "Pod", scene.host_namespace), scene.host.loop
    background = [loop.start(kubelet.run()), loop.start(sightings.run())]
    daemon = scene.daemon()
    load = Load(scene.virtual, rng, [scene.namespace()], ["Pod"], rate=40, names=60)
    with load.running():
        killed(daemon, rng, POD_KILLS)
        daemon.start()
    with explained(scene, daemon):
        nothing_left(lambda: unready(scene), "all Pods are Ready")
        nothing_left(lambda: unpaired(scene), "there is one host pod for each virtual Pod")
    pods = {uid_of(each) for each in scene.virtual.list("Pod")}
    runs = defaultdict(set)
    for host in sightings.states:
        runs[annotations_of(host)[MARKS.uid]].add(uid_of(host))
    assert pods <= runs.keys()
    assert {uid: found for uid, found in runs.items() if len(found) > 1} == {}
    assert kubelet.overwritten == 0
    figure(f"{POD_KILLS} kills, {len(runs)} pods seen, none twice")
    loop.end(*background)
