"""Commands as an operator types them, against API servers of this process, over HTTPS, with the daemon's roles."""

import asyncio
import contextlib
import json
import shlex
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from click.testing import CliRunner
from harness import HOME, is_question, namespace

from hack.side_tasks import helped_by
from kube_envtest import User
from syncer.api import Obj, Side
from syncer.cli.app import app
from syncer.config import SyncerConfig, load
from syncer.daemon.roles import roles_of
from syncer.daemon.runner import run
from syncer.plugins import installed
from syncer.rights.rbac import Subject
from syncer.testing import ApiServer

DAEMON = "daemon"
#: How often a command is run until its answer has what is expected.
LOOKS = 60
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
            "metrics": {"address": "0"},
            "health": {"address": "0"},
            **options,
        }
        (self.folder / file).write_text(yaml.safe_dump(given))
        return load(str(self.folder / file), installed()).config

    @contextlib.asynccontextmanager
    async def daemon(self, file: str = "syncer.yaml") -> AsyncIterator[None]:
        """Run the daemon of a configuration while the block runs."""
        config = load(str(self.folder / file), installed()).config
        async with helped_by(run(config)):
            yield

    async def until(self, *arguments: str, says: Iterable[str]) -> Ended:
        """Run a command again and again until all of this is in its answer, and return that.

        A daemon needs a moment for what it is asked about.
        """
        for _ in range(LOOKS):
            ended = await self.run(*arguments)
            answer = ended.output + ended.error
            if all(each in answer for each in says):
                return ended
            await asyncio.sleep(0.1)
        raise AssertionError(f"syncer {shlex.join(arguments)}: no {says} in\n{answer}")

    def grant(self, file: str = "syncer.yaml") -> None:
        """Give the daemon the roles that ``syncer rbac`` prints for a configuration."""
        config = load(str(self.folder / file), installed()).config
        roles = roles_of(config, Subject(DAEMON), side="host")
        for role in roles:
            self.host.put(role)
        for name, server in self.virtual.items():
            for role in roles_of(config, Subject(DAEMON), side="virtual", only="cluster", chosen=name):
                server.put(role)

    def take_away(self, plural: str, *verbs: str) -> None:
        """Take rights on a resource from the daemon's Role on the host; all if no verb is named."""
        for cluster in self.virtual:
            path = f"{self.home(cluster)}/vsyncer-{cluster}"
            role = self.host.get("roles.rbac.authorization.k8s.io", path)
            assert role
            rules: list[Obj] = []
            for rule in role["rules"]:
                others = [each for each in rule["resources"] if each != plural]
                left = [verb for verb in rule["verbs"] if verbs and verb not in verbs]
                if others:
                    rules.append({**rule, "resources": others})
                if left and plural in rule["resources"]:
                    rules.append({**rule, "resources": [plural], "verbs": left})
            role["rules"] = rules
            self.host.put(role)

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
