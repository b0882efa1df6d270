"""Kubeconfigs in Secrets that lead to hosts which answer slowly, with too much, or never end; others notice nothing."""

import asyncio
import base64
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator

import pytest
import trustme
import yaml
from cache_scene import CacheScene, now, until
from fleet_scene import PATIENCE, PODS, SECRETS, eventually, leaving_nothing, running
from fleet_scene import Site as Fleet
from remote_scene import REMOTES, Scene, login, remote

from kube_envtest import Rule
from syncer.api import Key, Obj
from syncer.multicluster import (
    CacheTooLarge,
    ClusterCache,
    ClusterCacheOptions,
    ClusterOptions,
    ClusterRegistry,
    Controller,
    Manager,
    Reason,
    RemoteClusters,
    Request,
    SecretsProvider,
    StackState,
    State,
)
from syncer.testing.in_process import ApiServer
from syncer.testing.objects import pod, secret

Send = Callable[[bytes], None]
MEGABYTE = 1 << 20
#: What may be on its way, in buffers of both ends, beside what is read.
IN_TRANSIT = 64 * MEGABYTE


class Host:
    """A server with a certificate of its own, on threads, that answers every request in the same odd way.

    ``most`` is the most bytes that somebody took of an answer.
    """

    def __init__(self, reply: "Reply") -> None:
        self._reply, self._authority = reply, trustme.CA()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert("127.0.0.1").configure_cert(self._context)
        self._ended = threading.Event()
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.asked = self.most = 0

    @contextlib.contextmanager
    def running(self) -> Iterator[str]:
        """Run it; yield a kubeconfig."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            self._start(self._accept, server)
            try:
                yield self._kubeconfig(server.getsockname()[1])
            finally:
                self._ended.set()
                for each in (server, *self._open):
                    with contextlib.suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)
                for thread in self._threads:
                    thread.join(PATIENCE)

    def _kubeconfig(self, port: int) -> str:
        ca = base64.b64encode(self._authority.cert_pem.bytes()).decode()
        cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": ca}
        return yaml.safe_dump(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "c", "user": {"token": "t"}}],
            }
        )

    def _start(self, work: Callable[[socket.socket], None], given: socket.socket) -> None:
        thread = threading.Thread(target=work, args=[given], daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while not self._ended.is_set():
                connection, _ = server.accept()
                self._open.append(connection)
                self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with (
            connection,
            contextlib.suppress(OSError),
            self._context.wrap_socket(connection, server_side=True) as stream,
        ):
            self._open.append(stream)
            while b"\r\n\r\n" not in stream.recv(1 << 16):
                pass
            self.asked += 1
            taken = 0

            def send(data: bytes) -> None:
                nonlocal taken
                stream.sendall(data)
                taken += len(data)
                self.most = max(self.most, taken)

            self._reply(send, self._ended)


Reply = Callable[[Send, threading.Event], None]


def gigabytes(send: Send, ended: threading.Event) -> None:
    """Answer with a JSON text of 2 GB."""
    send(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2147483648\r\n\r\n{"a": "')
    for _ in range(2048):
        send(b"x" * MEGABYTE)


def endless_chunks(send: Send, ended: threading.Event) -> None:
    """Answer with chunks that never end."""
    send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not ended.is_set():
        send(b"100000\r\n" + b"x" * MEGABYTE + b"\r\n")


def endless_head(send: Send, ended: threading.Event) -> None:
    """Answer with headers that never end."""
    send(b"HTTP/1.1 200 OK\r\n")
    while not ended.is_set():
        send(b"".join(b"X-%d: %s\r\n" % (number, b"x" * 1000) for number in range(1000)))


def drops(send: Send, ended: threading.Event) -> None:
    """Answer with a byte at a time, for ever."""
    send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
    while not ended.wait(0.05):
        send(b" ")


def silence(send: Send, ended: threading.Event) -> None:
    """Answer nothing."""
    ended.wait()


def answer(send: Send, body: bytes) -> None:
    send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    send(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))


def no_json(send: Send, ended: threading.Event) -> None:
    """Answer with a text that isn't JSON."""
    answer(send, b"nope")


def no_object(send: Send, ended: threading.Event) -> None:
    """Answer with JSON that is no object."""
    answer(send, b"[]")


def no_resources(send: Send, ended: threading.Event) -> None:
    """Answer with a number in place of the resources."""
    answer(send, b'{"resources": 5}')


HOSTS: list[tuple[Reply, str]] = [
    (gigabytes, "the reply is larger than 16 MiB"),
    (endless_chunks, "the reply is larger than 16 MiB"),
    (endless_head, "the head or trailer of the reply is larger than 256 KiB"),
    (drops, "cluster fleet/odd: get / from the API: no reply in time"),
    (silence, "cluster fleet/odd: get / from the API: no reply in time"),
    (no_json, "cluster fleet/odd can't be discovered"),
    (no_object, "cluster fleet/odd can't be discovered: /api/v1 is no JSON object"),
    (no_resources, "cluster fleet/odd serves no nodes"),
]
LABEL = {"labels": {"sigs.k8s.io/multicluster-runtime-kubeconfig": "true"}}


@pytest.mark.parametrize(("reply", "expected"), HOSTS, ids=[reply.__name__ for reply, _ in HOSTS])
def test_host_of_a_secret_that_answers_oddly_is_unreachable_and_read_no_further_than_a_reply_may_be(
    reply: Reply, expected: str, tmp_path: object
) -> None:
    async def main(odd: str) -> None:
        good = ApiServer()
        await good.start(tls=True)
        good.put(pod("a"))
        management = Fleet("management")
        text = good.kubeconfig(f"{tmp_path}/good").read_text()
        for name, kubeconfig in (("odd", odd), ("good", text)):
            management.server.put(secret(name, {"kubeconfig": kubeconfig}, namespace="fleet", metadata=LABEL))
        # The odd one has time enough to send all of it, unless it is to be ended by the time.
        seconds = 0.5 if reply in (drops, silence) else 60.0
        provider = SecretsProvider(management.cluster, {"fleet": []}, environ={})
        options = ClusterCacheOptions(user_agent="test", probe_timeout=seconds, max_retry_delay=1.0)
        cache = ClusterCache([provider], options, environ={})
        async with running(management, cache):
            await eventually(lambda: cache.get_status("fleet/odd").reason == Reason.UNREACHABLE)
            assert expected in cache.get_status("fleet/odd").message
            await eventually(lambda: host.asked > 1, "it is tried again")
            await eventually(lambda: cache.get_status("fleet/good").state is State.CONNECTED)
            assert await cache.get_client("fleet/good").list(PODS)
        await good.stop()

    host = Host(reply)
    with host.running() as kubeconfig:
        asyncio.run(leaving_nothing(main(kubeconfig)))
    assert host.most < IN_TRANSIT


@pytest.mark.parametrize(
    ("reply", "reason", "message"),
    [
        (gigabytes, "TooLarge", "is larger than"),
        (endless_chunks, "TooLarge", "is larger than"),
        (endless_head, "Unreachable", "is larger than"),
        (no_json, "Unreachable", "cluster odd: its version can't be read"),
        (no_object, "Unreachable", "its version can't be read: /version is no JSON object"),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_object_reports_a_host_that_answers_oddly_and_others_run(
    reply: Reply, reason: str, message: str, tmp_path: object
) -> None:
    async def main(odd: str) -> None:
        good = ApiServer()
        await good.start(tls=True)
        scene = Scene()
        registry = ClusterRegistry(scene.manage.cluster, factories=[scene._pods])
        remotes = RemoteClusters(
            registry, REMOTES, secrets=scene.manage.cluster.informer(SECRETS, namespace="logins"), environ={}
        )
        manager = Manager()
        manager.add(remotes.controller)
        async with registry, running(manager):
            scene.manage.server.put(login(odd, secret_name="odd"))
            scene.manage.server.put(login(good.kubeconfig(f"{tmp_path}/good").read_text()))
            scene.manage.server.put(remote("odd", "odd"))
            scene.manage.server.put(remote("shop"))
            await eventually(lambda: scene.ready() == ("True", "Running"))
            await eventually(lambda: scene.ready("odd") == ("False", reason))
            assert message in scene.message("odd")
            await eventually(lambda: host.asked > 1, "it is tried again")
            assert registry.status()["shop"].state is StackState.RUNNING
        await good.stop()

    host = Host(reply)
    with host.running() as kubeconfig:
        asyncio.run(leaving_nothing(main(kubeconfig)))
    assert host.most < IN_TRANSIT


async def test_object_reports_a_host_that_never_answers() -> None:
    scene = Scene()
    scene.sites["us"].server.faults.add(Rule(latency=1e6))
    scene.manage.server.put(login("us", secret_name="slow"))
    scene.manage.server.put(remote("slow", "slow"))
    scene.manage.server.put(remote("shop"))
    async with scene.process():
        await eventually(lambda: scene.ready() == ("True", "Running"))
        assert now() < 5
        await eventually(lambda: scene.ready("slow") == ("False", "Unreachable"))
        assert "cluster slow" in scene.message("slow")


async def test_object_reports_a_host_that_never_lists() -> None:
    scene = Scene()
    scene.sites["us"].server.faults.add(Rule(verb="list", resource="pods", latency=1e6))
    scene.manage.server.put(login("us", secret_name="slow"))
    scene.manage.server.put(remote("slow", "slow"))
    scene.manage.server.put(remote("shop"))
    async with scene.process():
        await eventually(lambda: scene.ready() == ("True", "Running"))
        await eventually(lambda: scene.ready("slow") == ("False", "CannotStart"))
        assert "caches aren't filled after 10 s" in scene.message("slow")


async def test_names_that_lead_elsewhere_lead_nowhere() -> None:
    scene = Scene()
    scene.manage.server.put(remote("up", "../login"))
    scene.manage.server.put(remote("dots", ".."))
    scene.manage.server.put(remote("away", namespace="logins/../logins"))
    odd = remote("key")
    odd["spec"]["kubeConfig"]["secretRef"]["key"] = "../kubeconfig"
    scene.manage.server.put(odd)
    async with scene.process() as registry:
        await eventually(lambda: scene.ready("up") == ("False", "KubeconfigMissing"))
        assert scene.message("up") == "there is no Secret logins/../login"
        await eventually(lambda: scene.ready("dots") == ("False", "KubeconfigMissing"))
        await eventually(lambda: scene.ready("away") == ("False", "Refused"))
        await eventually(lambda: scene.ready("key") == ("False", "KeyMissing"))
        assert registry.status() == {}
        assert scene.opened == 0


# -- more objects than are to be kept -----------------------------------------------------------------------------

LIMIT = 200_000


def big(number: int) -> Obj:
    return pod(f"p{number:04}", metadata={"annotations": {"text": "x" * 2000}})


async def test_cluster_of_too_many_objects_is_not_connected_until_there_are_fewer() -> None:
    scene = CacheScene("a", "b", clusters=ClusterOptions(max_bytes=LIMIT))
    for number in range(3000):
        scene["a"].server.put(big(number))
    scene["b"].server.put(pod("b"))
    requests: list[Request] = []

    async def reconcile(request: Request) -> None:
        requests.append(request)

    controller = Controller(reconcile)
    controller.for_every_cluster(lambda cluster: controller.watch_object(cluster, PODS))
    scene.cache.add(controller)
    async with scene.running() as cache, running(controller):
        await eventually(lambda: cache.get_status("a").reason == Reason.TOO_LARGE)
        assert cache.get_status("a").message == "the objects of cluster a take more than 0.2 MB (max_bytes)"
        lists = [one for one in scene["a"].server.requests if one.verb == "list"]
        assert len(lists) == 1, "no further page is asked for"
        assert await cache.get_client("b").list(PODS)
        assert "a" not in controller.clusters, "its caches are free"
        await until(300)
        assert len([one for one in scene["a"].server.requests if one.verb == "list"]) <= 6
        for number in range(10, 3000):
            scene["a"].server.delete("pods", Key("shop", f"p{number:04}"))
        requests.clear()
        await eventually(lambda: controller.is_ready("a"))
        await eventually(lambda: len(requests) == 10)
        assert cache.get_status("a").state is State.CONNECTED


async def test_sticky_watch_restarts_after_too_many_objects_ended_its_cluster() -> None:
    scene = CacheScene("a", clusters=ClusterOptions(max_bytes=LIMIT))
    seen: list[str] = []
    async with scene.running() as cache:
        cache.watch("a", "pods", PODS, lambda key, obj: seen.append(key.name), sticky=True)
        scene["a"].server.put(pod("first"))
        await eventually(lambda: seen == ["first"])
        for number in range(200):
            scene["a"].server.put(big(number))
        await eventually(lambda: cache.get_status("a").reason == Reason.TOO_LARGE)
        for number in range(200):
            scene["a"].server.delete("pods", Key("shop", f"p{number:04}"))
        seen.clear()
        await eventually(lambda: seen)
        assert seen == ["first"]
        assert cache.get_client("a")


async def test_cluster_that_is_run_by_itself_raises_if_it_has_too_many_objects() -> None:
    site = Fleet("eu", options=ClusterOptions(max_bytes=LIMIT))
    site.cluster.informer(PODS)
    running_ = asyncio.create_task(site.cluster.run())
    await asyncio.sleep(1)
    for number in range(200):
        site.server.put(big(number))
    with pytest.raises(CacheTooLarge, match="the objects of cluster eu take more than"):
        await running_
    assert not site.cluster.is_running


async def test_memory_of_caches_that_are_forgotten_is_free_again() -> None:
    site = Fleet("eu", *(big(number) for number in range(40)), options=ClusterOptions(max_bytes=LIMIT))
    for _ in range(5):
        informer = site.cluster.informer(PODS)
        async with running(site):
            await informer.filled()
        site.cluster.forget(informer)


async def test_controllers_that_end_by_themselves_are_seen_and_started_again() -> None:
    scene = Scene()
    scene.options = ClusterOptions(max_bytes=LIMIT)
    scene.manage.server.put(remote("shop"))
    async with scene.process() as registry:
        await eventually(lambda: scene.ready() == ("True", "Running"))
        for number in range(200):
            scene.sites["eu"].server.put(big(number))
        await eventually(lambda: scene.ready() == ("False", "TooLarge"))
        assert "take more than 0.2 MB" in scene.message()
        assert registry.status() == {}
        for number in range(200):
            scene.sites["eu"].server.delete("pods", Key("shop", f"p{number:04}"))
        await eventually(lambda: scene.ready() == ("True", "Running"))
