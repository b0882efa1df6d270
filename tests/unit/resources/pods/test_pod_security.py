"""The Pod Security Standards, rule by rule: what breaks a level, and what keeps to it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from go_modules import folder_of

from syncer.api import Obj
from syncer.resources.pods.security import violations
from syncer.testing.merge import merged
from syncer.testing.objects import pod

#: A Pod that keeps to the level restricted, with containers of two sorts.
GOOD: dict[str, Any] = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "c",
            "image": "i",
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
    ],
}
#: Pods that keep to a level and Pods that break it, by upstream.
STANDARDS = yaml.safe_load(Path(__file__).with_name("pod_security_standards.yaml").read_text())
NAMES = ("containers", "initContainers", "ephemeralContainers")


def of_pod(**context: Any) -> Obj:
    return {"securityContext": context}


def of_container(**context: Any) -> Obj:
    return {"containers": [{"name": "c", "image": "i", "securityContext": context}]}


def probing(**probe: Any) -> Obj:
    return {"containers": [{"name": "c", "image": "i", **probe}]}


BASELINE = [
    pytest.param(of_pod(windowsOptions={"hostProcess": True}), "HostProcess", id="host process of the Pod"),
    pytest.param(of_container(windowsOptions={"hostProcess": True}), "HostProcess", id="host process"),
    pytest.param({"hostNetwork": True}, "hostNetwork", id="host network"),
    pytest.param({"hostPID": True}, "hostPID", id="host PID"),
    pytest.param({"hostIPC": True}, "hostIPC", id="host IPC"),
    pytest.param(of_container(privileged=True), "privileged", id="privileged"),
    pytest.param(of_container(capabilities={"add": ["KILL", "NET_ADMIN"]}), "NET_ADMIN", id="capability"),
    pytest.param({"volumes": [{"name": "v", "hostPath": {}}]}, "volume v is a hostPath", id="host path"),
    pytest.param(probing(ports=[{"containerPort": 1}, {"hostPort": 80}]), "hostPort", id="host port"),
    pytest.param(probing(livenessProbe={"httpGet": {"host": "10.0.0.1"}}), "probe or hook", id="host of a probe"),
    pytest.param(probing(lifecycle={"preStop": {"tcpSocket": {"host": "h"}}}), "probe or hook", id="host of a hook"),
    pytest.param(of_pod(appArmorProfile={"type": "Unconfined"}), "AppArmor", id="AppArmor of the Pod"),
    pytest.param(of_container(appArmorProfile={"type": "Unconfined"}), "AppArmor", id="AppArmor"),
    pytest.param(of_container(seLinuxOptions={"type": "spc_t"}), "SELinux type spc_t", id="SELinux type"),
    pytest.param(of_pod(seLinuxOptions={"user": "u"}), "SELinux user", id="SELinux user"),
    pytest.param(of_pod(seLinuxOptions={"role": "r"}), "SELinux role", id="SELinux role"),
    pytest.param(of_container(procMount="Unmasked"), "procMount", id="proc mount"),
    pytest.param(of_pod(seccompProfile={"type": "Unconfined"}), "seccomp", id="seccomp of the Pod"),
    pytest.param(of_container(seccompProfile={"type": "Unconfined"}), "seccomp", id="seccomp"),
    pytest.param(of_pod(sysctls=[{"name": "kernel.msgmax", "value": "1"}]), "kernel.msgmax", id="sysctl"),
]
RESTRICTED = [
    pytest.param({"volumes": [{"name": "v", "nfs": {}}]}, "volume v is of type nfs", id="volume type"),
    pytest.param(of_container(capabilities={"drop": ["ALL"]}), "allowPrivilegeEscalation: false", id="escalation"),
    pytest.param(of_container(allowPrivilegeEscalation=False), "drop the capabilities ALL", id="capabilities kept"),
    pytest.param(of_container(capabilities={"drop": ["ALL"], "add": ["KILL"]}), "KILL", id="capability added"),
    pytest.param(of_pod(runAsNonRoot=None), "runAsNonRoot: true", id="root"),
    pytest.param(of_container(runAsNonRoot=False), "runAsNonRoot: true", id="root again"),
    pytest.param(of_pod(runAsUser=0), "the Pod must not set runAsUser: 0", id="user of the Pod"),
    pytest.param(of_container(runAsUser=0), "container c must not set runAsUser: 0", id="user"),
    pytest.param(of_pod(seccompProfile=None), "must set the seccomp profile", id="no seccomp"),
]


@pytest.mark.parametrize(("spec", "phrase"), BASELINE)
def test_pod_breaks_the_level_baseline(spec: Obj, phrase: str) -> None:
    broken = pod("web", spec=merged(GOOD, spec))
    assert violations("privileged", broken) == []
    assert any(phrase in found for found in violations("baseline", broken)), violations("baseline", broken)
    assert any(phrase in found for found in violations("restricted", broken)), "each level contains the one before"


@pytest.mark.parametrize(("spec", "phrase"), RESTRICTED)
def test_pod_breaks_the_level_restricted_alone(spec: Obj, phrase: str) -> None:
    broken = pod("web", spec=merged(GOOD, spec))
    assert violations("baseline", broken) == []
    assert any(phrase in found for found in violations("restricted", broken)), violations("restricted", broken)


@pytest.mark.parametrize("part", NAMES)
def test_rules_hold_for_containers_of_every_sort(part: str) -> None:
    spec = {part: [{"name": "x", "image": "i", "securityContext": {"privileged": True}, "ports": [{"hostPort": 1}]}]}
    assert violations("baseline", pod("web", spec=spec)) == [
        "container x is privileged",
        "container x has a hostPort",
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        of_container(capabilities={"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}, allowPrivilegeEscalation=False),
        of_pod(seLinuxOptions={"type": "container_t", "level": "s0"}, appArmorProfile={"type": "Localhost"}),
        of_pod(sysctls=[{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}], runAsUser=1000),
        probing(livenessProbe={"httpGet": {"path": "/", "host": ""}}, **GOOD["containers"][0]),
        {"volumes": [{"name": "v", kind: {}} for kind in ("csi", "emptyDir", "secret", "projected", "image")]},
        {"hostNetwork": False, "volumes": None, "initContainers": None},
    ],
)
def test_pod_keeps_to_the_level_restricted(spec: Obj) -> None:
    assert violations("restricted", pod("web", spec=merged(GOOD, spec))) == []


def test_plain_pod_keeps_to_the_level_baseline() -> None:
    assert violations("baseline", pod("web")) == []
    assert violations("baseline", {"metadata": {"name": "x"}}) == []


def test_rules_of_linux_do_not_hold_for_windows() -> None:
    spec = {"os": {"name": "windows"}, "securityContext": {"runAsNonRoot": True}}
    assert violations("restricted", pod("web", spec=spec)) == []


@pytest.mark.parametrize(
    ("value", "broken"), [("unconfined", True), ("runtime/default", False), ("localhost/x", False), ("", False)]
)
def test_apparmor_annotation_counts(value: str, broken: bool) -> None:
    key = "container.apparmor.security.beta.kubernetes.io/c"
    assert bool(violations("baseline", pod("web", metadata={"annotations": {key: value}}))) is broken


def written_out(of_level: Obj, change: Obj) -> Obj:
    """Return a Pod of the standards as a merge patch over the level's base writes it."""
    parts = merged(of_level["base"], change)
    containers = {"containers": [{"name": "container1", **parts["container"]}]}
    containers["initContainers"] = [{"name": "initcontainer1", **parts["init"]}]
    metadata = {"annotations": parts["annotations"]} if "annotations" in parts else {}
    return {"metadata": metadata, "spec": {**parts["spec"], **containers}}


def standard_pods(level: str, verdict: str) -> list[Any]:
    of_level = STANDARDS[level]
    changes = of_level[verdict]
    if verdict == "passes":
        changes = {"base": {}, **changes}
    return [
        pytest.param(level, written_out(of_level, change), id=f"{level} {name}") for name, change in changes.items()
    ]


@pytest.mark.parametrize(
    ("level", "good"), [*standard_pods("baseline", "passes"), *standard_pods("restricted", "passes")]
)
def test_pod_that_keeps_to_a_level_upstream_keeps_to_it_here(level: Any, good: Obj) -> None:
    assert violations(level, good) == []


@pytest.mark.parametrize(("level", "bad"), [*standard_pods("baseline", "fails"), *standard_pods("restricted", "fails")])
def test_pod_that_breaks_a_level_upstream_breaks_it_here(level: Any, bad: Obj) -> None:
    assert violations(level, bad)


def upstream_pods(folder: Path) -> Iterator[tuple[str, Obj]]:
    for path in sorted(folder.glob("*.yaml")):
        found = yaml.safe_load(path.read_text())
        for part in ("containers", "initContainers"):
            for container in found["spec"][part]:
                del container["image"]
        kept = {name: value for name, value in found["metadata"].items() if name != "name"}
        yield path.stem, {"metadata": kept, "spec": found["spec"]}


@pytest.mark.parametrize("level", ["baseline", "restricted"])
@pytest.mark.parametrize(("verdict", "folder"), [("passes", "pass"), ("fails", "fail")])
def test_standards_are_those_of_the_kubernetes_that_the_tests_run(level: str, verdict: str, folder: str) -> None:
    files = (folder_of("k8s.io/pod-security-admission") / "test" / "testdata" / level).glob("v1.*")
    newest = max(files, key=lambda file: int(file.name.removeprefix("v1.")))
    ours = {"base": {}, **STANDARDS[level][verdict]} if verdict == "passes" else STANDARDS[level][verdict]
    here = {name: written_out(STANDARDS[level], change) for name, change in ours.items()}
    assert here == dict(upstream_pods(newest / folder))


LIFTED = [
    pytest.param("baseline", of_container(procMount="Unmasked"), id="proc mount"),
    pytest.param("restricted", of_pod(runAsNonRoot=None), id="no promise not to be root"),
    pytest.param("restricted", of_pod(runAsNonRoot=False), id="root"),
    pytest.param("restricted", of_pod(runAsUser=0), id="user of the Pod"),
    pytest.param(
        "restricted",
        {"containers": [merged(GOOD["containers"][0], of_container(runAsUser=0)["containers"][0])]},
        id="user",
    ),
]


@pytest.mark.parametrize(("level", "spec"), LIFTED)
def test_pod_with_users_of_its_own_may_be_root_in_it(level: Any, spec: Obj) -> None:
    asking = pod("web", spec=merged(GOOD, spec))
    isolated = merged(asking, {"spec": {"hostUsers": False}})
    assert violations(level, isolated) == []
    assert violations(level, asking)
    assert violations(level, merged(asking, {"spec": {"hostUsers": True}}))
    assert violations(level, isolated, user_namespaces=False), "the host would drop the field"


def test_pod_with_users_of_its_own_keeps_proc_masked_where_restricted_holds() -> None:
    unmasked = merged(GOOD, of_container(procMount="Unmasked"))
    isolated = pod("web", spec={**unmasked, "hostUsers": False})
    assert "container c has the procMount Unmasked" in violations("restricted", isolated)


def test_promise_of_the_pod_not_to_be_root_is_never_taken_back() -> None:
    container = merged(GOOD["containers"][0], {"securityContext": {"runAsNonRoot": True}})
    spec = merged(GOOD, {"securityContext": {"runAsNonRoot": False}, "containers": [container]})
    assert violations("restricted", pod("web", spec=spec)) == ["the Pod must not set runAsNonRoot: false"]
