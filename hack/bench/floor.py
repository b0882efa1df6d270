"""Copy the objects of the load with the least work of any syncer: the floor for its figures.

It uses the daemon's own transport and event loop. For an object it reads one event, sends one POST,
PATCH or DELETE with the bytes of the contents, and drops one echo. For a Pod it sends the least
writes of a life: the copy, the binding, the status that is Ready, and two deletions. It has no
store, queue, comparison, check, retry, log or metrics, and ends when anything goes wrong. It reads
the daemon's configuration file, and `hack/bench/sync --against floor` runs it in turns with the
daemon.
"""

import argparse
import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import msgspec
import uvloop
import yaml

from hack.bench.phases import HOST_NAMESPACE, MARK, NAMESPACE
from hack.kubelet import is_ready
from syncer.api import Key, Obj, Resource, Side, dig, is_deleting
from syncer.cli.run import spare_memory
from syncer.clusters import api_requests, codec
from syncer.clusters.client import SideClient
from syncer.clusters.codec import WatchEvent
from syncer.clusters.connection import ConnectionSettings, connect
from syncer.clusters.transport import HttpRequest
from syncer.observe.server import reply, routes, serve
from syncer.resources.kinds import CONFIG_MAPS, PODS

LABELS = dict([MARK.split("=")])
VIRTUAL_NAME = "vsyncer.dev/virtual-name"
#: Seconds after which the API servers end the watches: longer than a round.
WATCH_SECONDS = 24 * 3600
#: The volume with a token that admission adds to Pods; the host has no such token.
TOKEN_VOLUME = "kube-api-access-"

#: Handles an event of a watch.
Handle = Callable[[WatchEvent], None]


class _Metadata(msgspec.Struct, gc=False):
    name: str
    annotations: dict[str, str]


class _ConfigMap(msgspec.Struct, gc=False):
    metadata: _Metadata
    data: msgspec.Raw


_decode_config_map = msgspec.json.Decoder(_ConfigMap).decode


class Floor:
    """Copies ConfigMaps and Pods of the load's namespace, by the names of the virtual objects."""

    def __init__(self, virtual: SideClient, host: SideClient) -> None:
        self.virtual = virtual
        self.host = host
        #: The requests so far, by method.
        self.sent = Counter[str]()
        #: The requests without a response.
        self.open_requests = 0
        self._requests = asyncio.TaskGroup()

    async def run(self, ready: Callable[[], None]) -> None:
        """Copy what changes from now on, until cancelled.

        `ready` is called when no change is missed any more.

        Raises:
            ExceptionGroup: A request was refused, or a watch has ended.
        """
        virtual = (await self.virtual.first(CONFIG_MAPS, 1)).resource_version
        host = (await self.host.first(CONFIG_MAPS, 1)).resource_version
        ready()
        async with self._requests as group:
            group.create_task(self._watch(self.virtual, CONFIG_MAPS, virtual, self._see_config_map))
            group.create_task(self._watch(self.virtual, PODS, virtual, self._see_pod))
            group.create_task(self._watch(self.host, CONFIG_MAPS, host, self._drop))
            group.create_task(self._watch(self.host, PODS, host, self._see_copy_of_pod))

    async def _watch(
        self, cluster: SideClient, resource: Resource, version: str, handle: Handle
    ) -> None:
        is_host = cluster is self.host
        watch = cluster.watch(
            resource,
            namespace=HOST_NAMESPACE if is_host else NAMESPACE,
            selector=MARK if is_host else "",
            resource_version=version,
            timeout_seconds=WATCH_SECONDS,
        )
        async with watch as events:
            async for batch in events:
                for event in batch:
                    handle(event)
        raise RuntimeError(
            f"the {cluster.side} API server has ended the watch of {resource.plural}"
        )

    def _send(self, cluster: SideClient, request: HttpRequest) -> None:
        self._requests.create_task(self._exchange(cluster, request))

    async def _exchange(self, cluster: SideClient, request: HttpRequest) -> None:
        self.sent[request.method] += 1
        self.open_requests += 1
        response = await cluster.transport.send(request)
        self.open_requests -= 1
        if response.status >= 300:
            what = f"{request.method} {request.path} of the {cluster.side} cluster"
            raise RuntimeError(
                f"{what} got status {response.status}: {response.body.decode(errors='replace')}"
            )

    # -- ConfigMaps --------------------------------------------------------------------------------

    def _see_config_map(self, event: WatchEvent) -> None:
        if event.type == "DELETED":
            name = codec.head(event.object).key.name
            self._send(self.host, api_requests.delete(CONFIG_MAPS, Key(HOST_NAMESPACE, name)))
            return
        if event.type not in ("ADDED", "MODIFIED"):
            return
        found = _decode_config_map(event.object)
        name = found.metadata.name
        key = Key(HOST_NAMESPACE, name)
        annotations = {**found.metadata.annotations, VIRTUAL_NAME: name}
        if event.type == "MODIFIED":
            change = {"metadata": {"annotations": annotations}, "data": found.data}
            self._send(self.host, api_requests.patch(CONFIG_MAPS, key, change))
            return
        metadata = {"name": name, "labels": LABELS, "annotations": annotations}
        copy = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": found.data}
        self._send(self.host, api_requests.create(CONFIG_MAPS, key, copy))

    def _drop(self, event: WatchEvent) -> None:
        if event.type != "BOOKMARK":
            codec.head(event.object)

    # -- Pods --------------------------------------------------------------------------------------

    def _see_pod(self, event: WatchEvent) -> None:
        if event.type not in ("ADDED", "MODIFIED"):
            return
        pod = codec.lean(event.object)
        key = Key(HOST_NAMESPACE, pod["metadata"]["name"])
        if event.type == "ADDED":
            self._send(self.host, api_requests.create(PODS, key, copy_of_pod(pod)))
        elif pod["metadata"].get(
            "deletionGracePeriodSeconds"
        ):  # 0 when it goes, by our own request
            self._send(self.host, api_requests.delete(PODS, key))

    def _see_copy_of_pod(self, event: WatchEvent) -> None:
        if event.type == "DELETED":
            gone = codec.head(event.object)
            key = Key(NAMESPACE, gone.key.name)
            self._send(self.virtual, api_requests.delete(PODS, key, grace=0))
        elif event.type == "MODIFIED":
            self._report(codec.lean(event.object))

    def _report(self, pod: Obj) -> None:
        """Send the node once, when the copy is bound, and the status once, when it is Ready."""
        key = Key(NAMESPACE, pod["metadata"]["name"])
        if is_deleting(pod):
            return
        if is_ready(pod):
            change = {"status": pod["status"]}
            self._send(self.virtual, api_requests.patch(PODS, key, change, "status"))
        elif dig(pod, "status.phase") == "Pending" and dig(pod, "spec.nodeName"):
            binding = binding_of(key, pod["spec"]["nodeName"])
            self._send(self.virtual, api_requests.create(PODS, key, binding, "binding"))


def copy_of_pod(pod: Obj) -> Obj:
    """Return the copy of a Pod of the load, without the token of its service account."""
    name = pod["metadata"]["name"]
    annotations = {**pod["metadata"]["annotations"], VIRTUAL_NAME: name}
    spec = dict(pod["spec"])
    for field in ("serviceAccount", "serviceAccountName"):
        spec.pop(field, None)
    spec["automountServiceAccountToken"] = False
    spec["volumes"] = _without_token(spec.get("volumes") or ())
    spec["containers"] = [
        {**container, "volumeMounts": _without_token(container.get("volumeMounts") or ())}
        for container in spec["containers"]
    ]
    metadata = {"name": name, "labels": LABELS, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _without_token(named: Iterable[Obj]) -> list[Obj]:
    return [one for one in named if not one["name"].startswith(TOKEN_VOLUME)]


def binding_of(key: Key, node: str) -> Obj:
    """Return the binding of a Pod to a node."""
    metadata = {"name": key.name, "namespace": key.namespace}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def metrics(floor: Floor) -> str:
    """Return the metrics of a daemon that the bench reads."""
    lines = [f"workqueue_depth {floor.open_requests}"]
    for method, number in floor.sent.items():
        lines.append(f'rest_client_requests_total{{method="{method}"}} {number}')
    return "\n".join(lines)


def serve_pages(floor: Floor, config: Any) -> None:
    """Serve the metrics and the readiness, at the addresses of the configuration."""

    def page(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        return reply(start_response, "200 OK", metrics(floor))

    for section, path in (("metrics", "/metrics"), ("health", "/readyz")):
        setting = f"{section}.address"
        serve(config[section]["address"], routes({path: page}), setting=setting)


async def copy(config: Any) -> None:
    """Copy between the clusters of a configuration."""

    def client(side: Side) -> SideClient:
        settings = ConnectionSettings(config[side]["kubeconfig"])
        return connect(settings, side=side, environ={})

    floor = Floor(client(Side.VIRTUAL), client(Side.HOST))
    await floor.run(lambda: serve_pages(floor, config))


def main() -> None:
    """Copy until a signal ends it."""
    parser = argparse.ArgumentParser(prog="hack/bench/floor", description=__doc__)
    parser.add_argument(
        "--config", type=Path, required=True, help="the daemon's configuration file"
    )
    config = yaml.safe_load(parser.parse_args().config.read_text())
    spare_memory()
    uvloop.run(copy(config))


if __name__ == "__main__":
    main()
