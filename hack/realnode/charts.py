"""The images of the chart `virtual-cluster`, under the upstream names that its values have, of this
checkout's own control-plane binary.
"""

from pathlib import Path
from typing import Any

import yaml

from hack.planes import BINARY
from hack.realnode.archive import Image, write
from hack.realnode.builds import build
from hack.realnode.node_site import ROOT

CHART = ROOT / "charts" / "virtual-cluster"


def values() -> dict[str, Any]:
    """Return the default values of the chart."""
    found: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return found


def tag(section: str) -> str:
    """Return the image that a section of the chart's values names, such as ``etcd``."""
    found = values()
    image = found[section]["image"]
    return f"{image['repository']}:{image['tag'] or found['kubernetesVersion']}"


def write_images(path: Path) -> None:
    """Write the archive of all images but the daemon's. The control plane's are one binary under
    several names, of which upstream's images have each in the same place.
    """
    program = "usr/local/bin/controlplane"
    base = Image([], files={program: BINARY})
    names = {
        "etcd": ("etcd", "etcdctl", "etcdutl"),
        "apiServer": ("kube-apiserver",),
        "controllerManager": ("kube-controller-manager",),
        "scheduler": ("kube-scheduler",),
    }
    write(
        path,
        [
            *(
                Image(
                    [tag(section)],
                    links={f"usr/local/bin/{name}": f"/{program}" for name in programs},
                    base=base,
                )
                for section, programs in names.items()
            ),
            Image(
                [tag("kubectl")], ["/bin/kubectl"], links={"bin/kubectl": f"/{program}"}, base=base
            ),
            Image([tag("dns")], ["/coredns"], {"coredns": build("coredns")}),
        ],
    )
