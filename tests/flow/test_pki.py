"""Certificates are made on an API server, beside other processes that do so, and once a load balancer is there."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest
from harness import WRITES
from pki_scene import NOW, WANTED, certificate, files, service

from kube_envtest import Rule
from syncer.api import Conflict, Forbidden, Obj, Side
from syncer.clusters.client import SideClient
from syncer.pki import layout
from syncer.pki.plan import Damaged
from syncer.pki.store import NoService, StoreReport, complete
from syncer.testing import ApiServer


@pytest.fixture
def host() -> ApiServer:
    made = ApiServer(seed="host")
    made.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    made.put({**service(), "metadata": {"name": "api", "namespace": "shop"}})
    return made


def running(host: ApiServer, *, user: str = "admin", **settings: Any) -> Coroutine[Any, Any, StoreReport]:
    wait = settings.pop("wait", 0)
    cluster = SideClient("host", Side.HOST, host.transport(user))
    return complete(cluster, replace(WANTED, **settings), wait=wait, clock=lambda: NOW)


def secrets(host: ApiServer) -> dict[str, Obj]:
    found = {name: host.get("secrets", f"shop/{name}") for name in WANTED.secrets}
    return {name: secret for name, secret in found.items() if secret is not None}


def acted(report: StoreReport) -> dict[str, str]:
    return {f"{each.secret}/{each.file}": each.action for each in report.outcomes}


def writes(host: ApiServer) -> int:
    return sum(each.verb in WRITES for each in host.requests)


async def test_second_run_writes_nothing(host: ApiServer) -> None:
    assert set(acted(await running(host)).values()) == {"made"}
    before = writes(host)
    assert set(acted(await running(host)).values()) == {"kept"}
    assert writes(host) == before


@pytest.mark.parametrize("others", [1, 4])
async def test_runs_at_once_agree_on_the_first_ca(host: ApiServer, others: int) -> None:
    host.faults.add(Rule(verb="create", resource="secrets", latency=1))
    reports = await asyncio.gather(*(running(host) for _ in range(1 + others)))
    made = [acted(each)["api-pki/ca.crt"] for each in reports]
    assert sorted(made) == ["kept"] * others + ["made"]
    found = secrets(host)
    ca = certificate(found["api-pki"], "ca.crt")
    for name in ("api-kubeconfig", "api-daemon"):
        certificate(found[name], "tls.crt").verify_directly_issued_by(ca)
    assert set(acted(await running(host)).values()) == {"kept"}


async def test_run_that_is_cut_off_is_completed_by_the_next(host: ApiServer) -> None:
    host.faults.add(Rule(verb="create", resource="secrets", path="*", status=500, count=None))
    with pytest.raises(Exception, match=r"500|Internal"):
        await running(host)
    host.faults.clear()
    await running(host)
    ca = files(secrets(host)["api-pki"])["ca.crt"]
    host.delete("secrets", "shop/api-daemon")
    report = acted(await running(host))
    assert {file for file, action in report.items() if action == "made"} == {
        "api-daemon/ca.crt",
        "api-daemon/tls.crt",
        "api-daemon/config",
    }
    assert files(secrets(host)["api-pki"])["ca.crt"] == ca


async def test_first_run_that_ends_after_the_first_secret_is_completed_with_its_ca(host: ApiServer) -> None:
    host.faults.add(Rule(verb="create", resource="secrets", reset="after", count=1))
    with pytest.raises(Exception, match=r"connection|reset|lost"):
        await running(host)
    assert list(secrets(host)) == ["api-pki"]
    ca = files(secrets(host)["api-pki"])["ca.crt"]
    await running(host)
    assert files(secrets(host)["api-pki"])["ca.crt"] == files(secrets(host)["api-daemon"])["ca.crt"] == ca


async def test_secret_that_changes_meanwhile_is_read_again(host: ApiServer) -> None:
    await running(host)
    host.faults.add(Rule(verb="update", resource="secrets", status=409, count=3))
    report = await running(host, names=("api.example.com",))
    assert [file for file, action in acted(report).items() if action == "renewed"] == ["api-pki/apiserver.crt"]
    host.faults.add(Rule(verb="update", resource="secrets", status=409))
    with pytest.raises(Conflict):
        await running(host, names=("other.example.com",))


async def test_damaged_secret_of_the_daemon_keeps_all_from_being_written(host: ApiServer) -> None:
    host.put({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "api-daemon", "namespace": "shop"}})
    before = writes(host)
    with pytest.raises(Damaged, match="isn't ours"):
        await running(host)
    assert (list(secrets(host)), writes(host)) == (["api-daemon"], before)


async def test_missing_service_is_an_error_that_names_it(host: ApiServer) -> None:
    with pytest.raises(NoService, match="there is no Service shop/other"):
        await running(host, service="other")


async def test_address_of_a_load_balancer_is_waited_for_and_added(host: ApiServer) -> None:
    host.put({**service(type="LoadBalancer"), "metadata": {"name": "api", "namespace": "shop"}})
    begun = asyncio.create_task(running(host, wait=60))
    await asyncio.sleep(10)
    assert set(secrets(host)) == set(WANTED.secrets)  # so the control plane can start
    of = service(type="LoadBalancer", ingress=[{"ip": "203.0.113.9"}])
    host.put({**of, "metadata": {"name": "api", "namespace": "shop"}})
    report = await begun
    assert not report.is_awaited
    assert acted(report)["api-pki/apiserver.crt"] == "renewed"
    assert acted(report)["api-pki/ca.crt"] == "made"
    assert b"https://203.0.113.9" in files(secrets(host)["api-kubeconfig"])["config"]


@pytest.mark.parametrize("wait", [0, 30])
async def test_address_that_does_not_come_ends_the_wait(host: ApiServer, wait: int) -> None:
    host.put({**service(type="LoadBalancer"), "metadata": {"name": "api", "namespace": "shop"}})
    begun = asyncio.get_running_loop().time()
    report = await running(host, wait=wait)
    assert report.is_awaited
    assert asyncio.get_running_loop().time() - begun == pytest.approx(wait, abs=3)


async def test_role_that_the_command_prints_suffices_and_each_rule_of_it_is_needed() -> None:
    rules = layout.role(WANTED)["rules"]
    for kept in (rules, *([rule for rule in rules if rule is not lacking] for lacking in rules)):
        host = ApiServer(seed="host", rbac=True)
        host.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        host.put({**service(), "metadata": {"name": "api", "namespace": "shop"}})
        host.put({**layout.role(WANTED), "rules": kept})
        host.put(binding())
        if kept is rules:
            await running(host, user="alice")
            await running(host, user="alice", names=("api.example.com",))
        else:
            with pytest.raises(Forbidden):
                await running(host, user="alice")


def binding() -> Obj:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "pki", "namespace": "shop"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "api-pki"},
        "subjects": [{"kind": "User", "name": "alice", "apiGroup": group}],
    }
