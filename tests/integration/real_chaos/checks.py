"""Invariants: both sides in step, nothing foreign touched, nothing of the tenant lost, nothing done twice."""

from collections import defaultdict
from collections.abc import Iterator

from api import nothing_left
from scene import MARKS

from real_chaos.audit import without_the_lease, writes
from real_chaos.hands import reported
from real_chaos.script import KINDS
from real_chaos.stage import PATIENCE, SQUATTED, Stage
from syncer.api import ClusterError, Key, Obj, Side, annotations_of, dig, key_of, uid_of

COPIED = tuple(kind for kind in KINDS if kind != "Pod")


def agree(stage: Stage) -> None:
    """Wait until both sides are in step."""
    nothing_left(lambda: out_of_step(stage), "both sides are in step", seconds=PATIENCE)


def out_of_step(stage: Stage) -> list[str]:
    """Return the differences between the sides; an answer that an API server refuses is one, too."""
    try:
        found = [*stage.scene.disagreements(COPIED), *_gadgets(stage), *_pods(stage)]
    except ClusterError as error:
        return [str(error)]
    return [line for line in found if SQUATTED not in line]


def _gadgets(stage: Stage) -> Iterator[str]:
    scene = stage.scene
    for virtual in scene.virtual.list("Gadget"):
        copy = scene.copy("Gadget", key_of(virtual)) or {}
        for part in ("spec", "status"):
            if virtual.get(part) != copy.get(part):
                yield f"Gadget {key_of(virtual)} has {part} {virtual.get(part)}, its copy {copy.get(part)}"


def _pods(stage: Stage) -> Iterator[str]:
    scene = stage.scene
    copies = {
        annotations_of(each)[MARKS.uid]: each
        for each in scene.host.list("Pod", selector=scene.selector, namespace=scene.host_namespace)
    }
    pods = {uid_of(each): each for each in scene.virtual.list("Pod")}
    yield from (f"Pod {key_of(copies[uid])} is the copy of nothing" for uid in copies.keys() - pods.keys())
    for uid, virtual in pods.items():
        if uid not in copies:
            yield f"Pod {key_of(virtual)} has no copy"
        elif (here := _fares(virtual)) != (there := _fares(copies[uid])):
            yield f"Pod {key_of(virtual)} says {here}, its copy {there}"
        elif not scene.virtual.get("Node", Key("", here[0])):
            yield f"Pod {key_of(virtual)} runs on {here[0]}, which is not there"


def _fares(pod: Obj) -> tuple[str, ...]:
    paths = ("spec.nodeName", "status.phase", "status.podIP", "metadata.labels.number", "metadata.deletionTimestamp")
    return (*(str(dig(pod, path) or "") for path in paths), reported(pod))


def broken(stage: Stage) -> Iterator[str]:
    """Return the violations that nothing later can mend."""
    yield from stage.tenant.complaints
    yield from _foreign(stage)
    yield from _twice(stage)
    if stage.kubelet.overwritten:
        yield f"{stage.kubelet.overwritten} times somebody has overwritten what the kubelet had reported"
    yield from _futile(stage)
    for number, each in enumerate(stage.scene.daemons):
        lines = [line for line in each.log_text().splitlines() if "Traceback" in line]
        yield from (f"daemon {number} has a traceback in its log: {line[:3000]}" for line in lines[:1])


def _futile(stage: Stage) -> Iterator[str]:
    try:
        futile = stage.futile + sum(each.requests("syncer_futile_writes_total") for each in stage.daemons)
    except OSError as error:
        yield f"a daemon does not tell its metrics: {error}"
        return
    if futile:
        yield f"{futile:.0f} writes changed nothing"


def _foreign(stage: Stage) -> Iterator[str]:
    for before in stage.foreign:
        kind, key = before["kind"], key_of(before)
        after = stage.scene.host.get(kind, key)
        if after is None:
            yield f"the foreign {kind} {key} is gone"
        elif after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]:
            yield f"the foreign {kind} {key} was written to"


def _twice(stage: Stage) -> Iterator[str]:
    """A virtual Pod is started at most once."""
    runs: dict[str, set[str]] = defaultdict(set)
    for host in stage.sightings.states:
        if dig(host, "spec.nodeName") and MARKS.uid in annotations_of(host):
            runs[annotations_of(host)[MARKS.uid]].add(uid_of(host))
    yield from (
        f"the virtual Pod with uid {uid} was started {len(found)} times"
        for uid, found in runs.items()
        if len(found) > 1
    )


def leftovers(stage: Stage) -> list[str]:
    """The copies on the host, and what is left of Pods."""
    scene = stage.scene
    try:
        host = [each for kind in KINDS for each in scene.host.list(kind, namespace=scene.host_namespace)]
        copies = [each for each in host if scene.is_copy(each) and _is_the_tenants(stage, each)]
        return [f"{each['kind']} {key_of(each)}" for each in copies] + _ending(stage)
    except ClusterError as error:
        return [str(error)]


def _is_the_tenants(stage: Stage, copy: Obj) -> bool:
    """Return True if it is a copy from a namespace of the run; an object that Kubernetes itself has made stays."""
    return annotations_of(copy)[MARKS.namespace] in stage.namespaces


def _ending(stage: Stage) -> list[str]:
    return [f"virtual Pod {key_of(each)}" for each in stage.scene.virtual.list("Pod")]


def audited(stage: Stage) -> Iterator[str]:
    """Return the wrong writes in the audit: outside of the host namespace, and of a daemon that no longer leads."""
    found = writes(stage.planes.audits)
    if stage.pair:
        yield from without_the_lease(found)
    host = (each for each in found if each.side is Side.HOST)
    yield from (str(each) for each in host if each.namespace != stage.scene.host_namespace)
