"""All charts with the values in ``values``: valid objects, and no right that isn't used."""

import json
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml
from chart_rendering import CHARTS, bound, granted, helm, loaded, rendered
from click.testing import CliRunner
from kubernetes_schemas import LOCATION, write
from test_monitoring import OPERATOR
from virtual_cluster_scene import containers, pods, selectors

from hack.chart_build import built
from hack.realnode import builds
from syncer.api import Obj
from syncer.cli.app import app

PATHS = {
    "syncer-default": CHARTS / "syncer" / "ci" / "minimal.yaml",
    "syncer-plugins": CHARTS / "syncer" / "ci" / "plugins.yaml",
    **{path.stem: path for path in (Path(__file__).parent / "values").iterdir()},
}
FILES = sorted(PATHS)
NAMES = ("syncer", "virtual-cluster")
#: Values by which the roles aren't the chart's, and with which there is no daemon.
BY_HAND, WITHOUT_DAEMON = "syncer-roles-by-hand", "virtual-cluster-fleet"


def chart_of(file: str) -> Path:
    """Return the chart that a file has values of."""
    return next(CHARTS / name for name in NAMES if file.startswith(f"{name}-"))


@cache
def made(file: str) -> tuple[Obj, ...]:
    """Return the objects of the chart with the values of a file."""
    operator = [] if file.endswith("-default") else OPERATOR
    return tuple(rendered(chart_of(file), yaml.safe_load(PATHS[file].read_text()), options=operator))


def daemons(file: str) -> list[tuple[str, Obj]]:
    """Return the name of each daemon's objects, and its configuration."""
    return [
        (each["metadata"]["name"], yaml.safe_load(each["data"]["syncer.yaml"]))
        for each in made(file)
        if each["kind"] == "ConfigMap" and "syncer.yaml" in each["data"]
    ]


def printed(folder: Path, configuration: Obj, *options: str) -> list[Obj]:
    """Return what ``syncer rbac`` prints for a configuration."""
    file = folder / "syncer.yaml"
    file.write_text(yaml.safe_dump(configuration))
    done = CliRunner().invoke(app, ["rbac", "--config", str(file), *options])
    assert done.exit_code == 0, done.output
    return loaded(done.output)


def installed(configuration: Obj) -> Obj:
    """Return the configuration without the kind of a plugin, whose rights are the value `extraRules`."""
    configuration.get("sync", {}).get("toHost", {}).pop("foos", None)
    return configuration


def of_daemon(objects: list[Obj], names: set[str]) -> list[Obj]:
    """Return the roles and bindings of these names."""
    return [each for each in objects if "rbac." in each["apiVersion"] and each["metadata"]["name"] in names]


def test_there_are_twenty_files() -> None:
    assert len(FILES) >= 20


@pytest.mark.slow
def test_objects_are_valid_and_have_no_unknown_field(tmp_path: Path) -> None:
    schemas, manifests = tmp_path / "schemas", tmp_path / "manifests"
    schemas.mkdir()
    manifests.mkdir()
    write(schemas)
    for file in FILES:
        (manifests / f"{file}.yaml").write_text(yaml.safe_dump_all(made(file)))
        for each in made(file):
            if each["metadata"]["name"].endswith("-manifests") and each["kind"] == "ConfigMap":
                for name, text in each["data"].items():
                    (manifests / f"{file}-{name}").write_text(text)
    checker = str(builds.tool("kubeconform"))
    command = [checker, "-strict", "-summary", "-schema-location", f"{schemas}/{LOCATION}", str(manifests)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Skipped: 0" in done.stdout


@pytest.mark.slow
def test_unknown_field_and_unknown_kind_are_refused(tmp_path: Path) -> None:
    write(tmp_path)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "a", "imag": "b"}]},
    }
    for wrong in (pod, {"apiVersion": "v1", "kind": "Pood", "metadata": {"name": "a"}}):
        command = [str(builds.tool("kubeconform")), "-strict", "-schema-location", f"{tmp_path}/{LOCATION}", "-"]
        done = subprocess.run(
            command, input=json.dumps(wrong), capture_output=True, text=True, check=False, timeout=600
        )
        assert done.returncode != 0, wrong


@pytest.mark.parametrize("file", [each for each in FILES if each not in (BY_HAND, WITHOUT_DAEMON)])
def test_roles_on_the_host_equal_the_daemons_output(file: str, tmp_path: Path) -> None:
    expected: list[Obj] = []
    for name, configuration in daemons(file):
        subject = f"--service-account=shop/{name}"
        expected += printed(tmp_path, installed(configuration), "--side", "host", subject)
    assert expected
    names = {each["metadata"]["name"] for each in expected}
    found = of_daemon(list(made(file)), names)
    assert granted(found) == granted(expected)
    assert bound(found) == bound(expected)
    others = granted(made(file)).keys() - granted(expected).keys()
    assert not [name for _, _, name in others if name.startswith("vsyncer-")]


@pytest.mark.parametrize("file", FILES)
def test_selectors_have_a_label_that_no_tenant_can_set(file: str) -> None:
    found = [labels for each in made(file) for labels in selectors(each.get("spec"))]
    assert found
    assert [labels for labels in found if not any(key.startswith("vsyncer.dev/") for key in labels)] == []


@pytest.mark.parametrize("file", FILES)
def test_containers_keep_to_the_level_restricted(file: str) -> None:
    found = dict(pods({(each["kind"], each["metadata"]["name"]): each for each in made(file)}))
    assert found
    for owner, spec in found.items():
        assert not [name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)], owner
        assert not [volume for volume in spec.get("volumes", []) if "hostPath" in volume], owner
        assert spec["securityContext"]["runAsNonRoot"], owner
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, owner
        for each in containers(spec):
            context = each["securityContext"]
            assert not context["allowPrivilegeEscalation"], (owner, each["name"])
            assert context["capabilities"]["drop"] == ["ALL"], (owner, each["name"])
            assert set(context["capabilities"].get("add", [])) <= {"NET_BIND_SERVICE"}, (owner, each["name"])


@pytest.mark.parametrize(
    "file", [each for each in FILES if each.startswith("virtual-cluster") and each != WITHOUT_DAEMON]
)
def test_roles_in_the_virtual_cluster_equal_the_daemons_output(file: str, tmp_path: Path) -> None:
    [texts] = [each["data"] for each in made(file) if each["kind"] == "ConfigMap" and "10-daemon.yaml" in each["data"]]
    found = loaded(texts["10-daemon.yaml"])
    [(_, configuration)] = daemons(file)
    expected = printed(tmp_path, installed(configuration), "--side", "virtual", "--user", "vsyncer")
    assert granted(found) == granted(expected)
    assert bound(found) == bound(expected)


def test_library_is_a_valid_chart() -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHARTS / "library"))


def test_no_role_is_made_where_they_are_made_by_hand() -> None:
    assert granted(made(BY_HAND)) == {}


@pytest.mark.parametrize("file", [*(f"{name}-default" for name in NAMES), "syncer-fleet-default", "syncer-plugins"])
def test_helm_finds_nothing_to_warn_of(file: str) -> None:
    message = helm("lint", "--strict", str(built(chart_of(file).name)), values=yaml.safe_load(PATHS[file].read_text()))
    assert "0 chart(s) failed" in message
    assert "WARNING" not in message
