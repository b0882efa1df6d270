"""Where real API servers can be had."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from syncer.testing.controlplane.errors import NotAvailable
from syncer.testing.controlplane.processes import Processes
from syncer.testing.controlplane.programs import APISERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER, Programs

CHECKOUT = Path(__file__).resolve().parents[3] / "hack" / "controlplane"
REQUIRED = (ETCD, APISERVER, "kubectl")
OPTIONAL = (CONTROLLER_MANAGER, SCHEDULER)


def find(environ: Mapping[str, str] = os.environ) -> Programs:
    """Return the programs of a control plane from the first of these that is set or there:

    1. `SYNCER_TEST_DOCKER=k3s` or `scratch`: containers;
    2. `KUBEBUILDER_ASSETS`: a folder with etcd, kube-apiserver and kubectl, as setup-envtest makes it
       (kube-controller-manager and kube-scheduler are used where they lie there too);
    3. `SYNCER_CONTROLPLANE`: path of the binary that `hack/controlplane/build` makes;
    4. that binary in this checkout.

    What is set is used or is an error; it is never passed over in silence.

    Raises:
        NotAvailable: there is none, or what is set doesn't work.
    """  # noqa: D400, D415
    if docker := environ.get("SYNCER_TEST_DOCKER"):
        return _in_docker(docker, environ)
    if assets := environ.get("KUBEBUILDER_ASSETS"):
        return _assets(Path(assets))
    return _multi_call(binary(environ))


def binary(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the multi-call binary.

    Raises:
        NotAvailable: it isn't there.
    """
    if chosen := environ.get("SYNCER_CONTROLPLANE"):
        return _executable(
            Path(chosen), f"SYNCER_CONTROLPLANE={chosen}: no such program; hack/controlplane/build makes one"
        )
    return _executable(
        CHECKOUT / "bin" / "controlplane",
        "no real kube-apiserver here: run hack/controlplane/build (needs Go), or set KUBEBUILDER_ASSETS to a folder"
        " of setup-envtest, or SYNCER_TEST_DOCKER=k3s where images can be pulled",
    )


def _executable(path: Path, otherwise: str) -> Path:
    if not os.access(path, os.X_OK) or path.is_dir():
        raise NotAvailable(otherwise)
    return path.resolve()


def _multi_call(path: Path) -> Processes:
    return Processes(str(path), {name: (str(path), name) for name in (*REQUIRED, *OPTIONAL)})


def _assets(folder: Path) -> Processes:
    commands = {name: (found,) for name in (*REQUIRED, *OPTIONAL) if (found := shutil.which(name, path=str(folder)))}
    if missing := [name for name in REQUIRED if name not in commands]:
        raise NotAvailable(f"KUBEBUILDER_ASSETS={folder}: no {', '.join(missing)} in this folder (see setup-envtest)")
    return Processes(f"KUBEBUILDER_ASSETS={folder}", commands)


def _in_docker(kind: str, environ: Mapping[str, str]) -> Programs:
    """Docker is asked for by hand, so its packages are imported only then."""
    if kind not in ("k3s", "scratch"):
        raise NotAvailable(f"SYNCER_TEST_DOCKER={kind}: is neither k3s nor scratch")
    try:
        from syncer.testing.controlplane import containers
    except ImportError as error:
        raise NotAvailable(f"SYNCER_TEST_DOCKER={kind}: {error}: pip install 'testcontainers'") from error
    return containers.k3s() if kind == "k3s" else containers.scratch(binary(environ))
