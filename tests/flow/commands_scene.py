"""Commands as an operator types them, against API servers of this process, over HTTPS, with the daemon's roles."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from click.testing import CliRunner
from harness import HOME, is_question, namespace

from kube_envtest import User
from syncer.api import Obj, Side
from syncer.cli.app import app
from syncer.config import SyncerConfig, load
from syncer.daemon.roles import roles_of
from syncer.plugins import installed
from syncer.rights.rbac import Subject
from syncer.testing import ApiServer

DAEMON = "daemon"
#: Pods would need an address of their API server that they reach.
NO_PODS: Mapping[str, Any] = {
    "toHost": {"pods": {"enabled": False}, "configMaps": {"all": True}, "secrets": {"all": True}}
}


class Ended(NamedTuple):
    """How a command ended."""

    status: int
    output: str
    error: str

    @property
    def json(self) -> Any:
        return json.loads(self.output)


class Commands:
    """A host with virtual clusters, and a configuration of a daemon for all of them."""

    def __init__(self, folder: Path, *clusters: str, rbac: bool = True) -> None:
        tokens = {f"{name}-token": User(name, ("system:authenticated",)) for name in (DAEMON,)}
        admins = {"admin-token": User("admin", ("system:masters", "system:authenticated"))}
        self.folder = folder
        self.host = ApiServer(tokens={**tokens, **admins}, rbac=rbac, seed="host")
        self.virtual: dict[str, ApiServer] = {}
        for name in clusters:
            self.virtual[name] = ApiServer(tokens={**tokens, **admins}, rbac=rbac, seed=name)
            self.host.put(namespace(self.home(name)))

    async def start(self, **options: Any) -> None:
        """Serve all of them, and write the configuration, with these options."""
        for name, server in self.servers().items():
            await server.start(tls=True)
            server.kubeconfig(self.folder / f"{name}.kubeconfig", DAEMON)
        self.configure("syncer.yaml", **options)

    async def stop(self) -> None:
        for server in self.servers().values():
            await server.stop()

    def servers(self) -> dict[str, ApiServer]:
        """Return the API servers by name; the host's is ``host``."""
        return {"host": self.host, **self.virtual}

    def home(self, cluster: str) -> str:
        """Return the host namespace of a virtual cluster."""
        return f"{HOME}-{cluster}"

    def configure(self, file: str, **options: Any) -> SyncerConfig:
        """Write a configuration, and return it."""
        listed = [
            {"name": name, "kubeconfig": f"{self.folder}/{name}.kubeconfig", "hostNamespace": self.home(name)}
            for name in self.virtual
        ]
        given = {
            "apiVersion": "vsyncer.dev/v1alpha1",
            "kind": "SyncerConfig",
            "host": {"kubeconfig": f"{self.folder}/host.kubeconfig"},
            "virtualClusters": listed,
            "sync": NO_PODS,
            "control": {"socket": f"{self.folder}/control.sock"},
            **options,
        }
        (self.folder / file).write_text(yaml.safe_dump(given))
        return load(str(self.folder / file), installed()).config

    def grant(self, file: str = "syncer.yaml") -> None:
        """Give the daemon the roles that ``syncer rbac`` prints for a configuration."""
        config = load(str(self.folder / file), installed()).config
        roles = roles_of(config, Subject(DAEMON), side="host")
        for role in roles:
            self.host.put(role)
        for name, server in self.virtual.items():
            for role in roles_of(config, Subject(DAEMON), side="virtual", only="cluster", chosen=name):
                server.put(role)

    async def run(self, *arguments: str, file: str = "syncer.yaml") -> Ended:
        """Run a command to its end, in a thread with an event loop of its own."""
        typed = [*arguments, "--config", str(self.folder / file)]
        result = await asyncio.to_thread(CliRunner().invoke, app, typed, prog_name="syncer")
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ended(result.exit_code, result.stdout, result.stderr)

    def refused(self) -> list[str]:
        """Return the requests for which a right was missing."""
        found = []
        for name, server in self.servers().items():
            found += [f"{name}: {one.verb} {one.path}" for one in server.requests if one.status == 403]
        return found

    def written(self) -> list[str]:
        """Return the requests that stored something."""
        verbs = ("create", "update", "patch", "delete", "deletecollection")
        found = []
        for name, server in self.servers().items():
            stored = [one for one in server.requests if one.verb in verbs and not is_question(one)]
            found += [f"{name}: {one.verb} {one.path}" for one in stored]
        return found


def of_side(side: Side) -> str:
    return f"rights on the {side} side"


def by_check(found: Iterable[Obj], cluster: str = "") -> dict[str, Obj]:
    """Return the results about a virtual cluster, or the host, by the name of the check."""
    return {each["check"]: each for each in found if each["cluster"] == cluster}


@contextlib.asynccontextmanager
async def commands(folder: Path, *clusters: str, granted: bool = True, **options: Any) -> AsyncIterator[Commands]:
    """Yield a host with these virtual clusters, or with ``shop`` alone, and the daemon's roles."""
    scene = Commands(folder, *(clusters or ("shop",)))
    try:
        await scene.start(**options)
        if granted:
            scene.grant()
        yield scene
    finally:
        await scene.stop()


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario in real time, which the command has in its own thread, too."""
    asyncio.run(scenario())
