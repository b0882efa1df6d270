"""Plays that hypothesis makes up as it goes; one in which something goes wrong is made as short as it can be."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from custom_scene import CERTIFICATES, ISSUERS
from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from chaos import steps
from chaos.daemons import CANDIDATES, Cast
from chaos.people import KINDS, LOOKS, NAMES, SPACES, SPECIAL, SPOILS
from chaos.stage import CUSTOM, HOST, Stage
from chaos.steps import Step

_NUMBERS = st.integers(0, LOOKS - 1)
_SPACES = st.sampled_from(SPACES)
_TENANTS = st.runner().flatmap(lambda play: st.sampled_from(play.stage.cast.tenants))
_SERVERS = st.runner().flatmap(lambda play: st.sampled_from(play.stage.servers))
_DAEMONS = st.runner().flatmap(lambda play: st.sampled_from(play.stage.cast.daemons))
_KIND_AND_NAME = st.sampled_from([(kind, name) for kind in KINDS for name in (*NAMES, *SPECIAL.get(kind, ()))])
_NAMES = st.sampled_from(NAMES)
#: What a kubelet does next; most pods just run.
ACTS = ("run", "run", "run", "place", "Succeeded", "Failed", "stop")
#: Seconds between steps, and turns of the loop before a kill.
_PAUSES = st.sampled_from([0.0, 0.0, 0.001, 0.05, 1.0, 8.0])
_TURNS = st.integers(0, 80)


@dataclass(slots=True)
class Report:
    """The plays of a seed, and the shortest script that went wrong."""

    seed: int
    plays: int = 0
    steps: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    wrong: list[str] = field(default_factory=list)
    script: list[Step] = field(default_factory=list)


class Play(RuleBasedStateMachine):
    """The rules: each makes a step of what was drawn and takes it."""

    #: Where it is written down; set by :func:`explore`.
    report = Report(0)
    cast = CANDIDATES
    say: Callable[[str], None] = staticmethod(lambda line: None)

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(self.cast)
        self.script: list[steps.Step] = []

    def do(self, step: steps.Step, pause: float = 0.0) -> None:
        for each in (step, steps.Wait(pause)) if pause else (step,):
            self.say(repr(each))
            self.script.append(each)
            self.stage.run(each.play(self.stage))

    @rule(tenant=_TENANTS, kind_and_name=_KIND_AND_NAME, space=_SPACES, look=_NUMBERS, pause=_PAUSES)
    def put(self, tenant: str, kind_and_name: tuple[str, str], space: str, look: int, pause: float) -> None:
        self.do(steps.Put(tenant, kind_and_name[0], space, kind_and_name[1], look), pause)

    @rule(tenant=_TENANTS, name=_NAMES, space=_SPACES, look=_NUMBERS, pause=_PAUSES)
    def put_pod(self, tenant: str, name: str, space: str, look: int, pause: float) -> None:
        self.do(steps.Put(tenant, "pods", space, name, look), pause)

    def pick(self, data: st.DataObject, *kinds: str) -> tuple[str, str, str, str] | None:
        """One of the objects of these kinds that tenants have: tenant, kind, namespace and name."""
        found = [
            (tenant, kind, obj["metadata"]["namespace"], obj["metadata"]["name"])
            for tenant in self.cast.tenants
            for kind in kinds
            if self.stage.serves(tenant, kind)
            for space in SPACES
            for obj in self.stage.tenants[tenant].objects(kind, space)
        ]
        return data.draw(st.sampled_from(found)) if found else None

    @rule(data=st.data(), again=st.booleans(), pause=_PAUSES)
    def delete(self, data: st.DataObject, again: bool, pause: float) -> None:
        if found := self.pick(data, *KINDS):
            self.do(steps.Delete(*found, again), pause)

    @rule(tenant=_TENANTS, space=_SPACES, pause=_PAUSES)
    def delete_space(self, tenant: str, space: str, pause: float) -> None:
        self.do(steps.DeleteSpace(tenant, space), pause)

    @rule(data=st.data(), how=st.sampled_from(SPOILS), pause=_PAUSES)
    def spoil(self, data: st.DataObject, how: str, pause: float) -> None:
        if found := self.pick(data, *KINDS):
            self.do(steps.Spoil(*found, how), pause)

    @rule(data=st.data(), force=st.booleans(), pause=_PAUSES)
    def delete_copy(self, data: st.DataObject, force: bool, pause: float) -> None:
        if found := self.pick(data, *KINDS):
            self.do(steps.DeleteCopy(*found, force), pause)

    @rule(data=st.data(), force=st.booleans(), pause=_PAUSES)
    def delete_host_pod(self, data: st.DataObject, force: bool, pause: float) -> None:
        if found := self.pick(data, "pods"):
            self.do(steps.DeleteCopy(*found, force), pause)

    @rule(tenant=_TENANTS, name=_NAMES, space=_SPACES)
    def squat(self, tenant: str, name: str, space: str) -> None:
        self.do(steps.Squat(tenant, space, name))

    @rule(data=st.data(), act=st.sampled_from(ACTS), pause=_PAUSES)
    def live(self, data: st.DataObject, act: str, pause: float) -> None:
        if found := self.pick(data, "pods"):
            tenant, _, space, name = found
            self.do(steps.Live(tenant, space, name, act), pause)

    @rule(data=st.data(), look=_NUMBERS)
    def issue(self, data: st.DataObject, look: int) -> None:
        if found := self.pick(data, CERTIFICATES):
            tenant, _, space, name = found
            self.do(steps.Issue(tenant, space, name, look))

    @rule(look=st.one_of(st.none(), _NUMBERS), pause=_PAUSES)
    def offer(self, look: int | None, pause: float) -> None:
        self.do(steps.Offer(look), pause)

    @rule(server=_SERVERS, kind=st.sampled_from(CUSTOM), pause=_PAUSES)
    def undefine(self, server: str, kind: str, pause: float) -> None:
        self.do(steps.Undefine(HOST if kind == ISSUERS else server, kind), pause)

    @rule(server=_SERVERS, fault=st.sampled_from(sorted(steps.FAULTS)), pause=_PAUSES)
    def fault(self, server: str, fault: str, pause: float) -> None:
        self.do(steps.Fault(server, fault), pause)

    @rule(server=_SERVERS)
    def calm(self, server: str) -> None:
        self.do(steps.Calm(server))

    @rule(server=_SERVERS, how=st.sampled_from(["cut", "expire", "freeze", "restart"]), pause=_PAUSES)
    def break_(self, server: str, how: str, pause: float) -> None:
        self.do(steps.Break(server, how), pause)

    @rule(daemon=_DAEMONS, server=_SERVERS, pause=_PAUSES)
    def part(self, daemon: str, server: str, pause: float) -> None:
        self.do(steps.Part(daemon, server), pause)

    @rule(daemon=_DAEMONS, pause=_PAUSES)
    def depose(self, daemon: str, pause: float) -> None:
        self.do(steps.Depose(daemon), pause)

    @rule(daemon=_DAEMONS, turns=_TURNS, land=st.booleans(), pause=_PAUSES)
    def kill(self, daemon: str, turns: int, land: bool, pause: float) -> None:
        self.do(steps.Kill(daemon, turns, land))
        self.do(steps.Start(daemon), pause)

    @rule(daemon=_DAEMONS, seconds=st.sampled_from([1.0, 8.0, 14.0, 20.0, 40.0]), pause=_PAUSES)
    def freeze(self, daemon: str, seconds: float, pause: float) -> None:
        self.do(steps.Freeze(daemon, seconds), pause)

    @rule(daemon=_DAEMONS)
    def stop(self, daemon: str) -> None:
        self.do(steps.Stop(daemon))

    @rule(daemon=_DAEMONS)
    def start(self, daemon: str) -> None:
        self.do(steps.Start(daemon))

    @rule(daemon=_DAEMONS, seconds=st.sampled_from([-86400.0, -30.0, 0.0, 30.0, 3600.0]))
    def jump(self, daemon: str, seconds: float) -> None:
        self.do(steps.Jump(daemon, seconds))

    @rule(seconds=st.sampled_from([0.05, 1.0, 15.0, 40.0, 200.0]))
    def wait(self, seconds: float) -> None:
        self.do(steps.Wait(seconds))

    @invariant()
    def nothing_is_wrong(self) -> None:
        self._check()

    def teardown(self) -> None:
        try:
            if not self.stage.wrong:
                self.say("heal")
                self.stage.run(self.stage.heal())
            self._count()
            self._check()
        finally:
            self.stage.close()

    def _check(self) -> None:
        wrong = list(self.stage.look())
        if wrong:
            self.report.wrong, self.report.script = wrong, self.script
            raise AssertionError("\n".join(wrong))

    def _count(self) -> None:
        report = self.report
        report.plays += 1
        report.steps += len(self.script)
        report.faults += self.stage.injected
        report.restarts += sum(daemon.started - 1 for daemon in self.stage.daemons.values())


def explore(
    number: int, *, plays: int, length: int = 60, cast: Cast = CANDIDATES, say: Callable[[str], None] | None = None
) -> Report:
    """Try so many plays of a seed, until one goes wrong, of which the shortest form that was found is reported."""
    report = Report(number)
    namespace = {"report": report, "cast": cast, "say": staticmethod(say or (lambda line: None))}
    machine = seed(number)(type("Seeded", (Play,), namespace))
    chosen = settings(
        max_examples=plays,
        stateful_step_count=length,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),  # a script is made shorter much faster than the choices that it came from
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
    )
    try:
        run_state_machine_as_test(machine, settings=chosen)
    except AssertionError as error:
        report.wrong = report.wrong or [str(error)]
        report.script = steps.shortened(report.script, cast)
        report.wrong = steps.wrong_in(report.script, cast) or ["only in the midst of other plays:", *report.wrong]
    return report
