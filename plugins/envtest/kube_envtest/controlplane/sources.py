"""Find a real API server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from kube_envtest.controlplane.errors import NotAvailable
from kube_envtest.controlplane.processes import Processes
from kube_envtest.controlplane.programs import APISERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER, Programs

REQUIRED = (ETCD, APISERVER, "kubectl")
OPTIONAL = (CONTROLLER_MANAGER, SCHEDULER, "etcdctl", "etcdutl")


def find(environ: Mapping[str, str] = os.environ) -> Programs:
    """Return the programs of a control plane from the first of these that is set:

    1. `ENVTEST_DOCKER=k3s` or `scratch`: containers;
    2. `KUBEBUILDER_ASSETS`: a folder with etcd, kube-apiserver and kubectl, as setup-envtest makes it
       (kube-controller-manager and kube-scheduler are used where they lie there too);
    3. `ENVTEST_CONTROLPLANE`: path of a multi-call binary with all five, as `hack/controlplane/build` of vsyncer's
       repository makes it.

    What is set is used or is an error; it is never passed over in silence.

    Args:
        environ: Where these are looked up; by default the environment of this process.

    Raises:
        NotAvailable: no variable is set, or its programs don't work.
    """  # noqa: D400, D415
    if docker := environ.get("ENVTEST_DOCKER"):
        return _in_docker(docker, environ)
    if assets := environ.get("KUBEBUILDER_ASSETS"):
        return _assets(Path(assets))
    return _multi_call(binary(environ))


def binary(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the multi-call binary.

    Raises:
        NotAvailable: `ENVTEST_CONTROLPLANE` isn't set, or there is no such program.
    """
    chosen = environ.get("ENVTEST_CONTROLPLANE")
    if not chosen:
        raise NotAvailable(
            "no real kube-apiserver here: set KUBEBUILDER_ASSETS to a folder of setup-envtest, or ENVTEST_CONTROLPLANE"
            " to the binary that hack/controlplane/build of vsyncer makes (needs Go), or ENVTEST_DOCKER=k3s where"
            " images can be pulled"
        )
    path = Path(chosen)
    if not os.access(path, os.X_OK) or path.is_dir():
        raise NotAvailable(
            f"ENVTEST_CONTROLPLANE={chosen}: no such program; hack/controlplane/build of vsyncer makes one (needs Go)."
            " Or set KUBEBUILDER_ASSETS to a folder of setup-envtest"
        )
    return path.resolve()


def _multi_call(path: Path) -> Processes:
    return Processes(str(path), {name: (str(path), name) for name in (*REQUIRED, *OPTIONAL)})


def _assets(folder: Path) -> Processes:
    commands = {name: (found,) for name in (*REQUIRED, *OPTIONAL) if (found := shutil.which(name, path=str(folder)))}
    if missing := [name for name in REQUIRED if name not in commands]:
        raise NotAvailable(f"KUBEBUILDER_ASSETS={folder}: no {', '.join(missing)} in this folder (see setup-envtest)")
    return Processes(f"KUBEBUILDER_ASSETS={folder}", commands)


def _in_docker(kind: str, environ: Mapping[str, str]) -> Programs:
    """Return programs in Docker, whose packages are only imported here."""
    if kind not in ("k3s", "scratch"):
        raise NotAvailable(f"ENVTEST_DOCKER={kind}: is neither k3s nor scratch")
    try:
        from kube_envtest.controlplane import containers
    except ImportError as error:
        raise NotAvailable(f"ENVTEST_DOCKER={kind}: {error}: pip install 'kube-envtest[docker]'") from error
    return containers.k3s() if kind == "k3s" else containers.scratch(binary(environ))
