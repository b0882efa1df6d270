"""The in-process API server on its own thread, for tests and clients that block."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from kube_envtest.apiserver.contents import Key, Obj, Resource
from kube_envtest.apiserver.server import ApiServer

T = TypeVar("T")


class BackgroundApiServer:
    """An :class:`ApiServer` that serves HTTP from a thread of its own; takes the same options.

    ::

        with BackgroundApiServer() as server:
            server.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
            api = kubernetes.config.new_client_from_config(str(server.kubeconfig(tmp_path / "config")))

    Objects are read and put by the methods here; for everything else see :meth:`call`.
    """

    def __init__(self, *, tls: bool = False, **options: Any) -> None:
        self._server = ApiServer(**options)
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kube-envtest-apiserver", daemon=True)

    @property
    def url(self) -> str:
        """The server's address; ``""`` before the start."""
        return self._server.url

    @property
    def certificate(self) -> str:
        """The CA certificate (PEM) if the server serves HTTPS, else ``""``."""
        return self._server.certificate

    def start(self) -> None:
        """Serve HTTP, or HTTPS if ``tls`` was given, on a free loopback port.

        Raises:
            RuntimeError: It was started before; a server starts only once.
        """
        self._thread.start()
        self._run(self._server.start(tls=self._tls))

    def move(self) -> None:
        """Serve at another port, with ``tls`` by another certificate authority; every connection is closed."""
        self._run(self._server.stop())
        self._run(self._server.start(tls=self._tls))

    def stop(self) -> None:
        """Close every connection, and stop the thread."""
        self._run(self._server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def call(self, work: Callable[[ApiServer], T]) -> T:
        """Call ``work`` with the server on the server's thread, and return its result.

        This gives access to everything that an :class:`ApiServer` can do, such as ``call(lambda
        server: server.faults.add(Rule(verb="create", status=500)))``. Safe only there.
        """

        async def run() -> T:
            return work(self._server)

        return self._run(run())

    def kubeconfig(self, path: str | Path, user: str = "admin") -> Path:
        """Write a kubeconfig for a user in ``tokens``, and return its path."""
        return self._server.kubeconfig(path, user)

    def objects(self, resource: str | Resource, namespace: str = "") -> list[Obj]:
        """Return copies of the objects of a resource (``"pods"``, ``"jobs.batch"``), in a namespace
        or in all.
        """
        return self.call(partial(ApiServer.objects, resource=resource, namespace=namespace))

    def get(self, resource: str | Resource, key: Key) -> Obj | None:
        """Return a copy of an object, ``get("pods", "shop/web")``, or None."""
        return self.call(partial(ApiServer.get, resource=resource, key=key))

    def put(self, obj: Obj) -> Obj:
        """Create or replace an object with its status, and its namespace if that is missing; return
        a copy.
        """
        return self.call(partial(ApiServer.put, obj=obj))

    def delete(self, resource: str | Resource, key: Key) -> None:
        """Delete an object at once, whatever its grace period; finalizers still hold it."""
        self.call(partial(ApiServer.delete, resource=resource, key=key))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
