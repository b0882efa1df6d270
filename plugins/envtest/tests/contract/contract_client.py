"""A plain client for both kinds of API server, and its answers."""

import asyncio
import io
import itertools
import os
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import msgspec
import pytest

from kube_envtest import ApiServer, ControlPlane, NotAvailable, find

Obj = dict[str, Any]
T = TypeVar("T")

#: Seconds until something that happens by itself must have happened.
PATIENCE = 120.0

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(slots=True)
class Answer:
    """A whole reply; ``json`` is None where the body is no JSON."""

    status: int
    headers: dict[str, str]
    body: bytes
    json: Any

    def __getitem__(self, path: str) -> Any:
        """Return the value at a dotted path; None where there is none."""
        found = self.json
        for step in path.split("."):
            found = found[int(step)] if isinstance(found, list) else (found or {}).get(step)
        return found


class Loop:
    """An event loop in a thread of its own, for code that is not async."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], timeout: float = 60.0) -> T:
        """Run a coroutine there and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout)

    def stop(self) -> None:
        """End the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Watching:
    """An open watch; ``next`` waits for one event."""

    def __init__(self, loop: Loop, response: aiohttp.ClientResponse) -> None:
        self._loop = loop
        self._response = response
        self.status = response.status

    def next(self, timeout: float = 15.0) -> Obj | None:
        """Return the next event; None where the server has ended the watch."""
        line = self._loop.run(asyncio.wait_for(self._response.content.readline(), timeout))
        return msgspec.json.decode(line) if line.strip() else None

    def until(self, wanted: Callable[[Obj], bool]) -> Obj:
        """Return the next event that is wanted; those before it are passed over."""
        while (event := self.next()) is not None:
            if wanted(event):
                return event
        raise AssertionError("the watch has ended")

    def rest(self) -> list[Obj]:
        """Return all events until the server ends the watch."""
        found = []
        while (event := self.next(40)) is not None:
            found.append(event)
        return found

    def close(self) -> None:
        """End it."""
        self._loop.loop.call_soon_threadsafe(self._response.close)


class Api:
    """One API server, whatever it is made of."""

    def __init__(self, loop: Loop, url: str, trust: ssl.SSLContext, tokens: dict[str, str], config: Path) -> None:
        self.kind = "inprocess"
        self.url = url
        self.tokens = tokens
        self.server: ApiServer | None = None
        self.plane: ControlPlane | None = None
        self._loop = loop
        self._trust = trust
        self._config = config
        self._session = loop.run(self._open())
        self._numbers = itertools.count()
        self._watches: list[Watching] = []

    async def _open(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(ssl=self._trust, limit=0)
        return aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))

    def request(self, method: str, path: str, body: Any = None, form: str = JSON, **options: Any) -> Answer:
        """Send a request as ``user`` (default root); ``accept`` asks for a form of the answer."""
        data = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        headers = self._headers(options, form)
        return self._loop.run(self._request(method, path, data, headers))

    def reconnect(self) -> None:
        """Forget all connections, as the server has been restarted."""
        self.close_watches()
        self._loop.run(self._session.close())
        self._session = self._loop.run(self._open())

    def begin(self, method: str, path: str, body: Any) -> Future[Answer]:
        """Send a request as root without waiting for the answer."""
        work = self._request(method, path, msgspec.json.encode(body), self._headers({}))
        return asyncio.run_coroutine_threadsafe(work, self._loop.loop)

    def call_soon(self, work: Callable[[], None]) -> None:
        """Run something in the loop of the in-process server."""

        async def run() -> None:
            work()

        self._loop.run(run())

    def _headers(self, options: dict[str, str], form: str = JSON) -> dict[str, str]:
        headers = {"Content-Type": form, "User-Agent": "contract/1"}
        if accept := options.get("accept"):
            headers["Accept"] = accept
        token = options.get("token") or self.tokens.get(options.get("user", "root"), "")
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return headers

    async def _request(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> Answer:
        stream = None if data is None else io.BytesIO(data)
        async with self._session.request(method, self.url + path, data=stream, headers=headers) as reply:
            body = await reply.read()
        content = msgspec.json.decode(body) if body.startswith(b"{") else None
        return Answer(reply.status, {key.lower(): value for key, value in reply.headers.items()}, body, content)

    def get(self, path: str, **options: Any) -> Answer:
        """GET."""
        return self.request("GET", path, **options)

    def post(self, path: str, body: Any, **options: Any) -> Answer:
        """POST."""
        return self.request("POST", path, body, **options)

    def put(self, path: str, body: Any, **options: Any) -> Answer:
        """PUT."""
        return self.request("PUT", path, body, **options)

    def patch(self, path: str, body: Any, form: str = MERGE, **options: Any) -> Answer:
        """PATCH."""
        return self.request("PATCH", path, body, form, **options)

    def delete(self, path: str, body: Any = None, **options: Any) -> Answer:
        """DELETE."""
        return self.request("DELETE", path, body, **options)

    def make(self, path: str, body: Any, **options: Any) -> Obj:
        """POST what must succeed; returns the object."""
        answer = self.post(path, body, **options)
        assert answer.status == 201, answer.body
        made: Obj = answer.json
        return made

    def watch(self, path: str, **options: Any) -> Watching:
        """Open a watch."""
        mark = "&" if "?" in path else "?"
        url = f"{self.url}{path}{mark}watch=true"
        response = self._loop.run(self._session_get(url, self._headers(options)))
        self._watches.append(found := Watching(self._loop, response))
        return found

    async def _session_get(self, url: str, headers: dict[str, str]) -> aiohttp.ClientResponse:
        return await self._session.get(url, headers=headers)

    def eventually(self, probe: Callable[[], Any], what: str = "the condition") -> Any:
        """Return the first true value of ``probe``; fails where none comes."""
        deadline = time.monotonic() + PATIENCE
        while not (found := probe()):
            assert time.monotonic() < deadline, f"{what} did not come true in {PATIENCE:g} s"
            time.sleep(0.05)
        return found

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as root."""
        command = kubectl_command()
        environment = {
            **os.environ,
            "KUBECONFIG": str(self._config),
            "KUBECACHEDIR": str(self._config.parent / "cache"),
        }
        done = subprocess.run(
            [*command, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=environment,
            timeout=PATIENCE,
            check=False,
        )
        if check:
            assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done

    def kubectl_process(self, *arguments: str) -> subprocess.Popen[str]:
        """Start kubectl as root, its output in a pipe."""
        environment = {**os.environ, "KUBECONFIG": str(self._config)}
        command = [*kubectl_command(), *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    def name(self, prefix: str = "n") -> str:
        """Return a name that no other test of this session has."""
        return f"{prefix}-{next(self._numbers)}"

    def close_watches(self) -> None:
        """End what a test has left open."""
        for watch in self._watches:
            watch.close()
        self._watches.clear()

    def close(self) -> None:
        """End all connections."""
        self.close_watches()
        self._loop.run(self._session.close())


def kubectl_command() -> tuple[str, ...]:
    """Return how kubectl is called; the test is skipped where there is none."""
    try:
        command = find().kubectl
    except NotAvailable as problem:
        pytest.skip(f"no kubectl: {problem}")
    if not command:
        pytest.skip("no kubectl with these programs")
    return command


def maps(ns: str, name: str = "") -> str:
    """Return the path of the ConfigMaps of a namespace, or of one of them."""
    return f"/api/v1/namespaces/{ns}/configmaps" + (f"/{name}" if name else "")


def config_map(name: str, **data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
