"""A hostile tenant: the daemon as a user starts it, between two API servers, and what its tests need.

To add a test, take the fixture `hostile`, which is given once for each name translator: call
`hostile.start(…)` with the configuration that the test is about, act with `hostile.tenant` (the
virtual API server) and `hostile.operator` (the host's), and assert on what the host has, on
`hostile.asked` and on `hostile.serves_others()`. Mark it with `@pytest.mark.translators(…,
reason="…")` if it isn't about all of them; write the assertion that an older version fails beside
it (`HOSTILE_SYNCER=PATH/bin/syncer pytest tests/hostile` runs that version).
"""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from plugin_packages import python_path

from hack import loop_steps
from hack.bench.daemon import SYNCER, Process
from kube_envtest import ADMIN, ApiServer, BackgroundApiServer, Logged, User
from syncer.api import Key, NameTranslator, Obj, Resource, key_of, uid_of
from syncer.names import PerNamespace, SingleNamespace, Unchanged, VclusterCompat
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, namespace, resource_of

T = TypeVar("T")

TRANSLATORS: Mapping[str, Callable[..., NameTranslator]] = {
    "single-namespace": SingleNamespace,
    "per-namespace": PerNamespace,
    "unchanged": Unchanged,
    "vcluster-compat": VclusterCompat,
}
CLUSTER, HOME = "vc", "vc-ns"
#: The virtual namespaces: that of the attack, and that of a tenant who wants to be served meanwhile.
NAMESPACE, OTHERS = "shop", "bank"
#: A namespace of the host's, which is no tenant's.
FOREIGN = "host-system"
#: The daemon's user on both sides.
DAEMON = User("syncer", ("system:masters", "system:authenticated"))
TOKENS = {"admin-token": ADMIN, "syncer-token": DAEMON}
#: The variable with the command of another installation, which is tested instead of this one.
OTHER = "HOSTILE_SYNCER"
#: Default deadline of what happens by itself, in seconds, and the time without requests that is
#: quiet.
PATIENCE, QUIET = 60.0, 0.5
#: The metadata that has a ConfigMap copied which no Pod uses.
COPIED = {"annotations": {"vsyncer.dev/force-sync": "true"}}


def eventually(look: Callable[[], T | None], expectation: str, *, seconds: float = PATIENCE) -> T:
    """Return the result of `look` as soon as it is true.

    Raises:
        AssertionError: It is not within `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {expectation}"
        time.sleep(0.02)
    return found


class Server(BackgroundApiServer):
    """An API server, in whose name a test acts without a request: `put`, `patch`, `delete`."""

    def __init__(self, seed: str, *, tls: bool = False) -> None:
        super().__init__(seed=seed, tokens=TOKENS, tls=tls)

    def patch(self, resource: str | Resource, key: str, **parts: Any) -> Obj:
        """Merge parts over an object, which must exist; None removes a field."""
        changed = self.call(partial(_merge_into, resource, key, "", parts))
        assert changed is not None, f"{resource} {key} is not there"
        return changed

    def change(self, obj: Obj, parts: Obj) -> Obj | None:
        """Merge parts over an object as it is now, and return it; None if it is gone.

        This and `patch` are one step of the server: no write of the daemon in between is lost.
        """
        return self.call(partial(_merge_into, resource_of(obj), str(key_of(obj)), uid_of(obj), parts))

    def requests(self) -> list[Logged]:
        """Return the requests of the daemon."""
        return self.call(_requests)

    def count(self) -> int:
        """Return the number of all requests."""
        return self.call(_count)


def _merge_into(resource: str | Resource, key: str, uid: str, parts: Obj, server: ApiServer) -> Obj | None:
    found = server.get(resource, key)
    if found is None or uid not in ("", uid_of(found)):
        return None
    return server.put(merged(found, parts))


def _requests(server: ApiServer) -> list[Logged]:
    return [each for each in server.requests if each.user == DAEMON.name]


def _count(server: ApiServer) -> int:
    return len(server.requests)


@dataclass
class HostileScene:
    """A virtual cluster of a hostile tenant, its host, and the daemon between them."""

    translator: str
    folder: Path
    tenant: Server = field(default_factory=lambda: Server("virtual"))
    operator: Server = field(default_factory=lambda: Server("host"))
    #: The command `syncer`.
    cli: Sequence[str] = field(default_factory=lambda: (installation(),))
    #: Sections of plugins under `sync.toHost`, which no schema has.
    plugins: Mapping[str, Any] = field(default_factory=dict)
    #: A command that runs another one with the import path of the plugins.
    environment: Sequence[str] = ()
    _daemon: Process | None = None
    _beats: Iterable[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.names = TRANSLATORS[self.translator](cluster=CLUSTER, namespace=HOME)
        for server, side in ((self.tenant, "virtual"), (self.operator, "host")):
            server.start()
            server.kubeconfig(self.folder / side, DAEMON.name)
        for name in (HOME, FOREIGN):
            self.operator.put(namespace(name))
        for name in (NAMESPACE, OTHERS):
            self.tenant.put(namespace(name))

    # -- the daemon --------------------------------------------------------------------------------

    @property
    def daemon(self) -> Process:
        """The daemon, after `start`."""
        assert self._daemon is not None, "call start() first"
        return self._daemon

    def config(self, **sections: Any) -> dict[str, Any]:
        """Return a configuration with the defaults of a user; `sections` are merged over it.

        Another installation gets none of the keys that it doesn't know.
        """
        names: dict[str, Any] = {"translator": self.translator}
        if self.translator == "unchanged" and _knows(self.cli, "names", "trustTenant"):
            names["trustTenant"] = True
        base = {
            "apiVersion": "vsyncer.dev/v1alpha1",
            "kind": "SyncerConfig",
            "cluster": CLUSTER,
            "virtual": {"kubeconfig": str(self.folder / "virtual")},
            "host": {"kubeconfig": str(self.folder / "host"), "namespace": HOME},
            "networking": {"apiServer": {"host": "10.96.0.1"}},
            "names": names,
        }
        made = merged(base, sections)
        found = known(self.cli, made) if OTHER in os.environ else made
        return merged(found, {"sync": {"toHost": self.plugins}}) if self.plugins else found

    def start(self, *, wait: bool = True, command: Sequence[str] = (), **sections: Any) -> Process:
        """Start the daemon with this configuration, and wait until it is ready unless told not to.

        `command` stands for `syncer`.
        """
        self._daemon = Process(self.config(**sections), self.folder, command=command or self.cli)
        if wait:
            self._daemon.start()
        else:
            self._daemon.spawn()
        return self._daemon

    def restart(self) -> Process:
        """Stop the daemon and start it again with the same configuration."""
        self.daemon.stop()
        self.daemon.start()
        return self.daemon

    @property
    def lives(self) -> bool:
        """True while the daemon's process does."""
        process = self.daemon.process
        return process is not None and process.poll() is None

    def measured(self, records: Path) -> Sequence[str]:
        """Return the command `syncer` that notes long steps of its event loop in a file; see `longest_step`."""
        python = str(Path(installation()).with_name("python"))
        return (*self.environment, python, "-P", loop_steps.__file__, str(records))

    def limited(self, most: int) -> Sequence[str]:
        """Return the command `syncer` of a daemon whose container has a limit of memory, in bytes."""
        file = self.folder / "memory.max"
        file.write_text(f"{most}\n")
        python = str(Path(installation()).with_name("python"))
        return (*self.environment, python, "-P", str(Path(__file__).with_name("limited.py")), str(file))

    def output_of(self, *command: str) -> str:
        """Return the output of another command with the daemon's configuration."""
        result = replace(self.daemon, command=self.cli).run(*command)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def parked(self) -> list[Obj]:
        """Return what `syncer parked` lists."""
        found: list[Obj] = json.loads(self.output_of("parked", "-o", "json"))
        return found

    def degraded(self) -> str:
        """Return what `/readyz?verbose` says."""
        return self.daemon.readyz()[1]

    def command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of the tested installation, and return its result."""
        return subprocess.run([installation(), *words], capture_output=True, text=True, check=False, timeout=600)

    def add_plugins(self, *names: str) -> bool:
        """Have the daemon load these folders of `plugins/`; return False if the installation lacks one.

        They are installed by their entry points alone.
        """
        root = Path(installation()).parents[2] / "plugins"
        packages = [root / name for name in names]
        if not all((each / "setup.cfg").exists() for each in packages):
            return False
        self.environment = ("env", f"PYTHONPATH={python_path(packages, self.folder)}")
        self.cli = (*self.environment, *self.cli)
        return True

    # -- what it does ------------------------------------------------------------------------------

    @property
    def asked(self) -> list[Logged]:
        """The daemon's requests to the host so far, discovery left out."""
        return [each for each in self.operator.requests() if each.resource]

    def host_key(self, obj: Obj) -> Key:
        """Return where the copy of a virtual object belongs."""
        return self.names.to_host(resource_of(obj), key_of(obj))

    def copy(self, obj: Obj) -> Obj | None:
        """Return the copy of a virtual object; None: there is none."""
        return self.operator.get(resource_of(obj), str(self.host_key(obj)))

    def event_message(self, obj: Obj, reason: str) -> str:
        """Return the message of the event with this reason about a virtual object, as soon as it is there."""

        def look() -> list[str]:
            events, name = self.tenant.objects("events"), key_of(obj).name
            about = [each for each in events if each["involvedObject"]["name"] == name]
            return [each["message"] for each in about if each["reason"] == reason]

        return eventually(look, f"{reason} about {key_of(obj)}")[0]

    def copied(self, obj: Obj, *, seconds: float = PATIENCE) -> Obj:
        """Return the copy of a virtual object as soon as it is there."""
        return eventually(lambda: self.copy(obj), f"{key_of(obj)} has a copy", seconds=seconds)

    def quiet(self, *, seconds: float = PATIENCE) -> None:
        """Wait until the daemon has sent no request for a moment."""
        deadline, before, since = time.monotonic() + seconds, -1, time.monotonic()
        while time.monotonic() - since < QUIET:
            if (now := self.tenant.count() + self.operator.count()) != before:
                before, since = now, time.monotonic()
            assert time.monotonic() < deadline, f"the daemon is not quiet after {seconds:g} s"
            time.sleep(0.05)

    def serves_others(self, *, seconds: float = PATIENCE) -> float:
        """Create a ConfigMap in another virtual namespace; return the seconds until its copy is there."""
        name = f"beat-{next(iter(self._beats))}"
        beat, begun = configmap(name, namespace=OTHERS, metadata=COPIED), time.monotonic()
        self.tenant.put(beat)
        eventually(lambda: self.copy(beat), f"{OTHERS}/{name} is served meanwhile", seconds=seconds)
        assert self.lives
        return time.monotonic() - begun

    def close(self, *, show: bool = True) -> None:
        """End the daemon and the servers, and show the end of the log."""
        if self._daemon is not None:
            self._daemon.kill()
            if show:
                print(self._daemon.log_text()[-8000:])  # pytest shows it where the test has failed
        self.tenant.stop()
        self.operator.stop()


def longest_step(records: Path) -> float:
    """Return the CPU seconds of the longest step of a measured daemon's event loop so far, in which it does nothing
    else; the least that is noted, if none was longer.
    """
    whole = records.read_text().rpartition("\n")[0].splitlines()
    steps: list[float] = [json.loads(line).get("cpu", 0.0) for line in whole]
    return max([loop_steps.LEAST, *steps])


def installation() -> str:
    """Return the command `syncer` of the tested installation."""
    return str(Path(os.environ.get(OTHER, SYNCER)).absolute())


@cache
def _schema(cli: Sequence[str]) -> Obj:
    """Return the JSON schema of an installation's configuration."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [*cli, "config", "schema"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=600)
    found: Obj = json.loads(result.stdout)
    return found


def _knows(cli: Sequence[str], *path: str) -> bool:
    """Return True if an installation has an option."""
    value: Any = True
    for name in reversed(path):
        value = {name: value}
    found: Any = known(cli, value)
    for name in path:
        found = found.get(name, {})
    return found is True


def known(cli: Sequence[str], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a configuration that an installation has options for."""
    schema = _schema(tuple(cli))
    found: dict[str, Any] = _known(config, schema, schema)
    return found


def _known(value: Any, schema: Obj, root: Obj) -> Any:
    if "$ref" in schema:
        return _known(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    choices = [each for one in ("anyOf", "oneOf", "allOf") for each in schema.get(one, ())]
    if choices and "properties" not in schema:
        forms = [_known(value, each, root) for each in choices]
        return max(forms, key=lambda form: len(json.dumps(form)))
    if isinstance(value, list):
        return [_known(each, schema.get("items", {}), root) for each in value]
    if not isinstance(value, dict):
        return value
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    found = {}
    for key, each in value.items():
        if key in properties:
            found[key] = _known(each, properties[key], root)
        elif others is not False:
            found[key] = _known(each, others if isinstance(others, dict) else {}, root)
    return found
