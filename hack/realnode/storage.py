"""Volumes and snapshots for the pods of a running node: a CSI driver that copies folders, with
Kubernetes' own programs between it and the API server.
"""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import yaml

from hack.realnode import builds, outside, settings
from hack.realnode.inside import Failed, wait
from hack.realnode.node_site import NodeSite
from hack.realnode.virtual import kubectl
from kube_envtest.controlplane.processes import spawn
from syncer.api import Obj
from syncer.testing.merge import merged

DRIVER = "folders.vsyncer.dev"
#: The classes of volumes and of snapshots: one of each that tenants may see, and one for the host
#: alone.
SHOWN, HIDDEN = "folders", "of-the-host"
#: The labels of the classes that tenants may see.
LABELS = {"tenants": "yes"}
#: The folder of the kubelet, where it looks for drivers.
_KUBELET = Path("/var/lib/kubelet")
_SOCKET = _KUBELET / "plugins" / DRIVER / "csi.sock"
_SNAPSHOTTER = "github.com/kubernetes-csi/external-snapshotter"
_PROVISIONER = "github.com/kubernetes-csi/external-provisioner"
_GROUP = "snapshot.storage.k8s.io"
_KINDS = ("volumesnapshotclasses", "volumesnapshotcontents", "volumesnapshots")
#: Both programs would wait for the CRDs of a kind that is none of these, up to a minute.
_NO_GROUPS = "--feature-gates=CSIVolumeGroupSnapshot=false"
#: Seconds that a program may take to end.
_END_SECONDS = 30.0


@contextmanager
def provided(site: NodeSite) -> Iterator[None]:
    """Provide volumes and snapshots on a running node meanwhile; at the end nothing of it is left.

    The CRDs have the label of public ones.

    Raises:
        Failed: A program ended, or the kubelet didn't take the driver; or at the end, a volume or a
            snapshot is still there.
        RuntimeError: There is no Go, or a build failed.
    """
    commands = _commands(site)
    host = partial(kubectl, site.folder / "admin.kubeconfig")
    host("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(_definitions()))
    wait("the API of snapshots", lambda: _is_served(site))
    host("apply", "-f", "-", stdin=yaml.safe_dump_all(_classes()))
    programs: dict[str, subprocess.Popen[bytes]] = {}
    with ExitStack() as stack:
        for name, command in commands.items():
            # It keeps its process id, so that it can be ended from here.
            entered = outside.enter_files(site, command)
            programs[name] = spawn(entered, _log(site, name), site.folder)
            stack.callback(programs[name].wait, _END_SECONDS)
            stack.callback(programs[name].terminate)
        stack.callback(_remove, site)

        def is_there() -> bool:
            _check_alive(site, programs)
            found = host("get", "csinode", settings.NODE, "-o=jsonpath={.spec.drivers[*].name}")
            return DRIVER in found

        wait("the CSI driver", is_there)
        yield


def _remove(site: NodeSite) -> None:
    """Remove the classes and the CRDs, once nothing is left that the programs have to clean up."""
    host = partial(kubectl, site.folder / "admin.kubeconfig")
    drivers = ("get", "persistentvolumes", "-o=jsonpath={.items[*].spec.csi.driver}")
    wait("the end of all volumes", lambda: DRIVER not in host(*drivers))
    host("delete", "-f", "-", "--timeout=60s", stdin=yaml.safe_dump_all(_classes()))
    host("delete", "crd", "--timeout=60s", *(f"{kind}.{_GROUP}" for kind in _KINDS))
    shutil.rmtree(_folder(site), ignore_errors=True)


def _is_served(site: NodeSite) -> bool:
    """Return True if the host's API server has the kinds of snapshots."""
    try:
        kubectl(site.folder / "admin.kubeconfig", "get", ",".join(_KINDS), "-A")
    except Failed:
        return False
    return True


def _check_alive(site: NodeSite, programs: Mapping[str, subprocess.Popen[bytes]]) -> None:
    """Check that all programs run.

    Raises:
        Failed: One has ended.
    """
    for name, program in programs.items():
        if program.poll() is not None:
            log = _log(site, name).read_text(errors="replace")
            raise Failed(f"{name} ended; its log ends with:\n{log[-2000:]}")


def _log(site: NodeSite, name: str) -> Path:
    return site.folder / f"{name}.log"


def _folder(site: NodeSite) -> Path:
    """Return the folder of the driver's volumes and snapshots."""
    return site.folder / "storage"


def _definitions() -> list[Obj]:
    """Return the CRDs of snapshots.

    Raises:
        RuntimeError: There is no Go, or it can't fetch the module.
    """
    module = f"{_SNAPSHOTTER}/client/v8"
    builds.go("csi", ["mod", "download", module])
    folder = Path(builds.go("csi", ["list", "-m", "-f={{.Dir}}", module]).strip())
    public = {"metadata": {"labels": {"tenancy.x-k8s.io/super.public": "true"}}}
    found = []
    for kind in _KINDS:
        file = folder / "config" / "crd" / f"{_GROUP}_{kind}.yaml"
        found.append(merged(yaml.safe_load(file.read_text()), public))
    return found


def _classes() -> list[Obj]:
    """Return the classes of volumes and snapshots, and what the host knows of the driver."""
    driver = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": DRIVER},
        "spec": {"attachRequired": False, "volumeLifecycleModes": ["Persistent"]},
    }
    made = [driver]
    for name, labels in ((SHOWN, LABELS), (HIDDEN, {})):
        metadata = {"name": name, "labels": labels}
        of_volumes = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": metadata,
            "provisioner": DRIVER,
        }
        of_snapshots = {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "VolumeSnapshotClass",
            "metadata": metadata,
            "driver": DRIVER,
            "deletionPolicy": "Delete",
        }
        made += [of_volumes, of_snapshots]
    return made


def _commands(site: NodeSite) -> dict[str, list[str]]:
    """Return the command lines of the programs, built if need be."""
    kubeconfig = f"--kubeconfig={site.folder / 'admin.kubeconfig'}"
    beside = [kubeconfig, f"--csi-address={_SOCKET}", "--leader-election=false"]
    build = partial(builds.build, "csi")
    return {
        "csi-driver": [
            str(build()),
            f"--name={DRIVER}",
            f"--node={settings.NODE}",
            f"--folder={_folder(site)}",
            f"--socket={_SOCKET}",
            f"--registry={_KUBELET / 'plugins_registry'}",
        ],
        "snapshot-controller": [
            str(build(f"{_SNAPSHOTTER}/v8/cmd/snapshot-controller")),
            kubeconfig,
            "--leader-election=false",
            _NO_GROUPS,
        ],
        "csi-snapshotter": [
            str(build(f"{_SNAPSHOTTER}/v8/cmd/csi-snapshotter")),
            *beside,
            _NO_GROUPS,
        ],
        "csi-provisioner": [str(build(f"{_PROVISIONER}/v6/cmd/csi-provisioner")), *beside],
    }
