"""The files of a virtual control plane: names, subjects and usages as kubeadm's, by the CA that each is for."""

import base64
from datetime import timedelta
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import PolicyBuilder, Store
from pki_scene import AUTHORITIES, NOW, WANTED, certificate, files, run, service

from syncer.api import Obj
from syncer.pki import certificates

SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
KUBEADM = {
    "ca.crt", "ca.key", "apiserver.crt", "apiserver.key",
    "apiserver-kubelet-client.crt", "apiserver-kubelet-client.key",
    "front-proxy-ca.crt", "front-proxy-ca.key", "front-proxy-client.crt", "front-proxy-client.key", "etcd-ca.crt",
    "etcd-ca.key", "etcd-server.crt", "etcd-server.key", "etcd-peer.crt", "etcd-peer.key", "apiserver-etcd-client.crt",
    "apiserver-etcd-client.key", "sa.key", "sa.pub", "controller-manager.conf", "scheduler.conf", "super-admin.conf",
}  # fmt: skip
LEAVES = [
    ("api-pki", "apiserver", "ca", "kube-apiserver", None, [SERVER]),
    ("api-pki", "apiserver-kubelet-client", "ca", "kube-apiserver-kubelet-client", None, [CLIENT]),
    ("api-pki", "super-admin", "ca", "kubernetes-super-admin", "system:masters", [CLIENT]),
    ("api-pki", "controller-manager", "ca", "system:kube-controller-manager", None, [CLIENT]),
    ("api-pki", "scheduler", "ca", "system:kube-scheduler", None, [CLIENT]),
    ("api-pki", "front-proxy-client", "front-proxy-ca", "front-proxy-client", None, [CLIENT]),
    ("api-pki", "etcd-server", "etcd-ca", "etcd-server", None, [SERVER, CLIENT]),
    ("api-pki", "etcd-peer", "etcd-ca", "etcd-peer", None, [SERVER, CLIENT]),
    ("api-pki", "apiserver-etcd-client", "etcd-ca", "kube-apiserver-etcd-client", None, [CLIENT]),
    ("api-kubeconfig", "tls", "ca", "kubernetes-admin", "vsyncer:tenant-admins", [CLIENT]),
    ("api-daemon", "tls", "ca", "vsyncer", "vsyncer:daemons", [CLIENT]),
]


@pytest.fixture(scope="module")
def secrets() -> dict[str, Obj]:
    made: dict[str, Obj] = {}
    run(made)
    return made


def names_of(found: x509.Certificate) -> set[str]:
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(each.value) for each in names}


def subject(found: x509.Certificate, part: x509.ObjectIdentifier) -> Any:
    return next((each.value for each in found.subject.get_attributes_for_oid(part)), None)


def test_secrets_have_the_files_of_kubeadm_and_those_of_the_controllers(secrets: dict[str, Obj]) -> None:
    users = ("controller-manager", "scheduler", "super-admin")
    beside = {f"{name}.{suffix}" for name in users for suffix in ("crt", "key")}
    assert set(files(secrets["api-pki"])) == KUBEADM | beside
    assert set(files(secrets["api-kubeconfig"])) == set(files(secrets["api-daemon"])) == {
        "config", "ca.crt", "tls.crt", "tls.key",
    }  # fmt: skip


@pytest.mark.parametrize(("secret", "name", "authority", "user", "group", "usages"), LEAVES)
def test_certificate_is_for_its_user_and_use_and_of_its_ca(
    secrets: dict[str, Obj], secret: str, name: str, authority: str, user: str, group: str | None, usages: list[Any]
) -> None:
    found, ca = certificate(secrets[secret], f"{name}.crt"), certificate(secrets["api-pki"], f"{authority}.crt")
    assert (subject(found, NameOID.COMMON_NAME), subject(found, NameOID.ORGANIZATION_NAME)) == (user, group)
    assert list(found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == usages
    usage = found.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_cert_sign) == (True, False)
    assert not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    others = {certificate(secrets["api-pki"], f"{each}.crt") for each in AUTHORITIES} - {ca}
    found.verify_directly_issued_by(ca)
    for other in others:
        with pytest.raises(ValueError, match="does not match"):
            found.verify_directly_issued_by(other)
    assert (found.not_valid_before_utc, found.not_valid_after_utc) == (
        NOW - timedelta(minutes=5), NOW + timedelta(days=365),
    )  # fmt: skip


@pytest.mark.parametrize("name", AUTHORITIES)
def test_ca_lasts_ten_years_and_signs(secrets: dict[str, Obj], name: str) -> None:
    found = certificate(secrets["api-pki"], f"{name}.crt")
    assert found.not_valid_after_utc == NOW + timedelta(days=3650)
    assert found.extensions.get_extension_for_class(x509.BasicConstraints).critical
    usage = found.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.key_cert_sign, usage.key_encipherment) == (True, False)
    key = certificates.read_key(files(secrets["api-pki"])[f"{name}.key"])
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert isinstance(key.curve, ec.SECP256R1)


def test_certificates_of_servers_pass_a_strict_verifier(secrets: dict[str, Obj]) -> None:
    for name, authority, host in (
        ("apiserver", "ca", "api.shop.svc"),
        ("etcd-server", "etcd-ca", "api-control-plane-2.api-etcd.shop.svc"),
    ):
        store = Store([certificate(secrets["api-pki"], f"{authority}.crt")])
        verifier = PolicyBuilder().store(store).time(NOW).build_server_verifier(x509.DNSName(host))
        verifier.verify(certificate(secrets["api-pki"], f"{name}.crt"), [])


def test_api_server_is_named_by_every_address_of_its_service() -> None:
    made: dict[str, Obj] = {}
    lb = [{"hostname": "lb.example.com"}, {"ip": "203.0.113.9"}]
    of = service(type="LoadBalancer", ingress=lb, clusterIPs=["10.96.0.7", "FD00:0::7"], externalIPs=["192.0.2.1"])
    run(made, of=of, names=("api.example.com", "2001:db8::1"), server="https://x.example:8443", server_host="x.example")
    assert names_of(certificate(made["api-pki"], "apiserver.crt")) == {
        "localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local", "api", "api.shop", "api.shop.svc", "api.shop.svc.cluster.local",
        "10.96.0.7", "fd00::7", "192.0.2.1", "lb.example.com", "203.0.113.9", "x.example", "api.example.com",
        "2001:db8::1",
    }  # fmt: skip


def test_headless_service_and_a_strange_address_have_no_name() -> None:
    made: dict[str, Obj] = {}
    run(made, of=service(clusterIPs=["None"], ingress=[{"hostname": "ä b"}, {"hostname": "ok.example\n"}, {}]))
    names = names_of(certificate(made["api-pki"], "apiserver.crt"))
    assert [name for name in names if "example" in name or name in ("None", "ä b")] == []


def test_etcd_members_are_named_and_its_clients_are_not(secrets: dict[str, Obj]) -> None:
    own = {"localhost", "127.0.0.1", "::1", "api-etcd.shop.svc"}
    wanted = own | {f"{member}.api-etcd.shop.svc" for member in WANTED.etcd_members}
    assert names_of(certificate(secrets["api-pki"], "etcd-server.crt")) == wanted
    assert names_of(certificate(secrets["api-pki"], "etcd-peer.crt")) == wanted
    # etcd compares the names of a client with the address that it comes from, if it has any; none at all in the
    # extension, and Go takes the certificate for broken.
    found = certificate(secrets["api-pki"], "apiserver-etcd-client.crt").extensions
    assert x509.SubjectAlternativeName not in {type(each.value) for each in found}


def test_key_of_the_tokens_is_verified_by_its_public_half(secrets: dict[str, Obj]) -> None:
    found = files(secrets["api-pki"])
    assert found["sa.key"].startswith(b"-----BEGIN EC PRIVATE KEY-----")  # the form of kubeadm's
    assert found["sa.pub"] == certificates.public_pem(certificates.read_key(found["sa.key"]))


def parts(config: bytes) -> tuple[str, dict[str, str], dict[str, str]]:
    document = yaml.safe_load(config)
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    assert document["current-context"] == document["contexts"][0]["name"] == "api"
    return cluster["server"], cluster, user


def test_kubeconfigs_of_the_control_plane_name_files_beside_them(secrets: dict[str, Obj]) -> None:
    server, cluster, user = parts(files(secrets["api-daemon"])["config"])
    assert (server, cluster["certificate-authority"]) == ("https://api.shop.svc", "ca.crt")
    assert user == {"client-certificate": "tls.crt", "client-key": "tls.key"}
    for name in ("controller-manager", "scheduler"):
        server, cluster, user = parts(files(secrets["api-pki"])[f"{name}.conf"])
        assert (server, cluster["certificate-authority"]) == ("https://localhost:6443", "ca.crt")
        assert user == {"client-certificate": f"{name}.crt", "client-key": f"{name}.key"}


@pytest.mark.parametrize(
    ("secret", "config", "leaf"), [("api-kubeconfig", "config", "tls"), ("api-pki", "super-admin.conf", "super-admin")]
)
def test_kubeconfigs_of_administrators_need_no_other_file(
    secrets: dict[str, Obj], secret: str, config: str, leaf: str
) -> None:
    found = files(secrets[secret])
    server, cluster, user = parts(found[config])
    assert server == "https://api.shop.svc"
    assert base64.b64decode(cluster["certificate-authority-data"]) == files(secrets["api-pki"])["ca.crt"]
    assert base64.b64decode(user["client-certificate-data"]) == found[f"{leaf}.crt"]
    assert base64.b64decode(user["client-key-data"]) == found[f"{leaf}.key"]


PORTS = [{"name": "metrics", "port": 1}, {"name": "https", "port": 6443}]


@pytest.mark.parametrize(
    ("of", "server", "wanted"),
    [
        (service(), "", "https://api.shop.svc"),
        (service(ports=PORTS), "", "https://api.shop.svc:6443"),
        (service(ports=PORTS[:1]), "", "https://api.shop.svc:1"),
        (service(type="LoadBalancer", ports=PORTS), "", "https://api.shop.svc:6443"),
        (service(type="LoadBalancer", ingress=[{"ip": "203.0.113.9"}]), "", "https://203.0.113.9"),
        (service(type="LoadBalancer", ports=PORTS, ingress=[{"ip": "fd00::9"}]), "", "https://[fd00::9]:6443"),
        (service(ingress=[{"hostname": "lb.example"}]), "", "https://lb.example"),
        (service(ingress=[{"ip": "203.0.113.9"}]), "https://api.example", "https://api.example"),
    ],
)
def test_tenant_server_is_the_setting_else_load_balancer_else_service(of: Obj, server: str, wanted: str) -> None:
    made: dict[str, Obj] = {}
    run(made, of=of, server=server)
    found, _, _ = parts(files(made["api-kubeconfig"])["config"])
    assert found == wanted
    assert parts(files(made["api-daemon"])["config"])[0].startswith("https://api.shop.svc")


def test_only_load_balancer_without_address_is_awaited() -> None:
    assert run({}, of=service(type="LoadBalancer")).address.is_awaited
    assert not run({}, of=service(type="LoadBalancer", ingress=[{"ip": "203.0.113.9"}])).address.is_awaited
    assert not run({}).address.is_awaited
