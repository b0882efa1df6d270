"""What the operator shares between the host and a tenant, on real API servers, with the rights that are printed."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from api import Api, eventually
from scene import OWN_ADDRESSES, Scene

from hack.bench.daemon import Process
from syncer.api import Key, Obj, annotations_of, dig, labels_of
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, endpointslice, pod_mounting, secret, service

pytestmark = pytest.mark.controlplane

SERVICE, SLICE = "Service", "EndpointSlice"


@pytest.fixture
def infra(scene: Scene) -> str:
    """A namespace of the host's own."""
    name = f"infra-{scene.name}"
    scene.host.make_namespace(name)
    return name


@pytest.fixture
def start(scene: Scene) -> Iterator[Callable[..., Process]]:
    """Start a daemon with a user of its own, who may do what `syncer rbac` prints for these sections."""

    def started(sync: Mapping[str, Any]) -> Process:
        scene.must_be_content()
        for daemon in scene.daemons:
            daemon.kill()
        running = scene.daemon(scene.config(user="daemon", sync=merged(OWN_ADDRESSES, dict(sync))))
        scene.grant(running, "daemon")
        running.start()
        return running

    yield started
    scene.must_be_content()


def host_service(scene: Scene, infra: str, name: str, **spec: Any) -> Obj:
    """Create a Service of the host's own; return it with the address that the host gives it."""
    made = service(name, namespace=infra)
    return scene.host.create(merged(made, {"spec": {"selector": None, **spec}}))


def slice_of(name: str, namespace: str, *addresses: str, labels: Mapping[str, str] | None = None) -> Obj:
    """Return the slice that a controller makes for a Service, which repeats the labels of that."""
    made = endpointslice(f"{name}-1", *addresses, service=name, namespace=namespace)
    return merged(made, {"metadata": {"labels": dict(labels or {})}})


def endpoints(api: Api, key: Key) -> list[tuple[str, bool]]:
    """Return the addresses of a slice, each with whether it is ready."""
    found = api.get(SLICE, key) or {}
    return [(each["addresses"][0], dig(each, "conditions.ready")) for each in found.get("endpoints") or ()]


def leads(api: Api, key: Key, *wanted: tuple[str, bool]) -> None:
    eventually(lambda: endpoints(api, key) == list(wanted), f"{key} leads to {wanted}")


def test_listed_objects_of_the_host_are_used_and_follow(
    scene: Scene, infra: str, start: Callable[..., Process]
) -> None:
    shop = scene.namespace()
    scene.host.create(configmap("settings", {"color": "red"}, namespace=infra))
    scene.host.create(secret("login", {"password": "cod"}, namespace=infra))
    scene.host.create(secret("unlisted", namespace=infra))
    address = host_service(scene, infra, "db")["spec"]["clusterIP"]
    names = {"configMaps": "settings", "secrets": "login", "services": "db"}
    sections = {
        kind: {"enabled": True, "mappings": {"byName": {f"{infra}/{name}": f"{shop}/{name}"}}}
        for kind, name in names.items()
    }
    start({"fromHost": sections})
    scene.virtual.create(pod_mounting("web", configmap="settings", secret="login", namespace=shop))
    assert scene.copied("ConfigMap", Key(shop, "settings"))["data"] == {"color": "red"}
    scene.copied("Secret", Key(shop, "login"))
    assert scene.virtual.get("Secret", Key(shop, "unlisted")) is None
    leads(scene.virtual, Key(shop, "db"), (address, False))

    scene.host.patch("ConfigMap", Key(infra, "settings"), {"data": {"color": "blue"}})
    scene.copied("ConfigMap", Key(shop, "settings"), "data.color", "blue")
    scene.virtual.patch("ConfigMap", Key(shop, "settings"), {"data": {"color": "forged"}})
    scene.reported("ConfigMap", Key(shop, "settings"), "data.color", "blue")
    scene.host.create(slice_of("db", infra, "192.0.2.1"))
    leads(scene.virtual, Key(shop, "db"), (address, True))
    scene.host.delete("ConfigMap", Key(infra, "settings"))
    eventually(lambda: scene.virtual.get("ConfigMap", Key(shop, "settings")) is None, "it goes with the host's")
    scene.gone("ConfigMap", Key(shop, "settings"))

    start({"fromHost": {kind: {"enabled": True} for kind in names}})
    eventually(lambda: scene.virtual.get(SERVICE, Key(shop, "db")) is None, "it goes with its entry")
    eventually(lambda: scene.virtual.get(SLICE, Key(shop, "db")) is None, "so does its slice")
    assert scene.host.get(SERVICE, Key(infra, "db"))


def test_service_of_the_tenant_appears_under_a_name_on_the_host_and_follows(
    scene: Scene, infra: str, start: Callable[..., Process]
) -> None:
    shop = scene.namespace()
    place = Key(infra, "shop-web")
    options = {"enabled": True, "namespaces": [infra]}
    published = {**options, "mappings": {"byName": {f"{shop}/web": str(place)}}}
    start({"toHost": {"publishedServices": published}})
    scene.virtual.create(service("web", namespace=shop))
    copy = scene.copied(SERVICE, Key(shop, "web"))
    address = copy["spec"]["clusterIP"]
    leads(scene.host, place, (address, False))
    found = scene.host.get(SERVICE, place)
    assert found
    assert (found["spec"]["clusterIP"], found["spec"].get("selector")) == ("None", None)

    name = copy["metadata"]["name"]
    of_copy = slice_of(name, scene.host_namespace, "192.0.2.1", labels=labels_of(copy))
    scene.host.create(of_copy)
    leads(scene.host, place, (address, True))
    scene.host.patch(SLICE, Key(scene.host_namespace, f"{name}-1"), {"endpoints": []})
    leads(scene.host, place, (address, False))
    scene.virtual.patch(SERVICE, Key(shop, "web"), {"spec": {"ports": [{"name": "other", "port": 9}]}})
    eventually(lambda: dig(scene.host.get(SERVICE, place) or {}, "spec.ports")[0]["port"] == 9, "ports follow")
    scene.host.delete(SERVICE, place)
    eventually(lambda: scene.host.get(SERVICE, place), "it is made again")
    leads(scene.host, place, (address, False))

    paused = {"metadata": {"annotations": {"vsyncer.dev/paused": "true"}}}
    scene.virtual.patch(SERVICE, Key(shop, "web"), paused)
    start({"toHost": {"publishedServices": options}})
    eventually(lambda: scene.host.get(SERVICE, place) is None, "it goes with its entry, though its tenant pauses it")
    eventually(lambda: scene.host.get(SLICE, place) is None, "the host removes its slice with it")
    assert scene.copy(SERVICE, Key(shop, "web"))


def test_uninstall_takes_published_services_along(scene: Scene, infra: str, start: Callable[..., Process]) -> None:
    shop = scene.namespace()
    published = {"enabled": True, "namespaces": [infra], "mappings": {"byName": {f"{shop}/*": f"{infra}/shop-*"}}}
    running = start({"toHost": {"publishedServices": published}})
    host_service(scene, infra, "own")
    scene.virtual.create(service("web", namespace=shop, spec={"clusterIP": "None"}))
    eventually(lambda: scene.host.get(SERVICE, Key(infra, "shop-web")), "it appears")
    assert annotations_of(scene.host.get(SERVICE, Key(infra, "shop-web")) or {})["vsyncer.dev/virtual-name"] == "web"
    running.kill()
    admin = scene.daemon(scene.config(sync=merged(OWN_ADDRESSES, {"toHost": {"publishedServices": published}})))
    done = admin.run("uninstall", "--yes", seconds=120)
    assert done.returncode == 0, done
    assert [each["metadata"]["name"] for each in scene.host.list(SERVICE, namespace=infra)] == ["own"]
