"""`syncer explain` gives each reason as it was decided, with a running daemon and without one."""

import random
import re
from typing import Any

from harness import CLUSTER, NAMESPACE, Tenant, Two, add, configured, until, utcnow

from syncer.api import Config, Context, Decision, Key, Mirror, Obj, Refused, Side, errors, skip, wait
from syncer.api.reasons import CODES, SYNCER_RAISED, TOO_MANY, UNEXPECTED_ANSWER, ReasonCode, RequestState, StateReason
from syncer.clusters.client import SideClient
from syncer.clusters.dry_run import DryRun
from syncer.daemon.pages.control import explain
from syncer.daemon.patrol_once import filled
from syncer.daemon.process import Process
from syncer.observe.metrics import Metrics
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing.objects import configmap

BY_NAME = {f"reason-{code.name.lower()}": code for code in CODES.values()}


def reason_of(code: ReasonCode) -> StateReason:
    """Return a reason with an argument for each place of its sentence and its way out."""
    if code.is_text:
        return code(f"the text of {code.name}")
    places = {int(each) for each in re.findall(r"\{(\d)", code.sentence + code.way_out)}
    return code(*[f"argument {place}" for place in sorted(places)])


def failure(code: ReasonCode, text: str) -> Exception:
    """Return the error of which a code is the reason."""
    if code is SYNCER_RAISED:
        return ValueError(text)
    if code is UNEXPECTED_ANSWER:
        return errors.ClusterError(text)
    if code is TOO_MANY:
        return errors.TooMany(text, retry_after=1.0)
    error: Exception = getattr(errors, code.name)(text)
    return error


class Says(Mirror[Config]):
    """Decides about ConfigMaps that have the names of reasons."""

    name = "configmaps"
    resource = CONFIG_MAPS
    section = "toHost.configMaps"
    down = ("data",)

    def sync_down(self, ctx: Context[Config], virtual: Obj) -> Decision:
        code = BY_NAME.get(virtual["metadata"]["name"])
        if code is None:
            return super().sync_down(ctx, virtual)
        reason = reason_of(code)
        match code.state:
            case None:
                raise failure(code, str(reason))
            case RequestState.PARKED:
                raise Refused(str(reason), reason=code.name)
            case RequestState.SKIPPED:
                return skip(reason)
            case _:
                return wait(reason)


async def without_daemon(two: Two) -> Process:
    """Return the process of a command that has no daemon to ask."""
    process = Process(
        host=SideClient("host", Side.HOST, DryRun(two.host.transport())),
        metrics=Metrics(version="test"),
        utcnow=utcnow,
        rng=random.Random(1),
    )
    add(process, configured(Tenant(two.virtual, options={}), [Says]), two.virtual)
    await process.prepare()
    return process


def check(found: dict[str, Any], code: ReasonCode) -> None:
    """Compare an explanation with the reason of a decision."""
    reason = reason_of(code)
    states = [code.state.value] if code.state else ["failing", "parked"]
    assert found["state"] in states
    assert found["code"] == code.name
    assert found["reason"].removeprefix("ValueError: ") == reason
    assert found["wayOut"] == reason.way_out


async def test_each_reason_is_explained_as_it_was_decided(two: Two) -> None:
    for name in BY_NAME:
        two.virtual.put(configmap(name))
    async with two.daemon([Says], options={}) as daemon:
        controller = daemon.process.pairs[CLUSTER].controllers["configmaps"]
        requests = [controller.request(Key(NAMESPACE, name)) for name in BY_NAME]
        await until(lambda: all(daemon.process.statuses.of(request) for request in requests))
        for name, code in BY_NAME.items():
            [found] = await explain(daemon.process, cluster=CLUSTER, kind="configmaps", key=f"{NAMESPACE}/{name}")
            check(found, code)
    process = await without_daemon(two)
    async with process.running():
        await filled(process)
        for name, code in BY_NAME.items():
            [found] = await explain(process, cluster=CLUSTER, kind="configmaps", key=f"{NAMESPACE}/{name}")
            check(found, code)
