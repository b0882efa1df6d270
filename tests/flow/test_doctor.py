"""``syncer doctor`` names each fault with what to do about it, with no right but the daemon's."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from commands_scene import DAEMON, NO_PODS, Commands, by_check, commands, of_side
from harness import crd

from syncer.api import Obj, Settings, Side
from syncer.clusters.client import SideClient
from syncer.daemon.doctor.control_plane import CONTROLLERS, check_control_plane
from syncer.daemon.doctor.diagnosis import Diagnosis
from syncer.testing.objects import pod, serviceaccount
from syncer.translate.times import written_in_micros

pytestmark = pytest.mark.real_time

VIRTUAL_RIGHTS = of_side(Side.VIRTUAL)
HOST_RIGHTS = of_side(Side.HOST)
CONTROLLERS_CHECK = "controllers of the virtual control plane"
#: The options of every kind that the daemon needs rights for.
EVERYTHING = {
    "toHost": {
        "pods": {"enabled": True},
        "ingresses": {"enabled": True},
        "networkPolicies": {"enabled": True},
    },
    "fromHost": {"nodes": {"enabled": True}, "storageClasses": {"enabled": True}},
}
#: An address of the API server for Pods at which nothing listens.
ADDRESS = {"apiServer": {"host": "127.0.0.1", "port": 9}}


async def diagnosed(scene: Commands, *arguments: str, status: int) -> list[Obj]:
    """Return the results of the command, which must exit with this status."""
    ended = await scene.run("doctor", "-o", "json", *arguments)
    assert ended.status == status, ended.output
    found: list[Obj] = ended.json
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"leaderElection": {"enabled": True}},
        {"leaderElection": {"enabled": True, "shards": 3}},
        {"sync": EVERYTHING, "networking": ADDRESS},
        {"sync": EVERYTHING, "networking": ADDRESS, "kubelet": {"enabled": True}},
    ],
    ids=["few kinds", "a leader", "shards", "many kinds", "kubelet"],
)
async def test_doctor_needs_no_right_that_the_daemon_lacks_and_writes_nothing(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    async with commands(tmp_path, **options) as scene:
        found = await diagnosed(scene, status=0)
        assert scene.refused() == []
        assert scene.written() == []
        rights = [each for each in found if each["check"].startswith("rights")]
        assert {each["state"] for each in rights} == {"ok"}
        assert {each["cluster"] for each in rights} >= {"shop"}


def rule_of(role: Obj, resource: str, verb: str) -> Obj:
    """Return the rule of a role that grants a verb on a resource."""
    [found] = [rule for rule in role["rules"] if resource in rule["resources"] and verb in rule["verbs"]]
    return found  # type: ignore[no-any-return]


async def test_missing_right_is_named_with_the_command_that_grants_it(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        home = scene.home("shop")
        role = scene.host.get("roles.rbac.authorization.k8s.io", f"{home}/vsyncer-shop")
        assert role
        rule = rule_of(role, "secrets", "create")
        rule["verbs"].remove("create")
        scene.host.put(role)
        found = by_check(await diagnosed(scene, status=1), "shop")[HOST_RIGHTS]
        assert found["state"] == "error"
        assert f"missing in the namespace {home}: " in found["message"]
        assert "create secrets" in found["message"]
        command = f"syncer rbac --side host --only cluster --cluster shop --user {DAEMON}"
        assert found["wayOut"].endswith(f"{command} | kubectl apply -f -")
        scene.grant()
        assert by_check(await diagnosed(scene, status=0), "shop")[HOST_RIGHTS]["state"] == "ok"


async def test_missing_right_for_a_convenience_is_only_a_warning(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        home = scene.home("shop")
        role = scene.host.get("roles.rbac.authorization.k8s.io", f"{home}/vsyncer-shop")
        assert role
        rule_of(role, "resourcequotas", "list")["resources"].remove("resourcequotas")
        scene.host.put(role)
        found = by_check(await diagnosed(scene, status=0), "shop")
        assert found[HOST_RIGHTS]["state"] == "warning"
        assert "list resourcequotas (the daemon works without)" in found[HOST_RIGHTS]["message"]
        assert f"quota of {home}" not in found, "a missing right is reported once"


async def test_lost_virtual_cluster_is_an_error_and_the_others_are_checked(tmp_path: Path) -> None:
    async with commands(tmp_path, "shop", "bank") as scene:
        await scene.virtual["shop"].stop()
        found = await diagnosed(scene, status=1)
        lost = by_check(found, "shop")
        assert lost["connection to the virtual side"]["state"] == "error"
        assert "kubeconfig" in lost["connection to the virtual side"]["wayOut"]
        assert lost[HOST_RIGHTS]["state"] == "ok"
        assert VIRTUAL_RIGHTS not in lost
        assert by_check(found, "bank")[VIRTUAL_RIGHTS]["state"] == "ok"


async def test_check_that_breaks_leaves_the_results_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(virtual: SideClient, settings: Settings, now: datetime) -> list[Diagnosis]:
        if settings.cluster == "shop":
            raise AttributeError("'list' object has no attribute 'get'")
        return await check_control_plane(virtual, settings, now)

    async with commands(tmp_path, "shop", "bank") as scene:
        monkeypatch.setattr("syncer.daemon.doctor.doctor.check_control_plane", broken)
        found = await diagnosed(scene, status=0)
        lost = by_check(found, "shop")
        assert lost["remaining checks"]["state"] == "unknown"
        assert "AttributeError" in lost["remaining checks"]["message"]
        assert lost["connection to the virtual side"]["state"] == "ok"
        assert by_check(found, "bank")[CONTROLLERS_CHECK]["state"] == "ok"


async def test_credentials_that_a_server_refuses_are_an_error(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        scene.virtual["shop"].replace_token(DAEMON, "another")
        found = by_check(await diagnosed(scene, status=1), "shop")
        assert "credentials" in found["connection to the virtual side"]["message"]


@pytest.mark.parametrize(("ahead", "words"), [(90.0, "90 s ahead"), (-90.0, "90 s behind"), (0.0, "within 5 s")])
async def test_clock_of_a_server_is_compared_by_its_date(tmp_path: Path, ahead: float, words: str) -> None:
    async with commands(tmp_path) as scene:
        scene.virtual["shop"]._clock = lambda: time.time() + ahead
        found = by_check(await diagnosed(scene, status=0), "shop")["clock of the virtual side"]
        assert words in found["message"].replace("89 s", "90 s"), "a part of a second is lost on the way"
        assert found["state"] == ("warning" if ahead else "ok")


async def test_kind_that_a_side_does_not_serve_is_an_error_until_it_does(tmp_path: Path) -> None:
    sync = {**NO_PODS, "custom": {"widgets.example.org": {"direction": "toHost"}}}
    async with commands(tmp_path, granted=False, sync=sync) as scene:
        scene.host.put(crd("widgets"))
        scene.grant()
        found = by_check(await diagnosed(scene, status=1), "shop")["kind widgets.example.org"]
        assert "virtual cluster does not serve widgets.example.org" in found["message"]
        assert "CustomResourceDefinition" in found["wayOut"]
        scene.virtual["shop"].put(crd("widgets"))
        assert "kind widgets.example.org" not in by_check(await diagnosed(scene, status=0), "shop")


async def test_missing_host_namespace_is_named_by_the_start(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        scene.host.delete("namespaces", scene.home("shop"))
        start = by_check(await diagnosed(scene, status=1), "shop")["start in a dry run"]
        assert start["state"] == "error"
        assert scene.home("shop") in start["message"]
        assert scene.written() == []


@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda each: each.name)
async def test_controller_that_must_be_off_is_named_by_its_account(tmp_path: Path, controller: Any) -> None:
    async with commands(tmp_path, sync=EVERYTHING, networking=ADDRESS) as scene:
        account = serviceaccount(controller.account)
        account["metadata"]["namespace"] = "kube-system"
        scene.virtual["shop"].put(account)
        found = await diagnosed(scene, status=1)
        [result] = [each for each in found if each["check"] == CONTROLLERS_CHECK]
        assert controller.name in result["message"]
        assert f"-{controller.name} to --controllers" in result["wayOut"]
        assert f"kubectl delete serviceaccount -n kube-system {controller.account}" in result["wayOut"]


async def test_scheduler_is_found_by_its_lease_if_the_daemon_may_read_it(tmp_path: Path) -> None:
    async with commands(tmp_path, sync=EVERYTHING, networking=ADDRESS) as scene:
        now = datetime.now(UTC)
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
            "spec": {"holderIdentity": "here", "renewTime": written_in_micros(now)},
        }
        scene.virtual["shop"].put(lease)
        check = "scheduler of the virtual control plane"
        assert by_check(await diagnosed(scene, status=0), "shop")[check]["state"] == "ok"
        scene.virtual["shop"].rbac = False
        for each in lease_reader():
            scene.virtual["shop"].put(each)
        found = by_check(await diagnosed(scene, status=1), "shop")[check]
        assert "kube-scheduler renews its Lease" in found["message"]
        assert scene.refused() == []


def lease_reader() -> list[Obj]:
    """Return a role to read Leases in kube-system, bound to the daemon."""
    group = "rbac.authorization.k8s.io"
    metadata = {"name": "leases", "namespace": "kube-system"}
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]}
    return [
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "leases"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": DAEMON}],
        },
    ]


async def test_scheduler_is_found_by_its_conditions_on_pods(tmp_path: Path) -> None:
    async with commands(tmp_path, sync=EVERYTHING, networking=ADDRESS) as scene:
        server = scene.virtual["shop"]
        server.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        server.put(pod("web"))
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        scheduler = server.client("admin", agent="kube-scheduler/v1.36")
        answer = await scheduler.request(
            "PATCH",
            "/api/v1/namespaces/shop/pods/web/status",
            body=json.dumps({"status": {"conditions": [condition]}}).encode(),
            content_type="application/strategic-merge-patch+json",
        )
        assert answer.status == 200
        found = by_check(await diagnosed(scene, status=1), "shop")
        assert found["scheduler of the virtual control plane"]["state"] == "error"


async def test_full_quota_is_a_warning_with_its_figures(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        home = scene.home("shop")
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "tenant", "namespace": home},
            "spec": {"hard": {"requests.cpu": "2", "pods": "10"}},
            "status": {"hard": {"requests.cpu": "2", "pods": "10"}, "used": {"requests.cpu": "2000m", "pods": "3"}},
        }
        scene.host.put(quota)
        found = by_check(await diagnosed(scene, status=0), "shop")[f"quota of {home}"]
        assert found["state"] == "warning"
        assert found["message"] == "there is no room for more: tenant: 2 of 2 requests.cpu"


@pytest.mark.parametrize(
    ("enforced", "state", "words"),
    [
        ("", "warning", "the host enforces no level"),
        ("restricted", "warning", "the host enforces restricted, and the daemon lets baseline"),
        ("baseline", "ok", "the host enforces baseline"),
    ],
)
async def test_pod_security_of_the_host_namespace_is_compared(
    tmp_path: Path, enforced: str, state: str, words: str
) -> None:
    async with commands(tmp_path, sync=EVERYTHING, networking=ADDRESS) as scene:
        home = scene.home("shop")
        labels = {"pod-security.kubernetes.io/enforce": enforced} if enforced else {}
        metadata = {"name": home, "labels": labels}
        scene.host.put({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        found = by_check(await diagnosed(scene, status=0), "shop")[f"Pod Security of {home}"]
        assert found["state"] == state
        assert words in found["message"]


async def test_chosen_cluster_shows_nothing_of_another(tmp_path: Path) -> None:
    election = {"enabled": True, "name": "lead", "namespace": "kube-system"}
    async with commands(tmp_path, "shop", "bank", leaderElection=election) as scene:
        ended = await scene.run("doctor", "--cluster", "bank", "-o", "json")
        assert ended.status == 0
        assert {each["cluster"] for each in ended.json} == {"", "bank"}
        assert scene.home("shop") not in ended.output.replace(f"{tmp_path}", "")
        asked = [one for one in scene.virtual["shop"].requests if one.user == DAEMON]
        assert asked == []


async def test_text_has_a_line_for_each_check_and_the_remedy_below(tmp_path: Path) -> None:
    async with commands(tmp_path, granted=False) as scene:
        ended = await scene.run("doctor")
        assert ended.status == 1
        lines = ended.output.splitlines()
        rights = next(number for number, line in enumerate(lines) if "rights on the host side" in line)
        assert lines[rights].startswith("error    shop: rights on the host side: ")
        assert lines[rights + 1].startswith("         -> As an administrator")
        assert lines[-1].endswith("error") or " error, " in lines[-1]


async def test_invalid_configuration_is_the_only_result_and_exits_2(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        (tmp_path / "bad.yaml").write_text((tmp_path / "syncer.yaml").read_text() + "workers: many\n")
        ended = await scene.run("doctor", "-o", "json", file="bad.yaml")
        assert ended.status == 2
        [only] = ended.json
        assert (only["check"], only["state"]) == ("configuration", "error")
        assert "workers" in only["message"]
        assert (await scene.run("doctor", file="bad.yaml")).status == 2
