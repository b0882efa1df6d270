"""Clusters alone, each a context of one kubeconfig: for controllers of many clusters."""

import asyncio
import shutil
import string
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import yaml

from hack.planes import VIRTUAL_CONTROLLERS
from hack.webshop.clusters import embedded_servers, kubectl, run_planes, short, usable_programs
from hack.webshop.waiting import say
from kube_envtest import ControlPlane, Programs
from kube_envtest.controlplane.programs import CONTROLLER_MANAGER
from syncer.api import Obj

#: The most clusters: their names are letters.
MOST = len(string.ascii_lowercase)


@dataclass(frozen=True)
class ContextsDemo:
    """So many clusters, with their kubeconfig in a folder, until it is interrupted."""

    folder: Path
    clusters: int
    embedded: bool

    async def run(self) -> None:
        """Start the clusters, explain their use, and wait.

        Raises:
            Failed: They don't start.
        """
        names = string.ascii_lowercase[: self.clusters]
        programs = "because of --embedded" if self.embedded else await usable_programs()
        begun = time.monotonic()
        async with AsyncExitStack() as stack:
            if isinstance(programs, str):
                say(f"1. {len(names)} clusters in this process, {programs}.")
                servers = await embedded_servers(names, stack)
                files = {
                    name: servers[name].kubeconfig(self._file(name), "admin") for name in names
                }
            else:
                source = short(programs.source)
                say(f"1. {len(names)} real clusters, etcd and kube-apiserver from {source}.")
                planes = await _planes(names, programs, stack)
                files = {
                    name: planes[name].kubeconfig("admin", path=self._file(name)) for name in names
                }
            say(f"   They took {time.monotonic() - begun:.1f} s to start.")
            real = None if isinstance(programs, str) else programs
            say(*_hints(names, joined(files, self.folder / "kubeconfig"), real))
            await asyncio.Event().wait()

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.kubeconfig"


async def _planes(
    names: Sequence[str], programs: Programs, stack: AsyncExitStack
) -> Mapping[str, ControlPlane]:
    controllers = VIRTUAL_CONTROLLERS if programs.has(CONTROLLER_MANAGER) else ""
    planes = {
        name: ControlPlane(name, programs=programs, controllers=controllers) for name in names
    }
    await run_planes(planes.values(), stack)
    return planes


def joined(kubeconfigs: Mapping[str, Path], file: Path) -> Path:
    """Write a kubeconfig with a context of each name; return its path."""
    whole: Obj = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
    for name, path in kubeconfigs.items():
        one = yaml.safe_load(path.read_text())
        for part in ("clusters", "users"):
            whole[part].append({**one[part][0], "name": name})
        whole["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(whole))
    return file


def _hints(names: Sequence[str], kubeconfig: Path, programs: Programs | None) -> Sequence[str]:
    """Return commands for the clusters."""
    command = "kubectl"
    if not shutil.which(command):
        command = " ".join(map(short, kubectl(programs))) or command
    first = names[0]
    programs_folder = ".venv/bin/python examples/multicluster"
    return (
        "",
        f"2. A kubeconfig with the contexts {', '.join(names)}. In another terminal:",
        f"   export KUBECONFIG={kubeconfig}",
        f"   {programs_folder}/helloworld.py --contexts {','.join(names)}",
        f"   {command} --context {first} create namespace shop",
        f"   {command} --context {first} --namespace shop run web --image=nginx --restart=Never",
        "Ctrl-C here ends it all and cleans up.",
    )
