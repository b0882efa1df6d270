"""The stage of a run: a virtual cluster, its daemons behind cables, a kubelet, and objects that are none of ours."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from api import Api, Loop, Sightings, eventually
from definitions import resource
from scene import MARKS, OWN_ADDRESSES, Scene

from hack.bench.daemon import Process
from hack.kubelet import Kubelet
from hack.planes import find_programs
from hack.ports import free_port
from kube_envtest import ControlPlane, start_all
from real_chaos.audit import Audit
from real_chaos.hands import Stranger, Tenant
from real_chaos.network import Cable
from real_chaos.script import Edit, Verb
from syncer.api import Key, Obj, Side
from syncer.testing.objects import configmap, crd, pod, secret, service, serviceaccount

#: The users that only daemons are, so that the audit tells who has written.
USERS = ("syncer-0", "syncer-1")
#: Seconds within which what happens by itself must have happened, however busy the machine.
PATIENCE = 180.0
#: A virtual ConfigMap for whose copy there is no room, as a foreign one has its name.
SQUATTED = "squatted"
#: So often that every fault meets a patrol.
PATROL = {"interval": "4s", "fresh": "11s"}
ELECTION = {"enabled": True, "leaseDuration": "6s", "renewDeadline": "4s", "retryPeriod": "1s"}

POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules: [{level: Metadata, users: [syncer-0, syncer-1], verbs: [create, update, patch, delete]}, {level: None}]
"""


@dataclass(frozen=True)
class Planes:
    """Two clusters, how to reach them, and who has written to them."""

    loop: Loop
    apis: dict[Side, Api]
    cables: dict[Side, Cable]
    audits: dict[Side, Audit]


@contextmanager
def planes(folder: Path) -> Iterator[Planes]:
    """Two clusters for runs that play one after the other."""
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    made = {side: _plane(side, policy, folder / f"audit-{side}") for side in Side}
    loop = Loop()
    try:
        start_all(*made.values())
        with ExitStack() as stack:
            apis = {side: Api(loop, plane, side) for side, plane in made.items()}
            cables = {side: _cable(loop, plane) for side, plane in made.items()}
            for close in (*(api.close for api in apis.values()), *(cable.close for cable in cables.values())):
                stack.callback(close)
            yield Planes(loop, apis, cables, {side: Audit(folder / f"audit-{side}") for side in Side})
    finally:
        for plane in made.values():
            plane.stop()
        loop.stop()


def _cable(loop: Loop, plane: ControlPlane) -> Cable:
    return Cable(loop, target=int(plane.url.rpartition(":")[2]), port=free_port())


def _plane(side: Side, policy: Path, log: Path) -> ControlPlane:
    flags = [f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-mode=blocking"]
    plane = ControlPlane(f"chaos-{side}", programs=find_programs(), apiserver_flags=flags)
    for user in USERS:
        plane.add_user(user, "system:masters")
    return plane


@dataclass
class Stage:
    """One run's own part of the clusters, with its daemons, of which there may be two."""

    planes: Planes
    scene: Scene
    pair: bool
    daemons: list[Process] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    #: Writes that changed nothing, of daemons that have ended since.
    futile: float = 0.0

    def __post_init__(self) -> None:
        scene, loop = self.scene, self.planes.loop
        self.definition = crd(f"gadgets.{scene.name}.example.com")
        scene.definitions.append(self.definition["metadata"]["name"])
        for api in scene.sides:
            api.define(self.definition)
        self.namespaces = [self._namespace(), self._namespace()]
        self.tenant = Tenant(scene, self.definition, self.namespaces)
        self.stranger = Stranger(scene)
        self.foreign = [scene.host.create(each) for each in self._foreign()]
        scene.virtual.create(configmap(SQUATTED, namespace=self.namespaces[0]))
        self.kubelet = Kubelet(scene.host.cluster, scene.host_namespace, node=f"node-{scene.name}")
        self.sightings = Sightings(scene.host, "Pod", scene.host_namespace)
        self._playing = [loop.start(self.kubelet.run()), loop.start(self.sightings.run())]
        for number in range(1 + self.pair):
            self.daemons.append(scene.daemon(self._config(number)))

    def close(self, *, show: bool) -> None:
        """End all that runs, and remove what would be work for the daemons of later runs.

        The ends of the daemons' logs are shown if that is wanted.

        Raises:
            Exception: Kubelet or watch had ended before by this error.
        """
        with contextlib.redirect_stdout(sys.stderr if show else None):
            self.scene.close()
        self.planes.loop.end(*self._playing)

    def _config(self, number: int) -> Obj:
        files = {side: self._kubeconfig(side, USERS[number]) for side in Side}
        custom: Obj = {self.definition["metadata"]["name"]: {}}
        return self.scene.config(
            virtual={"kubeconfig": files[Side.VIRTUAL]},
            host={"kubeconfig": files[Side.HOST], "namespace": self.scene.host_namespace},
            sync={
                "toHost": {"configMaps": {"all": True}, "secrets": {"all": True}, **OWN_ADDRESSES["toHost"]},
                "custom": custom,
            },
            patrol=PATROL,
            leaderElection=ELECTION if self.pair else {"enabled": False},
        )

    def _kubeconfig(self, side: Side, user: str) -> str:
        plane = self.planes.apis[side].plane
        text = plane.kubeconfig(user).read_text()
        file = self.scene.folder / f"{self.scene.name}-{side}-{user}.kubeconfig"
        file.write_text(text.replace(plane.url, f"https://127.0.0.1:{self.planes.cables[side].port}"))
        return str(file)

    def _namespace(self) -> str:
        """A virtual namespace where pods can run: no controller makes its ServiceAccount."""
        made = self.scene.namespace()
        self.scene.virtual.create(serviceaccount("default", namespace=made))
        return made

    def _foreign(self) -> Iterator[Obj]:
        """Return the host objects that aren't ours, however much some look like it."""
        scene, ns = self.scene, self.scene.host_namespace
        labels = MARKS.labels(scene.identity, Key(self.namespaces[0], "o-0"))
        marks = {MARKS.name: "o-0", MARKS.namespace: self.namespaces[0], MARKS.uid: "1", MARKS.host_namespace: ns}
        copied = {**marks, MARKS.kind: "Secret", MARKS.host_name: "original"}
        of_another = {"labels": MARKS.labels(f"other.{ns}", Key(self.namespaces[0], "o-0"))}
        squatter = scene.host_key("ConfigMap", Key(self.namespaces[0], SQUATTED))
        yield configmap("bystander", namespace=ns)
        yield configmap("of-another", namespace=ns, metadata=of_another)
        yield configmap(squatter.name, namespace=ns)
        yield secret("copy-of-a-copy", namespace=ns, metadata={"labels": labels, "annotations": copied})
        yield service("bystander", namespace=ns)
        yield pod("bystander", namespace="default", metadata={"name": f"{scene.name}-bystander", "labels": labels})
        yield resource(self.definition, "bystander", ns, spec={"size": 1})

    # -- edits -------------------------------------------------------------------------------------

    def edit(self, edits: tuple[Edit, ...], *, away: Side | None = None) -> None:
        """Carry out those edits whose side answers."""
        for edit in edits:
            object_id = self.tenant.object_id(edit)
            if edit.verb.side is away:
                continue
            if edit.verb.side is Side.VIRTUAL:
                self.tenant.do(edit)
                continue
            if edit.verb is Verb.LOSE:
                self.tenant.may_go(object_id)
            self.stranger.do(edit.verb, object_id)

    # -- daemons -----------------------------------------------------------------------------------

    @property
    def leader(self) -> Process:
        """The daemon that works."""
        return eventually(self._leader, "a daemon leads", seconds=PATIENCE) if self.pair else self.daemons[0]

    def _leader(self) -> Process | None:
        return next((each for each in self.daemons if leads(each)), None)

    def ready(self, status: int = 200, named: str = "") -> None:
        """Wait until all daemons say so about themselves, and name this."""
        for each in self.daemons:
            until(partial(_is_reported, each, status, named), f"readyz says {status} {named}")

    def check_alive(self) -> None:
        """Complain of daemons that have ended by themselves."""
        for number, each in enumerate(self.daemons):
            if each.process is None or each.process.poll() is not None:
                raise AssertionError(f"daemon {number} has ended by itself: {each.log_text()[-2000:]}")

    def count_futile(self, daemon: Process) -> None:
        """Add what a daemon that is about to end has written in vain."""
        self.futile += daemon.requests("syncer_futile_writes_total")


def leads(daemon: Process) -> bool:
    """Return True if a daemon leads; a daemon that does not answer doesn't."""
    try:
        return daemon.total("leader_election_master_status") == 1
    except OSError:
        return False


def _is_reported(daemon: Process, status: int, named: str) -> bool:
    code, text = daemon.readyz()
    return code == status and named in text


def until(look: Callable[[], object], expectation: str) -> None:
    """Wait for it, with patience."""
    eventually(look, expectation, seconds=PATIENCE)
