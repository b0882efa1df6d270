"""ClusterIPs that are the same on both sides, with real API servers that draw from one dual-stack range."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from api import Api, Loop, eventually
from scene import Scene

from kube_envtest import ControlPlane, Programs, start_all
from syncer.api import Key, Obj, Side, uid_of
from syncer.resources.service_ranges import SERVICE_CIDRS
from syncer.testing.objects import service

RANGE = "10.96.0.0/16,fd00:96::/112"
#: Addresses that only these tests use.
TAKEN = "10.96.9.1", "fd00:96::91"
DUAL = {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"]}


@pytest.fixture(scope="module")
def shared(loop: Loop, control_plane_programs: Programs) -> Iterator[tuple[Api, Api]]:
    """The two clusters: virtual, host."""
    virtual, host = (
        ControlPlane(name, programs=control_plane_programs, service_range=RANGE) for name in ("virtual", "host")
    )
    start_all(virtual, host)
    both = Api(loop, virtual, Side.VIRTUAL), Api(loop, host, Side.HOST)
    yield both
    for api, plane in zip(both, (virtual, host), strict=True):
        api.close()
        plane.stop()


@pytest.fixture
def scene(shared: tuple[Api, Api], tmp_path: Path) -> Iterator[Scene]:
    """A virtual cluster of this test's own, whose daemon has no right too many."""
    made = Scene(*shared, tmp_path)
    daemon = made.daemon(made.config(user="daemon", sync={}))
    made.grant(daemon, "daemon")
    daemon.start()
    yield made
    assert daemon.requests(code="403") == 0, daemon.log_text()
    made.close()


def agreed(scene: Scene, key: Key) -> tuple[Obj, Obj]:
    """Wait until a Service and its copy have the same addresses, and return both."""

    def look() -> tuple[Obj, Obj] | None:
        virtual, host = scene.virtual.get("Service", key), scene.copy("Service", key)
        if virtual is None or host is None or virtual["spec"].get("clusterIPs") != host["spec"]["clusterIPs"]:
            return None
        return virtual, host

    return eventually(look, f"{key} has the same addresses on both sides")


def test_addresses_of_services_are_those_of_their_copies(scene: Scene) -> None:
    ns = scene.namespace()
    made = {
        name: scene.virtual.create(service(name, namespace=ns, spec=spec))
        for name, spec in {
            "single": {},
            "six": {"ipFamilies": ["IPv6"]},
            "dual": DUAL,
            "prefer": {"ipFamilyPolicy": "PreferDualStack"},
            "public": {"type": "NodePort"},
        }.items()
    }
    for name, before in made.items():
        virtual, host = agreed(scene, Key(ns, name))
        assert virtual["spec"]["clusterIPs"] == before["spec"]["clusterIPs"]
        assert host["spec"]["ipFamilies"] == before["spec"]["ipFamilies"]
    scene.virtual.patch("Service", Key(ns, "single"), {"spec": DUAL})
    both = (scene.virtual.get("Service", Key(ns, "single")) or {})["spec"]["clusterIPs"]
    scene.copied("Service", Key(ns, "single"), "spec.clusterIPs", both)
    alone = {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"], "clusterIPs": both[:1]}
    scene.virtual.patch("Service", Key(ns, "single"), {"spec": alone})
    scene.copied("Service", Key(ns, "single"), "spec.clusterIPs", both[:1])


@pytest.mark.parametrize(("number", "spec"), [(1, {}), (2, DUAL)])
def test_addresses_that_the_host_has_given_away_are_changed_and_the_uid_stays(
    scene: Scene, number: int, spec: Obj
) -> None:
    ns, taken = scene.namespace(), [f"{address}{number}" for address in TAKEN][: len(spec.get("ipFamilies", "1"))]
    asked = {**spec, "clusterIP": taken[0], "clusterIPs": taken}
    scene.host.create(service("theirs", namespace=scene.host_namespace, spec=asked))
    before = scene.virtual.create(service("web", namespace=ns, spec={**asked, "internalTrafficPolicy": "Local"}))
    virtual, host = agreed(scene, Key(ns, "web"))
    assert uid_of(virtual) == uid_of(before)
    assert set(virtual["spec"]["clusterIPs"]).isdisjoint(taken)
    changed = {"clusterIP": host["spec"]["clusterIP"], "clusterIPs": host["spec"]["clusterIPs"]}
    assert virtual["spec"] == {**before["spec"], **changed}
    assert "vsyncer.dev/address" not in (virtual["metadata"].get("annotations") or {})


def changed_ports(scene: Scene, key: Key) -> list[str]:
    """Return the messages of the Events about node ports of a Service that have changed."""
    events = scene.virtual.list("Event", namespace=key.namespace)
    of_service = [each for each in events if each["involvedObject"]["name"] == key.name]
    return [each["message"] for each in of_service if each["reason"] == "NodePortChanged"]


def have_node_ports(scene: Scene, key: Key, drawn: list[Obj]) -> None:
    """Wait until a Service and its copy have the same node ports: those that the virtual API server has drawn, or
    others, with an Event, if the host has one of these in use. There it belongs to the copy of an earlier test, or
    leaks from a write that the host's API server gave up.
    """

    def look() -> list[Obj] | None:
        virtual, host = scene.virtual.get("Service", key), scene.copy("Service", key)
        if virtual is None or host is None or virtual["spec"]["ports"] != host["spec"]["ports"]:
            return None
        ports: list[Obj] = virtual["spec"]["ports"]
        return ports if None not in _node_ports(virtual) else None

    if eventually(look, f"{key} has the same node ports on both sides") != drawn:
        assert eventually(lambda: changed_ports(scene, key), "there is an Event")


def test_node_ports_are_those_of_the_virtual_services(scene: Scene) -> None:
    ns = scene.namespace()
    later = scene.virtual.create(service("later", namespace=ns))
    assert later["spec"]["type"] == "ClusterIP"
    scene.copied("Service", Key(ns, "later"), "spec.type", "ClusterIP")
    ports = [{"name": "t", "port": 80, "protocol": "TCP"}, {"name": "u", "port": 80, "protocol": "UDP"}]
    changed = scene.virtual.patch("Service", Key(ns, "later"), {"spec": {"type": "NodePort", "ports": ports}})
    have_node_ports(scene, Key(ns, "later"), changed["spec"]["ports"])
    balanced = scene.virtual.create(service("balanced", namespace=ns, spec={"type": "LoadBalancer"}))
    have_node_ports(scene, Key(ns, "balanced"), balanced["spec"]["ports"])


@pytest.mark.parametrize("kind", ["NodePort", "ClusterIP"])
def test_node_port_that_the_host_has_given_away_is_changed(scene: Scene, kind: str) -> None:
    ns, ports = scene.namespace(), [{"port": 80, "nodePort": 30777}]
    public: Obj = {"type": "NodePort", "ports": ports}
    scene.host.create(service("theirs", namespace=scene.host_namespace, spec=public))
    before = scene.virtual.create(service("web", namespace=ns, spec=public if kind == "NodePort" else {}))
    if kind == "ClusterIP":
        scene.copied("Service", Key(ns, "web"), "spec.type", "ClusterIP")
        scene.virtual.patch("Service", Key(ns, "web"), {"spec": public})
    eventually(lambda: 30777 not in _node_ports(scene.virtual.get("Service", Key(ns, "web"))), "it has another one")
    virtual, host = agreed(scene, Key(ns, "web"))
    assert (_node_ports(virtual), uid_of(virtual)) == (_node_ports(host), uid_of(before))
    scene.host.delete("Service", Key(scene.host_namespace, "theirs"))


def test_of_two_node_ports_the_free_one_is_used_and_an_event_names_the_other(scene: Scene) -> None:
    ns = scene.namespace()
    taken: Obj = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30778}]}
    scene.host.create(service("theirs", namespace=scene.host_namespace, spec=taken))
    ports: list[Obj] = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    scene.virtual.create(service("two", namespace=ns, spec={"type": "LoadBalancer", "ports": ports}))
    key = Key(ns, "two")
    [former, _] = _node_ports(agreed(scene, key)[1])
    wanted = [{**port, "nodePort": number} for port, number in zip(ports, (30778, 30779), strict=True)]
    scene.virtual.patch("Service", key, {"spec": {"type": "NodePort", "ports": wanted}})
    eventually(lambda: _node_ports(scene.virtual.get("Service", key)) == [former, 30779], "one is changed")
    assert _node_ports(scene.copy("Service", key)) == [former, 30779]

    messages = eventually(lambda: changed_ports(scene, key), "there is an Event")
    assert messages == [f"node ports that others have on the nodes are changed: 30778 of port 80/TCP becomes {former}"]
    scene.host.delete("Service", Key(scene.host_namespace, "theirs"))


def _node_ports(found: Obj | None) -> list[int | None]:
    return [port.get("nodePort") for port in (found or {})["spec"]["ports"]]


def test_service_of_the_hosts_keeps_its_address_when_a_tenant_asks_for_it(scene: Scene) -> None:
    ns, theirs = scene.namespace(), Key(scene.host_namespace, "theirs")
    scene.host.create(service("theirs", namespace=scene.host_namespace, spec={"clusterIP": "10.96.9.77"}))
    before = scene.host.get("Service", theirs)
    scene.virtual.create(service("web", namespace=ns, spec={"clusterIP": "10.96.9.77"}))
    virtual, _ = agreed(scene, Key(ns, "web"))
    assert virtual["spec"]["clusterIP"] != "10.96.9.77"
    assert scene.host.get("Service", theirs) == before


def test_range_that_was_extended_on_the_host_stops_no_service(scene: Scene) -> None:
    ns = scene.namespace()
    more = {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "more"}}
    host, wider = scene.host.cluster, {**more, "spec": {"cidrs": ["10.99.0.0/28"]}}
    scene.host.loop.run(host.create(SERVICE_CIDRS, wider))
    eventually(lambda: _drawn_from(scene, "10.99."), "the host gives addresses of the new range")
    scene.host.create(service("theirs", namespace=scene.host_namespace, spec={"clusterIP": "10.96.9.88"}))
    before = scene.virtual.create(service("web", namespace=ns, spec={"clusterIP": "10.96.9.88"}))
    virtual, _ = agreed(scene, Key(ns, "web"))
    assert uid_of(virtual) == uid_of(before)
    assert virtual["spec"]["clusterIP"].startswith("10.96.")


def _drawn_from(scene: Scene, prefix: str) -> bool:
    """Return True if the host gives a Service an address with this prefix."""
    made = service("probe", namespace=scene.host_namespace)
    key = Key(scene.host_namespace, "probe")
    address: str = scene.host.create(made)["spec"]["clusterIP"]
    scene.host.delete("Service", key)
    return address.startswith(prefix)
