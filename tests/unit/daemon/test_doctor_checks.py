"""Single checks of ``syncer doctor``: what is asked, and what an answer means."""

import asyncio
import json
import shlex
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Any

import pytest

from hack.planes import VIRTUAL_CONTROLLERS
from syncer.api import Key, Marks, Obj, Right, Settings, Side
from syncer.api.networking import Networking
from syncer.clusters.client import SideClient
from syncer.clusters.transport import HttpRequest, HttpResponse, Stream
from syncer.daemon.doctor.access import AccessQuestion, may, questions, subject_of, user_of
from syncer.daemon.doctor.control_plane import CONTROLLERS, check_control_plane
from syncer.daemon.doctor.diagnosis import Diagnosis, DiagnosisState
from syncer.daemon.doctor.host_namespaces import check_host_namespaces
from syncer.names import SingleNamespace
from syncer.resources.kinds import CONFIG_MAPS
from syncer.resources.pods.config import PodConfig
from syncer.rights.rbac import Share

POLICY = (
    "configmaps \"vsyncer-doctor\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: "
    "no such labels here"
)
HOME = "vc-shop"


class Answering:
    """An API server that gives the same answer to every write, and has nothing to read."""

    def __init__(self, status: int, body: Obj) -> None:
        self.asked: list[HttpRequest] = []
        self._answer = HttpResponse(status, {}, json.dumps(body).encode())

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.asked.append(request)
        if request.method == "GET":
            return HttpResponse(200, {}, b'{"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []}')
        return self._answer

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[Stream]:
        raise NotImplementedError

    async def close(self) -> None:
        pass


def refusal(message: str, code: int = 403) -> Obj:
    return {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": code, "message": message}


def admission(server: Answering) -> dict[str, Diagnosis]:
    """Return what a check of the host namespace says, by the name of the check."""
    names = SingleNamespace(cluster="shop", namespace=HOME)
    settings = Settings(
        cluster="shop", host_namespace=HOME, names=names, marks=Marks(), sections={}, networking=Networking()
    )
    share = Share("shop", [Right(Side.HOST, CONFIG_MAPS, ("create",))], [HOME])
    host = SideClient("host", Side.HOST, server)
    found = asyncio.run(check_host_namespaces(host, settings, share, "COMMAND"))
    return {each.check: each for each in found}


def test_policy_that_refuses_a_copy_is_an_error_with_its_words() -> None:
    server = Answering(422, refusal(POLICY, 422))
    found = admission(server)[f"admission of configmaps in {HOME}"]
    assert found.state is DiagnosisState.ERROR
    assert "no such labels here" in found.message


def test_webhook_without_dry_runs_leaves_admission_unknown() -> None:
    message = 'admission webhook "a.example.org" does not support dry run'
    found = admission(Answering(400, refusal(message, 400)))[f"admission of configmaps in {HOME}"]
    assert found.state is DiagnosisState.UNKNOWN
    assert "sideEffects" in found.way_out


def test_host_that_takes_unmarked_objects_is_a_warning_with_the_command() -> None:
    server = Answering(201, {"kind": "ConfigMap", "metadata": {"name": "x"}})
    found = admission(server)[f"confinement of the daemon in {HOME}"]
    assert (found.state, found.way_out) == (DiagnosisState.WARNING, "As an administrator: COMMAND")
    writes = [request for request in server.asked if request.method != "GET"]
    assert writes
    assert all(request.path.endswith("&dryRun=All") for request in writes)
    marked = [json.loads(request.body or b"")["metadata"].get("labels") for request in writes]
    assert marked == [Marks().labels("shop.vc-shop", Key("default", "vsyncer-doctor")), None]


class Confining(Answering):
    """A host that accepts a copy, and answers an object without marks as it is given."""

    async def send(self, request: HttpRequest) -> HttpResponse:
        answer = await super().send(request)
        if request.method == "GET" or "labels" not in json.loads(request.body or b"{}")["metadata"]:
            return answer
        return HttpResponse(201, {}, request.body or b"")


def test_host_that_refuses_unmarked_objects_confines_the_daemon() -> None:
    message = POLICY.replace("no such labels here", "the syncer writes only objects with its mark")
    found = admission(Confining(403, refusal(message)))
    assert found[f"admission of configmaps in {HOME}"].state == "ok"
    assert found[f"confinement of the daemon in {HOME}"].state == "ok"


def test_missing_right_is_no_confinement_of_the_daemon() -> None:
    message = 'configmaps is forbidden: User "syncer" cannot create resource "configmaps" in API group ""'
    found = admission(Confining(403, refusal(message)))
    assert f"confinement of the daemon in {HOME}" not in found


@pytest.mark.parametrize("answer", [[], "x", 1, {"status": []}])
def test_malformed_answer_about_a_right_grants_nothing(answer: Any) -> None:
    client = SideClient("shop", Side.VIRTUAL, Answering(201, answer))
    assert not asyncio.run(may(client, AccessQuestion("get", "", "pods")))


@pytest.mark.parametrize("item", [1, [], {"metadata": []}])
def test_malformed_pods_and_lease_show_no_scheduler(item: Any) -> None:
    class Odd(Answering):
        async def send(self, request: HttpRequest) -> HttpResponse:
            if "/leases/" in request.path:
                return HttpResponse(200, {}, json.dumps(item).encode())
            if request.method == "GET":
                page = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": [item]}
                return HttpResponse(200, {}, json.dumps(page).encode())
            return await super().send(request)

    virtual = SideClient("shop", Side.VIRTUAL, Odd(201, {"status": {"allowed": True}}))
    settings = Settings(
        cluster="shop",
        host_namespace=HOME,
        names=SingleNamespace(cluster="shop", namespace=HOME),
        marks=Marks(),
        sections={"pods": PodConfig()},
        networking=Networking(),
    )
    found = asyncio.run(check_control_plane(virtual, settings, datetime(2026, 1, 1, tzinfo=UTC)))
    assert found[0].check == "scheduler of the virtual control plane"
    assert found[0].state in (DiagnosisState.OK, DiagnosisState.UNKNOWN)


def test_quota_of_nothing_is_full_of_nothing() -> None:
    hard = {"pods": "2", "services.loadbalancers": "0", "secrets": "0"}
    quota = {"metadata": {"name": "q"}, "status": {"hard": hard, "used": {"pods": "1", "secrets": "0"}}}

    class Bounded(Answering):
        async def send(self, request: HttpRequest) -> HttpResponse:
            if request.method == "GET" and "/resourcequotas" in request.path:
                page = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": [quota]}
                return HttpResponse(200, {}, json.dumps(page).encode())
            return await super().send(request)

    found = admission(Bounded(201, {}))[f"quota of {HOME}"]
    assert (found.state, found.message) == (DiagnosisState.OK, "there is room in 1")


def test_rules_become_a_question_for_each_verb_resource_and_name() -> None:
    role: Obj = {
        "metadata": {"name": "r", "namespace": "n"},
        "rules": [
            {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get", "patch"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["a", "b"]},
        ],
    }
    assert questions([role, role]) == [
        AccessQuestion("get", "apps", "deployments", "scale", "n"),
        AccessQuestion("patch", "apps", "deployments", "scale", "n"),
        AccessQuestion("get", "", "pods", "", "n", "a"),
        AccessQuestion("get", "", "pods", "", "n", "b"),
    ]


@pytest.mark.parametrize(
    ("user", "option"),
    [
        ("system:serviceaccount:vc-shop-syncer:syncer", "--service-account vc-shop-syncer/syncer"),
        ("alice", "--user alice"),
        ("", "--service-account NAMESPACE/NAME"),
    ],
)
def test_user_becomes_the_option_of_the_command(user: str, option: str) -> None:
    assert subject_of(user) == option


@pytest.mark.parametrize("name", ["x; reboot", "$(reboot)", "system:serviceaccount:a:b; reboot", "a\nb"])
def test_user_name_of_a_hostile_server_stays_one_word_of_a_command(name: str) -> None:
    words = shlex.split(subject_of(name))
    assert len(words) == 2


@pytest.mark.parametrize("answer", [{}, {"status": []}, {"status": {"userInfo": "x"}}, {"status": {"userInfo": {}}}])
def test_malformed_answer_about_the_user_names_no_user(answer: Any) -> None:
    client = SideClient("shop", Side.VIRTUAL, Answering(201, answer))
    assert asyncio.run(user_of(client)) == ""


def test_controllers_that_must_be_off_are_those_that_our_control_plane_switches_off() -> None:
    off = set(VIRTUAL_CONTROLLERS.split(","))
    assert [each.name for each in CONTROLLERS if f"-{each.name}" not in off] == []
