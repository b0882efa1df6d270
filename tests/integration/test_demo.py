"""The demo is a newcomer's first sight: it prints its steps, everything arrives, and nothing is left behind."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api import eventually
from programs_scene import example

from hack.webshop.clusters import ROOT
from hack.webshop.daemon import Daemon
from hack.webshop.databases import DATABASES, NAME
from hack.webshop.demo import missing
from hack.webshop.samples import Samples
from hack.webshop.state import MARKS, VIRTUAL, Row, State, rows
from hack.webshop.waiting import Failed
from syncer.api import Obj, Resource, Side
from syncer.api.marks import kind_mark
from syncer.clusters.connection import ConnectionSettings, connect
from syncer.resources.definitions.config import PUBLIC_LABEL
from syncer.resources.kinds import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, EVENTS, PODS, SECRETS
from syncer.testing.objects import pod

SECONDS = 180
#: Of the table of a run in which all has arrived; the names of Pods are made up where a Deployment has them made.
ARRIVED = (
    r"  ServiceAccount +shop/web +-> +vc-shop/web-x-shop-x-shop ",
    r"  ConfigMap +shop/web-config +-> +vc-shop/web-config-x-shop-x-shop .* 3 keys, equal",
    r"  ConfigMap +shop/notes +- +stays here",
    r"  Secret +shop/database +-> +vc-shop/database-x-shop-x-shop .* 2 keys, equal",
    r"  Service +shop/web +-> +vc-shop/web-x-shop-x-shop .* ClusterIP [\d.]+ on both sides",
    r"  Ingress +shop/web +-> +vc-shop/web-x-shop-x-shop .* shop.example.org",
    r"  Pod +shop/web-\S+ +<-> +vc-shop/web-\S+-x-shop-x-shop .* Running and Ready on node-1; both sides say so",
    r"  Database +shop/orders +<-> +vc-shop/orders-x-shop-x-shop .* Ready; both sides say so",
    r"  Secret +shop/orders-login +<- +vc-shop/orders-login-x-shop-x-shop .* 3 keys, equal",
    r"  CRD +databases.platform.example.org +<- +databases.platform.example.org ",
    r"  Node +node-1 +<- +node-1 ",
    r"  Events +\(Pod shop/web-\S+\) +<- .* Scheduled, Started",
)


class Run:
    """A run of hack/demo; all processes that come of it bear a mark in their environment."""

    def __init__(self, folder: Path, *arguments: str, **environ: str) -> None:
        self.mark = f"DEMO_TEST={uuid.uuid4()}"
        name, _, value = self.mark.partition("=")
        self.process = subprocess.Popen(
            [ROOT / "hack" / "demo", *arguments],
            env={**os.environ, **environ, name: value, "TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def end(self) -> tuple[int, str]:
        output, _ = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, output

    def until(self, pattern: str) -> str:
        assert self.process.stdout
        output = ""
        for line in self.process.stdout:
            output += line
            if re.match(pattern, line):
                return output
        raise AssertionError(f"{pattern} never came:\n{output}")

    def left(self) -> list[str]:
        """Return the processes that still run."""
        return [name for name, environ in _environments() if self.mark.encode() in environ.split(b"\0")]


def _environments() -> Iterator[tuple[str, bytes]]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            yield (process / "cmdline").read_text().replace("\0", " "), (process / "environ").read_bytes()
        except (OSError, UnicodeDecodeError):
            continue  # it has ended, or is somebody else's


def folder_of(output: str) -> Path:
    match = re.search(r"syncer --config (\S+)/syncer.yaml", output)
    assert match, output
    return Path(match[1])


def assert_arrived(status: int, output: str) -> None:
    assert status == 0, output
    assert [pattern for pattern in ARRIVED if not re.search(f"^{pattern}", output, re.MULTILINE)] == [], output
    assert not re.search("^! ", output, re.MULTILINE), output


@pytest.mark.controlplane
def test_once_on_real_clusters(tmp_path: Path) -> None:
    run = Run(tmp_path, "--once")
    status, output = run.end()
    assert_arrived(status, output)
    assert "Two real clusters" in output
    assert run.left() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.controlplane
def test_fleet_on_real_clusters(tmp_path: Path) -> None:
    run = Run(tmp_path, "--once", "--fleet=2")
    status, output = run.end()
    assert status == 0, output
    for line in (
        r"   tenant-2 +served +true +11 +11 ",
        r"   Ready after [\d.]+ s\.",
        r"   tenant-1 +silent .* the virtual cluster does not answer",
        r"   Its pods go on: 2 on the host\.",
    ):
        assert re.search(f"^{line}", output, re.MULTILINE), (line, output)
    assert run.left() == []


def test_once_on_embedded_clusters(tmp_path: Path) -> None:
    run = Run(tmp_path, "--once", "--embedded")
    status, output = run.end()
    assert_arrived(status, output)
    assert "Two clusters in this process, because of --embedded." in output
    assert run.left() == []
    assert list(tmp_path.iterdir()) == []


def test_without_a_kube_apiserver_it_falls_back_with_the_reason(tmp_path: Path) -> None:
    status, output = Run(
        tmp_path, "--once", ENVTEST_CONTROLPLANE="/nowhere", KUBEBUILDER_ASSETS="", ENVTEST_DOCKER=""
    ).end()
    assert_arrived(status, output)
    assert "ENVTEST_CONTROLPLANE=/nowhere: no such program" in output


def test_a_daemon_that_is_not_ready_ends_it_with_its_reason_and_the_log_is_kept(tmp_path: Path) -> None:
    run = Run(tmp_path, "--once", "--embedded", "--timeout=1", SYNCER_HOST_NAMESPACE="nowhere")
    status, output = run.end()
    assert status == 1, output
    assert "the daemon isn't ready after 1 s" in output
    assert (folder_of(output) / "syncer.log").exists()
    assert run.left() == []


def test_a_daemon_that_is_not_ready_is_reported_with_its_last_log_lines(tmp_path: Path) -> None:
    daemon = Daemon({}, tmp_path)
    daemon.log.write_text("".join(f"line {number}\n" for number in range(20)))
    daemon.process = subprocess.Popen(["sleep", "600"])
    try:
        with pytest.raises(Failed, match=r"(?s)isn't ready after 0 s; its log .*syncer.log says\nline 8\n.*\nline 19$"):
            asyncio.run(daemon.ready(0.0))
    finally:
        daemon.kill()


def test_missing_objects_are_named() -> None:
    there = Row("Secret", "shop/key", "->", "vc-shop/key-x-shop", "", "equal", True)
    absent = Row("Service", "shop/web", "->", "-", "", "not on the host yet", False)
    output = missing([there, absent], 2.5, Path("syncer.log")).splitlines()
    assert output == [
        "not all has arrived within 2.5 s:",
        "  Service shop/web -> -: not on the host yet",
        "The daemon's log: syncer.log",
    ]


def test_a_daemon_that_ends_is_reported_with_its_last_log_lines(tmp_path: Path) -> None:
    status, output = Run(tmp_path, "--once", "--embedded", SYNCER_WORKERS="many").end()
    assert status == 1, output
    assert "the daemon has ended with status 2" in output
    assert "SYNCER_WORKERS" in output


def test_ctrl_c_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, "--embedded")
    output = run.until(r"  Events ")
    for side in ("virtual", "host"):
        assert f"--kubeconfig {folder_of(output)}/{side}.kubeconfig get pods" in output
    assert len(run.left()) > 1
    run.process.send_signal(signal.SIGINT)
    status, rest = run.end()
    assert status == 0, rest
    assert run.left() == []
    assert list(tmp_path.iterdir()) == []


# -- what counts as arrived ------------------------------------------------------------------------

NOTHING: dict[Resource, list[Obj]] = {resource: [] for resource in VIRTUAL}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def obj(kind: str, name: str, namespace: str = "shop", **parts: Any) -> Obj:
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace}, **parts}


def copy(of: Obj, **parts: Any) -> Obj:
    name = of["metadata"]["name"]
    marks = {MARKS.name: name, MARKS.namespace: "shop", MARKS.kind: of["kind"]}
    return {**of, "metadata": {"name": f"{name}-x", "namespace": "vc", "annotations": marks}, **parts}


def event(about: Obj, reason: str) -> Obj:
    metadata = about["metadata"]
    involved = {"kind": about["kind"], "name": metadata["name"], "namespace": metadata["namespace"]}
    return obj("Event", reason, metadata["namespace"], reason=reason, involvedObject=involved)


def statuses(virtual: dict[Resource, list[Obj]], host: dict[Resource, list[Obj]]) -> dict[str, tuple[str, bool]]:
    given = State(NOTHING | virtual, NOTHING | host)
    return {row.kind: (row.status, row.good) for row in rows(given, None)}


def test_a_copy_with_other_content_has_not_arrived() -> None:
    secret = obj("Secret", "db", data={"a": "MQ=="})
    assert statuses({SECRETS: [secret]}, {SECRETS: [copy(secret)]})["Secret"] == ("1 key, equal", True)
    other = copy(secret, data={"a": "Mg=="})
    assert statuses({SECRETS: [secret]}, {SECRETS: [other]})["Secret"] == ("1 key, different", False)


def test_only_objects_in_use_must_arrive() -> None:
    config = obj("ConfigMap", "web")
    assert statuses({CONFIG_MAPS: [config]}, {})["ConfigMap"] == ("stays here: no Pod uses it", True)
    container = {"name": "web", "envFrom": [{"configMapRef": {"name": "web"}}]}
    pod = obj("Pod", "web", spec={"containers": [container]})
    assert statuses({CONFIG_MAPS: [config], PODS: [pod]}, {})["ConfigMap"] == ("not on the host yet", False)


def test_a_pod_has_arrived_when_ready_on_both_sides() -> None:
    pod = obj("Pod", "web", spec={"nodeName": "node-1"})
    host = copy(pod, status=READY)
    status = statuses({PODS: [pod]}, {PODS: [host]})["Pod"]
    assert status == ("host: Running and Ready on node-1; virtual: Pending on node-1", False)
    assert statuses({PODS: [{**pod, "status": READY}]}, {PODS: [host]})["Pod"][1]


def test_a_pod_that_has_succeeded_on_both_sides_has_arrived() -> None:
    pod = obj("Pod", "visitor", spec={"nodeName": "node-1"}, status={"phase": "Succeeded"})
    assert statuses({PODS: [pod]}, {PODS: [copy(pod)]})["Pod"] == ("Succeeded on node-1; both sides say so", True)
    failed = {**pod, "status": {"phase": "Failed"}}
    assert not statuses({PODS: [failed]}, {PODS: [copy(failed)]})["Pod"][1]


def test_node_without_root_is_refused_in_a_line() -> None:
    nobody = ["setpriv", "--reuid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    if subprocess.run([*nobody, "test", "-r", ROOT / "hack" / "webshop"], check=False, timeout=60).returncode:
        pytest.skip("the checkout is in a folder that only its owner may read")
    done = subprocess.run(
        [*nobody, sys.executable, "-m", "hack.webshop", "--node", "--once"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("hack/demo: NO REAL NODE: a node needs")


def test_a_node_and_the_events_must_come_up() -> None:
    pod = obj("Pod", "web", spec={"nodeName": "node-1"}, status=READY)
    host = copy(pod)
    host_events = [event(host, "Scheduled"), event(host, "Started")]
    found = statuses({PODS: [pod], EVENTS: [event(pod, "Scheduled")]}, {PODS: [host], EVENTS: host_events})
    assert found["Node"] == ("not in the virtual cluster yet", False)
    assert found["Events"] == ("not in the virtual cluster yet: Started", False)
    virtual_events = [event(pod, "Scheduled"), event(pod, "Started")]
    assert statuses({PODS: [pod], EVENTS: virtual_events}, {PODS: [host], EVENTS: host_events})["Events"][1]


def test_the_operators_secret_must_come_up_with_its_content() -> None:
    database = obj("Database", "db", spec={"secretName": "login"}, status={"phase": "Ready"})
    host = copy(database, spec={"secretName": "login-x"})
    host["metadata"]["annotations"][MARKS.kind] = kind_mark(DATABASES)
    made = obj("Secret", "login-x", "vc", data={"a": "MQ=="})
    there = {DATABASES: [host], SECRETS: [made]}
    assert statuses({DATABASES: [database]}, there)["Secret"] == ("not in the virtual cluster yet", False)
    shown = obj("Secret", "login", data={"a": "MQ=="})
    shown["metadata"]["labels"] = {MARKS.cluster: "x"}
    assert statuses({DATABASES: [database], SECRETS: [shown]}, there)["Secret"] == ("1 key, equal", True)
    old = {**shown, "data": {"a": "Mg=="}}
    assert statuses({DATABASES: [database], SECRETS: [old]}, there)["Secret"] == ("1 key, different", False)


def test_a_database_has_arrived_when_ready_on_both_sides() -> None:
    database = obj("Database", "db", spec={"secretName": "login"})
    host = copy(database, status={"phase": "Ready"})
    host["metadata"]["annotations"][MARKS.kind] = kind_mark(DATABASES)
    host_events = statuses({DATABASES: [database]}, {DATABASES: [host]})["Database"]
    assert host_events == ("host: Ready; virtual: Pending", False)


def test_a_public_crd_must_come_up() -> None:
    crd = {"kind": "CRD", "metadata": {"name": NAME, "labels": {PUBLIC_LABEL: "true"}}}
    kind = CUSTOM_RESOURCE_DEFINITIONS
    assert statuses({}, {kind: [crd]})["CRD"] == ("not in the virtual cluster yet", False)
    assert statuses({kind: [crd]}, {kind: [crd]})["CRD"][1]


def test_a_sample_that_was_never_applied_is_missing() -> None:
    found = rows(State(NOTHING, NOTHING), Samples(deployments=False))
    assert {row.kind for row in found if not row.good} == {
        *("ServiceAccount", "ConfigMap", "Secret", "Service", "Ingress", "Pod", "Database", "Node"),
    }


def test_several_clusters_are_contexts_of_one_kubeconfig(tmp_path: Path) -> None:
    run = Run(tmp_path, "--clusters", "3", "--embedded")
    output = run.until("Ctrl-C here ends it all")
    [kubeconfig] = re.findall(r"export KUBECONFIG=(\S+)", output)
    [program] = re.findall(r"   \.venv/bin/python (examples/\S+) --contexts a,b,c", output)
    with example(Path(program).name, "--contexts", "a,b,c", folder=tmp_path, kubeconfig=Path(kubeconfig)) as printed:
        asyncio.run(_make_pods(kubeconfig, "abc"))
        eventually(lambda: all(f"{context} / default / one" in printed() for context in "abc"), "it prints all pods")
    run.process.send_signal(signal.SIGINT)
    assert run.end()[0] == 0
    assert run.left() == []


async def _make_pods(kubeconfig: str, contexts: str) -> None:
    for context in contexts:
        cluster = connect(ConnectionSettings(kubeconfig, context), side=Side.HOST, environ={})
        await cluster.create(PODS, pod("one", namespace="default"))
        await cluster.close()
    await asyncio.sleep(0.2)  # connections are closed in TLS first


def test_clusters_alone_accept_a_custom_configuration(tmp_path: Path) -> None:
    run = Run(tmp_path, "--clusters", "--embedded")
    output = run.until("Ctrl-C here ends it all")
    file = tmp_path / "own.yaml"
    file.write_text(output[output.index("   apiVersion:") : output.index("Ctrl-C")])
    once = [str(ROOT / ".venv" / "bin" / "syncer"), "run", "--once", "--config", str(file)]
    environ = {**os.environ, "SYNCER_METRICS_ADDRESS": "", "SYNCER_HEALTH_ADDRESS": ""}
    synced = subprocess.run(once, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert synced.returncode == 0, synced.stdout + synced.stderr
    run.process.send_signal(signal.SIGINT)
    assert run.end()[0] == 0
    assert run.left() == []
