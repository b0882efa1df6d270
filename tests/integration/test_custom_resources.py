"""Custom resources that people run, from configuration alone, by a daemon that may do what `syncer rbac` prints."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from api import Api, Loop, eventually
from definitions import comes, configured, defined, load, named, resource
from scene import MARKS, Scene, quiet, untouched

from syncer.api import Key, Obj, annotations_of, dig, key_of, uid_of
from syncer.testing.objects import pod_mounting, secret

pytestmark = pytest.mark.controlplane

CERTIFICATES = load("certificates.cert-manager.io")
ISSUERS = load("issuers.cert-manager.io")
MONITORS = load("servicemonitors.monitoring.coreos.com")
POOLS = load("storagepools.storage.example.com")
THREE = (CERTIFICATES, ISSUERS, MONITORS, POOLS)

CUSTOM: Obj = {
    "issuers.cert-manager.io": {
        "references": {"spec.ca.secretName": "Secret", "spec.acme.privateKeySecretRef.name": "Secret"}
    },
    "certificates.cert-manager.io": {
        "references": {"spec.secretName": "Secret", "spec.issuerRef.name": "issuers.cert-manager.io"},
        "related": [{"resource": "secrets", "origin": "host", "by": {"reference": "spec.secretName"}}],
    },
    "servicemonitors.monitoring.coreos.com": {
        "references": {f"spec.endpoints[].basicAuth.{part}.name": "Secret" for part in ("username", "password")},
        "patches": {
            "down": [
                {"path": "spec.selector", "labels": "selector"},
                {"op": "add", "path": "/spec/namespaceSelector", "value": {}},
            ]
        },
    },
    "storagepools.storage.example.com": {"scope": "Cluster", "references": {"spec.credentials.name": "Secret"}},
}


@pytest.fixture(scope="module")
def platform(apis: tuple[Api, Api], loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A host with four public CRDs, and a daemon without a right too many that was started after them."""
    made = Scene(*apis, tmp_path_factory.mktemp("platform"))
    made.definitions += [named(each).name for each in THREE]
    try:
        for each in THREE:
            made.host.define(each)
        running = made.daemon(configured(made, CUSTOM, allow=[named(each).name for each in THREE], user="daemon"))
        made.grant(running, "daemon")
        running.start()
        for each in THREE:
            comes(made, each)
        yield made
    finally:
        made.close()


@pytest.fixture
def shop(platform: Scene) -> Iterator[str]:
    """A virtual namespace; the test fails where the daemon was refused something, or wrote what changed nothing."""
    yield platform.namespace()
    platform.must_be_content()


def certificate(name: str, namespace: str, secret_name: str, **spec: Any) -> Obj:
    wanted = {"secretName": secret_name, "dnsNames": [f"{name}.example.org"], "issuerRef": {"name": "ca"}, **spec}
    return resource(CERTIFICATES, name, namespace, spec=wanted)


def make_certificate(scene: Scene, namespace: str, name: str = "db", **spec: Any) -> Obj:
    """Return a virtual Certificate for the Secret ``<name>-tls``; gives its copy."""
    wanted = {"secretName": f"{name}-tls", "dnsNames": [f"{name}.example.org"], "issuerRef": {"name": "ca"}, **spec}
    scene.virtual.create(resource(CERTIFICATES, name, namespace, spec=wanted))
    return scene.copied("Certificate", Key(namespace, name))


def issue(scene: Scene, copy: Obj, certificate: str = "1") -> Obj:
    """Make the Secret that the Certificate names, as cert-manager does, without a mark of ours."""
    metadata = {
        "annotations": {"cert-manager.io/certificate-name": copy["metadata"]["name"]},
        "labels": {"controller.cert-manager.io/fao": "true"},
    }
    data = {"tls.crt": certificate, "tls.key": "key"}
    host_namespace = copy["metadata"]["namespace"]
    return scene.host.create(
        secret(copy["spec"]["secretName"], data, namespace=host_namespace, type="kubernetes.io/tls", metadata=metadata)
    )


def holds(scene: Scene, key: Key, host: Obj) -> None:
    """Wait until the virtual Secret has the data of the host's."""
    eventually(lambda: dig(scene.virtual.get("Secret", key) or {}, "data") == host["data"], f"{key} is as on the host")


def issued(revision: int) -> Obj:
    """Return the status that cert-manager reports."""
    condition = {"type": "Ready", "status": "True", "reason": "Ready", "message": "Certificate is up to date"}
    return {"conditions": [condition], "notAfter": "2027-01-01T00:00:00Z", "revision": revision}


# -- what goes down --------------------------------------------------------------------------------


def test_named_objects_go_along_under_their_host_names(platform: Scene, shop: str) -> None:
    platform.virtual.create(secret("ca-key", {"tls.key": "k"}, namespace=shop))
    platform.virtual.create(secret("unused", namespace=shop))
    platform.virtual.create(resource(ISSUERS, "ca", shop, spec={"ca": {"secretName": "ca-key"}}))
    host = make_certificate(platform, shop)
    assert host["spec"]["secretName"] == platform.host_key("Secret", Key(shop, "db-tls")).name
    assert host["spec"]["issuerRef"]["name"] == platform.host_key("Issuer", Key(shop, "ca")).name
    assert host["spec"]["dnsNames"] == ["db.example.org"]
    issuer = platform.copied("Issuer", Key(shop, "ca"))
    key = platform.copied("Secret", Key(shop, "ca-key"))
    assert issuer["spec"]["ca"]["secretName"] == key["metadata"]["name"]
    assert platform.copy("Secret", Key(shop, "unused")) is None
    platform.virtual.delete("Issuer", Key(shop, "ca"))
    platform.gone("Issuer", Key(shop, "ca"))
    platform.gone("Secret", Key(shop, "ca-key"))


def test_a_name_of_a_kind_that_is_not_known_here_does_not_go_to_the_host(platform: Scene, shop: str) -> None:
    reference = {"name": "letsencrypt", "kind": "ClusterIssuer"}
    wanted = {"secretName": "db-tls", "issuerRef": reference}
    virtual = platform.virtual.create(resource(CERTIFICATES, "db", shop, spec=wanted))
    warning = eventually(lambda: platform.virtual.list("Event", namespace=shop), "there is an Event")[0]
    assert (warning["type"], warning["involvedObject"]["uid"]) == ("Warning", uid_of(virtual))
    assert "spec.issuerRef.name" in warning["message"]
    assert platform.copy("Certificate", key_of(virtual)) is None
    platform.virtual.patch("Certificate", key_of(virtual), {"spec": {"issuerRef": {"name": "ca", "kind": "Issuer"}}})
    platform.copied("Certificate", key_of(virtual))


def test_a_change_follows_and_a_deletion_too(platform: Scene, shop: str) -> None:
    key = Key(shop, "db")
    make_certificate(platform, shop)
    platform.virtual.patch("Certificate", key, {"spec": {"dnsNames": ["a", "b"], "duration": "24h"}})
    platform.copied("Certificate", key, "spec.dnsNames", ["a", "b"])
    platform.virtual.patch("Certificate", key, {"spec": {"duration": None}})
    eventually(lambda: "duration" not in platform.copied("Certificate", key)["spec"], "the duration is taken back")
    platform.virtual.delete("Certificate", key)
    platform.gone("Certificate", key)


# -- what comes up ---------------------------------------------------------------------------------


def test_the_status_comes_back_and_a_tenants_change_of_it_is_reverted(platform: Scene, shop: str) -> None:
    key = Key(shop, "db")
    host_key = key_of(make_certificate(platform, shop))
    platform.host.patch("Certificate", host_key, {"status": issued(1)}, subresource="status")
    platform.reported("Certificate", key, "status", issued(1))
    platform.virtual.patch("Certificate", key, {"status": {"revision": 7}}, subresource="status")
    platform.reported("Certificate", key, "status", issued(1))
    assert dig(platform.host.get("Certificate", host_key) or {}, "status.revision") == 1


def test_a_secret_that_the_operator_makes_comes_back_and_pods_mount_it(platform: Scene, shop: str) -> None:
    key = Key(shop, "db-tls")
    made = issue(platform, make_certificate(platform, shop))
    virtual = eventually(lambda: platform.virtual.get("Secret", key), "the virtual Secret is there")
    assert (virtual["type"], virtual["data"]) == (made["type"], made["data"])
    platform.virtual.create(pod_mounting("web", secret="db-tls", namespace=shop))
    pod = platform.copied("Pod", Key(shop, "web"))
    assert made["metadata"]["name"] in [dig(volume, "secret.secretName") for volume in pod["spec"]["volumes"]]
    host_key = key_of(made)
    renewed = platform.host.patch("Secret", host_key, {"data": {"tls.crt": "Mg=="}})
    holds(platform, key, renewed)
    platform.virtual.patch("Secret", key, {"data": {"tls.crt": "WA=="}})
    holds(platform, key, renewed)
    with untouched(platform.host, [renewed]):
        platform.virtual.delete("Secret", key)
        again = eventually(lambda: platform.virtual.get("Secret", key), "the virtual Secret is made again")
        assert uid_of(again) != uid_of(virtual)
    platform.host.delete("Secret", host_key)
    eventually(lambda: platform.virtual.get("Secret", key) is None, "the virtual Secret went with it")


def test_the_secret_goes_with_its_certificate_and_stays_on_the_host(platform: Scene, shop: str) -> None:
    made = issue(platform, make_certificate(platform, shop))
    eventually(lambda: platform.virtual.get("Secret", Key(shop, "db-tls")), "the virtual Secret is there")
    with untouched(platform.host, [made]):
        platform.virtual.delete("Certificate", Key(shop, "db"))
        platform.gone("Certificate", Key(shop, "db"))
        eventually(lambda: platform.virtual.get("Secret", Key(shop, "db-tls")) is None, "the virtual Secret is gone")
    platform.host.delete("Secret", key_of(made))


def test_a_tenants_own_secret_of_that_name_is_neither_overwritten_nor_copied(platform: Scene, shop: str) -> None:
    own = platform.virtual.create(secret("db-tls", {"mine": "yes"}, namespace=shop))
    made = issue(platform, make_certificate(platform, shop))
    with untouched(platform.virtual, [own]), untouched(platform.host, [made]):
        events = eventually(lambda: platform.virtual.list("Event", namespace=shop), "there is an Event")
        assert (events[0]["type"], events[0]["reason"]) == ("Warning", "NameCollision")
        make_certificate(platform, shop, "marker")
    platform.host.delete("Secret", key_of(made))


# -- selectors, and kinds without a namespace ------------------------------------------------------


def test_a_monitor_selects_the_services_of_its_namespace_only(platform: Scene, shop: str) -> None:
    platform.virtual.create(secret("scraper", {"user": "u", "password": "p"}, namespace=shop))
    account = {part: {"name": "scraper", "key": part} for part in ("username", "password")}
    spec: Obj = {
        "selector": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]},
        "namespaceSelector": {"matchNames": [shop]},
        "endpoints": [{"port": "metrics", "interval": "30s", "basicAuth": account}, {"port": "health"}],
    }
    platform.virtual.create(resource(MONITORS, "web", shop, spec=spec))
    host = platform.copied("ServiceMonitor", Key(shop, "web"))
    marks = MARKS.labels(platform.identity, Key(shop, "web"))
    assert host["spec"]["selector"]["matchLabels"] == {"app": "web", **marks}
    assert host["spec"]["selector"]["matchExpressions"] == spec["selector"]["matchExpressions"]
    assert not host["spec"]["namespaceSelector"]
    there = platform.copied("Secret", Key(shop, "scraper"))["metadata"]["name"]
    assert [dig(each, "basicAuth.password.name") for each in host["spec"]["endpoints"]] == [there, None]


def test_a_kind_without_namespaces_and_with_a_webhook(platform: Scene, shop: str) -> None:
    virtual = defined(platform.virtual, POOLS)
    assert virtual
    assert virtual["spec"]["conversion"] == {"strategy": "None"}
    served = {version["name"]: version["served"] for version in virtual["spec"]["versions"]}
    assert served == {"v1": True, "v1beta1": False}
    assert MARKS.is_from_here(virtual, cluster=platform.identity)
    assert not [name for name in annotations_of(virtual) if "cert-manager" in name or "helm" in name]
    platform.virtual.create(secret("pool", namespace=shop))
    spec = {"capacity": {"storage": "1Ti"}, "credentials": {"name": "pool", "namespace": shop}}
    key = Key("", f"{platform.name}-pool")
    platform.virtual.create(resource(POOLS, key.name, spec=spec))
    host = platform.copied("StoragePool", key)
    host_key = platform.host_key("Secret", Key(shop, "pool"))
    assert host["spec"] == {
        "capacity": {"storage": "1Ti"},
        "class": "cheap",
        "credentials": {"name": host_key.name, "namespace": host_key.namespace},
        "reclaim": "Retain",
    }
    platform.host.patch("StoragePool", key_of(host), {"status": {"phase": "Ready"}}, subresource="status")
    platform.reported("StoragePool", key, "status.phase", "Ready")
    assert "Ready" in platform.virtual.plane.kubectl("get", "spool", key.name).stdout
    platform.virtual.delete("StoragePool", key)
    platform.gone("StoragePool", key)


# -- the daemon as a whole -------------------------------------------------------------------------


def test_a_restart_writes_nothing(platform: Scene, shop: str) -> None:
    [running] = platform.daemons
    made = issue(platform, make_certificate(platform, shop))
    eventually(lambda: platform.virtual.get("Secret", Key(shop, "db-tls")), "the virtual Secret is there")
    eventually(lambda: quiet(running), "the daemon has nothing to do")
    running.stop()
    kinds = ("Certificate", "Issuer", "ServiceMonitor", "StoragePool", "Secret", "ConfigMap", "Pod", "Service", "Event")
    before = platform.versions(*kinds)
    running.start()
    marker = {key_of(make_certificate(platform, shop, "marker")), Key(shop, "marker")}
    eventually(lambda: quiet(running), "the daemon has nothing to do")
    after = platform.versions(*kinds).items()
    assert {path: version for path, version in after if path[2] not in marker} == before
    platform.host.delete("Secret", key_of(made))


def test_an_idle_daemon_sends_no_requests(platform: Scene, shop: str, figure: Callable[[str], None]) -> None:
    [running] = platform.daemons
    make_certificate(platform, shop)
    asked = list[float]()

    def is_idle() -> bool:
        before = running.requests()
        time.sleep(5)
        asked.append(running.requests() - before)
        return not asked[-1]

    eventually(is_idle, "five seconds go by without a request")
    figure(f"requests in 5 idle seconds, until there was none: {asked}")
