"""API servers in processes of their own: what attacks, audits and measures takes none of their time.

All times are of `time.monotonic`, which is the same clock in all processes.
"""

import asyncio
import pickle
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from hostile_scene import DAEMON, TOKENS, Server
from kubelet_client import ReviewingServer

from hostile_chaos import lies
from kube_envtest import ApiServer, Change, Logged, Rule, User
from syncer.api import Obj

T = TypeVar("T")

#: The user of the daemon beside, which isn't attacked.
BESIDE = User("beside", ("system:masters", "system:authenticated"))
#: The beginning of the names of ConfigMaps whose way is measured.
PULSE = "pulse-"
_PULSES = re.compile(b'"(%s[^"]*)"' % PULSE.encode()).findall


@dataclass(frozen=True, slots=True)
class Drained:
    """A server's notes about the daemon since the last ones."""

    changes: list[tuple[float, Change]]
    requests: list[Logged]
    #: Bytes and objects that are stored now, and the most so far.
    objects: int
    most_stored: int
    most_objects: int


class StagedServer(ReviewingServer):
    """An API server that lies, makes again what the daemon deletes, and notes what the daemon does."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        #: What is said of the objects with this text.
        self.lies: dict[bytes, Callable[[bytes], bytes]] = {}
        #: What becomes of a deletion, by name.
        self.remade: dict[str, Obj] = {}
        #: When a ConfigMap to be measured was first sent to the daemon, and when it was stored.
        self.sent: dict[str, float] = {}
        self.stored: dict[str, float] = {}
        self._changes_of_daemon: list[tuple[float, Change]] = []
        self._sizes: dict[tuple[str, str, str], int] = {}
        self._bytes = self._most_bytes = self._most_objects = 0
        self._outages: list[Rule] = []
        self.follow(self._note)
        for user in (DAEMON.name, BESIDE.name):
            for verb in ("list", "watch"):
                self.faults.add(Rule(verb=verb, user=user, rewrite=self._falsify))

    def lie(self, text: bytes, name: str, choice: str) -> None:
        """Say something else of an object."""
        self.lies[text] = partial(lies.falsified, name=name, choice=choice)

    def be_honest(self, text: bytes | None = None) -> None:
        """End a lie, or all."""
        if text is None:
            self.lies.clear()
        else:
            self.lies.pop(text, None)

    def relist(self, resource: str) -> None:
        """Let the daemon list a resource again."""
        self.lag(self.revision, user=DAEMON.name, resource=resource, relist=True).end()

    def cut_off(self, resource: str) -> None:
        """Reset the daemon's requests for a resource until `heal`."""
        self._outages.append(self.faults.add(Rule(user=DAEMON.name, resource=resource, reset="before")))
        self.relist(resource)

    def heal(self) -> None:
        """End all outages."""
        while self._outages:
            self.faults.remove(self._outages.pop())

    def make_again(self, name: str, obj: Obj) -> None:
        """Make an object, and once more whenever it is deleted."""
        self.remade[name] = obj
        self.put(obj)

    def leave(self, name: str | None = None) -> None:
        """Make an object not again from now on, or none."""
        if name is None:
            self.remade.clear()
        else:
            self.remade.pop(name, None)

    def drain(self) -> Drained:
        """Return what was noted since the last call."""
        changes, self._changes_of_daemon = self._changes_of_daemon, []
        requests = [each for each in self.requests if each.user == DAEMON.name]
        self.requests.clear()
        return Drained(changes, requests, len(self._sizes), self._most_bytes, self._most_objects)

    def moments(self, name: str) -> tuple[float, float]:
        """Return when an object was first sent to the daemon and when it was stored; 0: not yet."""
        return self.sent.get(name, 0.0), self.stored.get(name, 0.0)

    def _falsify(self, sent: bytes) -> bytes:
        for name in _PULSES(sent):
            self.sent.setdefault(name.decode(), time.monotonic())
        for name_of_lie, lie in self.lies.items():
            if name_of_lie in sent:
                return lie(sent)
        return sent

    def _note(self, change: Change) -> None:
        now, metadata = time.monotonic(), change.obj["metadata"]
        name = metadata["name"]
        if change.user == DAEMON.name:
            self._changes_of_daemon.append((now, change))
        if change.before is None and name.startswith(PULSE):
            self.stored.setdefault(name, now)
        if change.after is None and name in self.remade:
            asyncio.get_running_loop().call_later(0.2, self._again, name)
        key = change.resource, metadata.get("namespace", ""), name
        size = 0 if change.after is None else len(msgspec.json.encode(change.after))
        self._bytes += size - self._sizes.pop(key, 0)
        if size:
            self._sizes[key] = size
        self._most_bytes = max(self._most_bytes, self._bytes)
        self._most_objects = max(self._most_objects, len(self._sizes))

    def _again(self, name: str) -> None:
        if name in self.remade:
            self.put(self.remade[name])


class _Served(Server):
    """A staged server on a thread, in its own process."""

    def __init__(self, seed: str, *, tls: bool) -> None:
        super().__init__(seed, tls=tls)
        self._server = StagedServer(seed=seed, tokens={**TOKENS, "beside-token": BESIDE})


class RemoteServer(Server):
    """A staged server in another process, which ends with this one.

    `call` takes functions of modules, methods of classes, and partials of these. Threads call it at
    the same time, each over a connection of its own.
    """

    def __init__(self, seed: str, *, tls: bool = False) -> None:
        self._seed = seed
        self._encrypts = tls
        self._address = ""
        self._local = threading.local()

    def start(self) -> None:
        """Start the process, and serve HTTP there."""
        context = get_context("spawn")
        self._life, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(self._seed, self._encrypts, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._address = self._life.recv()

    def stop(self) -> None:
        """End the process."""
        self._life.close()
        self._process.join()

    def call(self, work: Callable[[Any], T]) -> T:
        """Call `work` with the server in its process, and return its result."""
        if not hasattr(self._local, "connection"):
            self._local.connection = Client(self._address)
        connection: Connection = self._local.connection
        connection.send_bytes(pickle.dumps(work))
        problem, result = connection.recv()
        if problem:
            raise RuntimeError(f"{self._seed}: {work}: {problem}"[:2000])
        found: T = result
        return found

    def kubeconfig(self, path: str | Path, user: str = "admin") -> Path:
        """Write a kubeconfig for a user, and return its path."""
        return self.call(partial(ApiServer.kubeconfig, path=path, user=user))


def _serve(seed: str, tls: bool, life: Connection) -> None:
    """Serve until the other end of `life` is closed."""
    server = _Served(seed, tls=tls)
    server.start()
    with Listener() as listener:
        life.send(listener.address)
        threading.Thread(target=_accept, args=(listener, server), daemon=True).start()
        try:
            life.recv()
        except EOFError:
            server.stop()


def _accept(listener: Listener, server: Server) -> None:
    while True:
        threading.Thread(target=_answer, args=(listener.accept(), server), daemon=True).start()


def _answer(connection: Connection, server: Server) -> None:
    while True:
        try:
            work = connection.recv()
        except EOFError:
            return
        try:
            connection.send(("", server.call(work)))
        except Exception as error:
            connection.send((repr(error), None))
