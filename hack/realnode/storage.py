"""Volumes and snapshots for the pods of a running node: a CSI driver that copies folders, with
Kubernetes' own programs between it and the API server.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import yaml

from hack.realnode import builds, outside, settings
from hack.realnode.inside import wait
from hack.realnode.node_site import NodeSite
from hack.realnode.virtual import kubectl
from kube_envtest.controlplane.processes import spawn
from syncer.api import Obj
from syncer.testing.merge import merged

DRIVER = "folders.vsyncer.dev"
#: The label by which tenants are to see a class.
SHOWN = {"metadata": {"labels": {"tenants": "yes"}}}
#: The folder of the kubelet, where it looks for drivers.
_KUBELET = Path("/var/lib/kubelet")
_SOCKET = _KUBELET / "plugins" / DRIVER / "csi.sock"
_SNAPSHOTTER = "github.com/kubernetes-csi/external-snapshotter"
_PROVISIONER = "github.com/kubernetes-csi/external-provisioner"
_GROUP = "snapshot.storage.k8s.io"
#: Seconds that a program may take to end.
_END_SECONDS = 30.0


@contextmanager
def provided(site: NodeSite) -> Iterator[None]:
    """Provide volumes and snapshots on a running node meanwhile, with a class of each that tenants
    may see, and one of each for the host alone. The CRDs have the label of public ones.

    Raises:
        Failed: A program ended, or the kubelet didn't take the driver.
        RuntimeError: There is no Go, or a build failed.
    """
    host = partial(kubectl, site.folder / "admin.kubeconfig")
    host("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(definitions()))
    host("apply", "-f", "-", stdin=yaml.safe_dump_all(classes()))
    with ExitStack() as stack:
        for name, command in _commands(site).items():
            # It keeps its process id, so that it can be ended from here.
            entered = outside.enter_files(site, command)
            process = spawn(entered, site.folder / f"{name}.log", site.folder)
            stack.callback(process.wait, _END_SECONDS)
            stack.callback(process.terminate)
        drivers = ("get", "csinode", settings.NODE, "-o=jsonpath={.spec.drivers[*].name}")
        wait("the CSI driver", lambda: DRIVER in host(*drivers))
        yield


def definitions() -> list[Obj]:
    """Return the CRDs of snapshots.

    Raises:
        RuntimeError: There is no Go, or it can't fetch the module.
    """
    module = f"{_SNAPSHOTTER}/client/v8"
    builds.go("storage", ["mod", "download", module])
    folder = Path(builds.go("storage", ["list", "-m", "-f={{.Dir}}", module]).strip())
    public = {"metadata": {"labels": {"tenancy.x-k8s.io/super.public": "true"}}}
    found = []
    for kind in ("volumesnapshotclasses", "volumesnapshotcontents", "volumesnapshots"):
        file = folder / "config" / "crd" / f"{_GROUP}_{kind}.yaml"
        found.append(merged(yaml.safe_load(file.read_text()), public))
    return found


def classes() -> list[Obj]:
    """Return the classes of volumes and snapshots."""
    made = []
    for name, shown in (("folders", SHOWN), ("of-the-host", {})):
        volumes = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": DRIVER,
        }
        snapshots = {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "VolumeSnapshotClass",
            "metadata": {"name": name},
            "driver": DRIVER,
            "deletionPolicy": "Delete",
        }
        made += [merged(volumes, shown), merged(snapshots, shown)]
    driver = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": DRIVER},
        "spec": {"attachRequired": False, "volumeLifecycleModes": ["Persistent"]},
    }
    return [driver, *made]


def _commands(site: NodeSite) -> dict[str, list[str]]:
    """Return the command lines of the programs, built if need be."""
    kubeconfig = f"--kubeconfig={site.folder / 'admin.kubeconfig'}"
    beside = [kubeconfig, f"--csi-address={_SOCKET}", "--leader-election=false"]
    build = partial(builds.build, "storage")
    return {
        "storage": [
            str(build()),
            f"--name={DRIVER}",
            f"--node={settings.NODE}",
            f"--folder={site.folder / 'volumes'}",
            f"--socket={_SOCKET}",
            f"--registry={_KUBELET / 'plugins_registry'}",
        ],
        "snapshot-controller": [
            str(build(f"{_SNAPSHOTTER}/v8/cmd/snapshot-controller")),
            kubeconfig,
            "--leader-election=false",
        ],
        "csi-snapshotter": [str(build(f"{_SNAPSHOTTER}/v8/cmd/csi-snapshotter")), *beside],
        "csi-provisioner": [str(build(f"{_PROVISIONER}/v6/cmd/csi-provisioner")), *beside],
    }
