"""The container image: its contents, how plugins get into it, and the daemon in it between real API servers."""

import json
import tarfile
from pathlib import Path, PurePosixPath

import pytest
from image_scene import Built

from hack.bench.image import USER, contained, measured
from hack.bench.phases import HOST_NAMESPACE, NAMESPACE
from hack.bench.scene import Planes
from hack.container.build import TAG
from hack.container.plugin import install
from syncer.version import VERSION

ROOT = Path(__file__).parents[2]
MB = 1_000_000


@pytest.fixture(scope="module")
def files(built: Built, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tarfile.TarInfo]:
    """Return the files of the image by path."""
    container = built.engine.run("create", TAG)
    tar = tmp_path_factory.mktemp("image") / "files.tar"
    built.engine.run("export", f"--output={tar}", container)
    built.engine.run("rm", container)
    with tarfile.open(tar) as opened:
        return {entry.name: entry for entry in opened}


@pytest.fixture(scope="module")
def foo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the packages of the plugin foo, as the guide fills it."""
    folder = tmp_path_factory.mktemp("foo")
    folder.chmod(0o755)
    install(ROOT / "plugins/foo", folder / "foo")
    return folder


def test_image_is_small_and_labelled_with_its_source(built: Built) -> None:
    assert built.saved.compressed < 60 * MB
    config = json.loads(built.engine.run("image", "inspect", TAG))[0]["Config"]
    assert built.saved.as_json()["added"]["compressed_bytes"] < 35 * MB
    assert (config["User"], config["Entrypoint"]) == ("65532:65532", ["syncer"])
    assert config["Cmd"] == ["--config", "/etc/syncer/syncer.yaml"]
    labels = {name.rpartition(".")[2]: value for name, value in config["Labels"].items()}
    assert (labels["version"], labels["licenses"]) == (VERSION, "Apache-2.0")
    assert labels["revision"] not in ("", "unknown")


def test_image_has_no_shell_no_pip_no_tests_and_nothing_of_this_machine(files: dict[str, tarfile.TarInfo]) -> None:
    names = {PurePosixPath(path).name for path, entry in files.items() if not entry.isdir()}
    assert not names & {"sh", "bash", "dash", "busybox", "apt", "dpkg", "pip", "pip3", "perl", "gcc", "pip.conf"}
    assert not [path for path in files if PurePosixPath(path).name in ("setuptools", "ensurepip", "kube_envtest")]
    assert not [path for path in files if path.startswith("usr/lib/python3") and "/test/" in path]
    assert "opt/syncer/bin/syncer" in files
    assert files["plugins"].isdir()


def test_image_has_bytecode_of_every_module_of_the_daemon(files: dict[str, tarfile.TarInfo]) -> None:
    modules = [path for path in map(PurePosixPath, files) if path.suffix == ".py" and "syncer" in path.parts[5:6]]
    assert len(modules) > 200
    compiled = {str(path.parent.parent / path.name.partition(".")[0]) for path in map(PurePosixPath, files)}
    assert [path for path in modules if str(path.with_suffix("")) not in compiled] == []


def test_image_lists_its_packages(built: Built) -> None:
    bill = json.loads(built.saved.bill.read_text())
    versions = {each["name"]: each["version"] for each in bill["components"] if each["type"] == "library"}
    assert versions["vsyncer"] == VERSION
    assert {"msgspec", "cryptography", "libc6", "ca-certificates"} <= set(versions)
    assert not {"setuptools", "pip", "bash"} & set(versions)


@pytest.mark.parametrize("user", ["65532:65532", f"{USER}:{USER}"])
def test_commands_run_as_any_user_with_a_read_only_root(built: Built, user: str) -> None:
    options = (f"--user={user}",)
    assert built.syncer("version", options=options).startswith(f"syncer {VERSION} ")
    assert "foos" not in built.syncer("plugins", "list", options=options)


def test_extension_modules_of_all_packages_load(built: Built) -> None:
    code = (
        "import aiohttp, cryptography.x509, httptools, msgspec, ssl, sqlite3, uvloop, yaml._yaml, kubernetes.client\n"
    )
    code += "context = ssl.create_default_context()\nprint(len(context.get_ca_certs()) > 50)"
    assert built.syncer("-c", code, options=("--entrypoint=python",)) == "True"


def test_plugin_in_an_image_of_two_lines_is_found(built: Built, foo: Path) -> None:
    (foo / "Dockerfile").write_text(f"FROM {TAG}\nCOPY foo /plugins/foo\n")
    image = built.build(foo, "vsyncer.dev/syncer-with-foo:test")
    assert "vsyncer-foo 0.1.0   yes" in built.syncer("plugins", "check", "foos", image=image)


def test_plugin_on_a_volume_is_found(built: Built, foo: Path) -> None:
    volume = (f"--volume={foo}/foo:/plugins/foo:ro",)
    assert "vsyncer-foo 0.1.0   yes" in built.syncer("plugins", "check", "foos", options=volume)


def test_daemon_in_the_image_copies_between_real_clusters(built: Built, planes: Planes) -> None:
    with contained(built.engine, TAG, planes) as daemon:
        planes.virtual.kubectl("create", "configmap", "settings", f"--namespace={NAMESPACE}", "--from-literal=a=b")
        copy = f"configmap/settings-x-{NAMESPACE}-x-shop"
        planes.host.kubectl("wait", "--for=create", "--timeout=120s", f"--namespace={HOST_NAMESPACE}", copy)
        output = built.engine.run("exec", daemon.folder.name, "syncer", "status", "--config", str(daemon.file))
        assert "configmaps" in output
        about = Path(f"/proc/{daemon.pid}/status").read_text()
        assert about.split("Uid:\t")[1].startswith(f"{USER}\t")
        assert about.split("CapEff:\t")[1].startswith("0000000000000000\n")


def test_daemon_at_rest_takes_80_mb_at_most(built: Built, planes: Planes) -> None:
    assert measured(built.engine, TAG, planes)["rss_mb"] < 80
