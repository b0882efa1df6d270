"""Single checks of ``syncer doctor``: what is asked, and what an answer means."""

import asyncio
import json
import shlex
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from hack.planes import VIRTUAL_CONTROLLERS
from syncer.api import Key, Marks, Obj, Right, Settings, Side
from syncer.api.networking import Networking
from syncer.clusters.client import SideClient
from syncer.clusters.transport import HttpRequest, HttpResponse, Stream
from syncer.daemon.doctor.access import AccessQuestion, questions, subject_of, user_of
from syncer.daemon.doctor.control_plane import CONTROLLERS
from syncer.daemon.doctor.diagnosis import Diagnosis, DiagnosisState
from syncer.daemon.doctor.host_namespaces import check_host_namespaces
from syncer.names import SingleNamespace
from syncer.resources.kinds import CONFIG_MAPS
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


def test_host_that_refuses_unmarked_objects_confines_the_daemon() -> None:
    message = POLICY.replace("no such labels here", "the syncer writes only objects with its mark")
    assert admission(Answering(403, refusal(message)))[f"confinement of the daemon in {HOME}"].state == "ok"


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
def test_malformed_answer_about_the_user_names_nobody(answer: Any) -> None:
    client = SideClient("shop", Side.VIRTUAL, Answering(201, answer))
    assert asyncio.run(user_of(client)) == ""


def test_controllers_that_must_be_off_are_those_that_our_control_plane_switches_off() -> None:
    off = set(VIRTUAL_CONTROLLERS.split(","))
    assert [each.name for each in CONTROLLERS if f"-{each.name}" not in off] == []
