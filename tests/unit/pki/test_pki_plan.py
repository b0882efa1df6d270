"""What becomes of Secrets that are there: kept, completed, renewed, or refused."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from pki_scene import AUTHORITIES, NOW, WANTED, actions, certificate, files, put, run, service, writes

from syncer.api import Obj
from syncer.pki import certificates, layout
from syncer.pki.certificates import KeyPair, Leaf
from syncer.pki.plan import Damaged

YEAR = timedelta(days=365)
ALL = list(WANTED.secrets)


@pytest.fixture
def secrets() -> dict[str, Obj]:
    made: dict[str, Obj] = {}
    assert writes(run(made)) == ALL
    return made


def pair(secrets: dict[str, Obj], name: str, secret: str = "api-pki") -> KeyPair:
    found = files(secrets[secret])
    return certificates.read_pair(found[f"{name}.crt"], found[f"{name}.key"])


def put_pair(secrets: dict[str, Obj], name: str, made: KeyPair, secret: str = "api-pki") -> None:
    put(secrets[secret], f"{name}.crt", made.certificate_pem)
    put(secrets[secret], f"{name}.key", made.key_pem)


def test_second_run_changes_nothing(secrets: dict[str, Obj]) -> None:
    done = run(secrets)
    assert writes(done) == []
    assert actions(done, "made", "renewed") == {}
    assert done.warnings == []


def test_certificates_are_kept_until_a_third_of_their_life_is_left(secrets: dict[str, Obj]) -> None:
    assert writes(run(secrets, now=NOW + YEAR * 2 / 3 - timedelta(days=1))) == []
    done = run(secrets, now=NOW + YEAR * 2 / 3 + timedelta(days=1))
    assert writes(done) == ALL
    leaves = {"apiserver", "apiserver-kubelet-client", "controller-manager", "front-proxy-client", "etcd-server",
              "etcd-peer", "apiserver-etcd-client", "scheduler", "super-admin"}  # fmt: skip
    renewed = actions(done, "renewed")
    assert set(renewed) == {*(f"api-pki/{leaf}.crt" for leaf in leaves), "api-pki/super-admin.conf",
                            "api-kubeconfig/tls.crt", "api-kubeconfig/config", "api-daemon/tls.crt"}  # fmt: skip
    assert renewed["api-pki/apiserver.crt"] == "it would end on 2027-05-01"


def test_new_name_renews_only_the_certificate_that_lacks_it(secrets: dict[str, Obj]) -> None:
    done = run(secrets, names=("api.example.com",))
    assert actions(done, "made", "renewed") == {"api-pki/apiserver.crt": "it lacked api.example.com"}
    assert writes(done) == ["api-pki"]
    assert writes(run(secrets)) == []  # a name too many does no harm


def test_address_of_the_load_balancer_is_added_when_it_comes(secrets: dict[str, Obj]) -> None:
    done = run(secrets, of=service(type="LoadBalancer", ingress=[{"ip": "203.0.113.9"}]))
    assert actions(done, "made", "renewed") == {
        "api-pki/apiserver.crt": "it lacked 203.0.113.9",
        "api-kubeconfig/config": "",
    }


def test_new_server_leaves_the_certificate_of_the_tenant_as_it_is(secrets: dict[str, Obj]) -> None:
    before = files(secrets["api-kubeconfig"])["tls.crt"]
    assert writes(run(secrets, server="https://kubernetes.default.svc")) == ["api-kubeconfig"]
    assert files(secrets["api-kubeconfig"])["tls.crt"] == before


LEAF = Leaf("kube-apiserver", names=("localhost",), client=False)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda _: (b"", b""), "the certificate can't be read"),
        (lambda found: (found.certificate_pem[:99], found.key_pem), "the certificate can't be read"),
        (lambda found: (found.certificate_pem, b"\xff"), "the key can't be read"),
        (lambda found: (found.certificate_pem * 2, found.key_pem), "there are 2 certificates instead of one"),
        (lambda found: (found.certificate_pem, certificates.key_pem(certificates.new_key())), "isn't that of"),
    ],
)
def test_damaged_certificate_is_renewed(
    secrets: dict[str, Obj], damage: Callable[[KeyPair], tuple[bytes, bytes]], why: str
) -> None:
    crt, key = damage(pair(secrets, "apiserver"))
    put(secrets["api-pki"], "apiserver.crt", crt)
    put(secrets["api-pki"], "apiserver.key", key)
    assert why in actions(run(secrets), "renewed")["api-pki/apiserver.crt"]
    assert writes(run(secrets)) == []


@pytest.mark.parametrize(
    ("leaf", "why"),
    [
        (Leaf("someone", names=("localhost",), client=False), "it was for another use"),
        (Leaf("kube-apiserver", "system:masters", names=("localhost",), client=False), "it was for another use"),
        (Leaf("kube-apiserver", names=("localhost",)), "it was for another use"),
        (LEAF, "it lacked 127.0.0.1, ::1"),
    ],
)
def test_certificate_for_another_use_is_renewed(secrets: dict[str, Obj], leaf: Leaf, why: str) -> None:
    put_pair(secrets, "apiserver", certificates.issue(leaf, pair(secrets, "ca"), NOW))
    assert actions(run(secrets), "renewed")["api-pki/apiserver.crt"].startswith(why)


def test_certificates_of_an_earlier_group_are_renewed_and_the_cas_stay(secrets: dict[str, Obj]) -> None:
    """The Secrets are those of a version whose tenants and kubelet client were in system:masters."""
    ca = pair(secrets, "ca")
    put_pair(secrets, "tls", certificates.issue(Leaf(layout.ADMIN, layout.MASTERS), ca, NOW), "api-kubeconfig")
    earlier = Leaf(layout.KUBELET_CLIENT, layout.MASTERS)
    put_pair(secrets, "apiserver-kubelet-client", certificates.issue(earlier, ca, NOW))
    for file in ("super-admin.crt", "super-admin.key", "super-admin.conf"):
        put(secrets["api-pki"], file, None)
    config = files(secrets["api-kubeconfig"])["config"]
    assert actions(run(secrets), "made", "renewed") == {
        "api-pki/apiserver-kubelet-client.crt": "it was for another use",
        "api-pki/super-admin.crt": "",
        "api-pki/super-admin.conf": "",
        "api-kubeconfig/tls.crt": "it was for another use",
        "api-kubeconfig/config": "",
    }
    assert files(secrets["api-kubeconfig"])["config"] != config
    assert pair(secrets, "tls", "api-kubeconfig").certificate.subject == Leaf(layout.ADMIN, layout.ADMINS).subject
    assert writes(run(secrets)) == []


def test_certificate_of_another_ca_is_renewed(secrets: dict[str, Obj]) -> None:
    other = certificates.new_authority("kubernetes", NOW)  # of the same name
    put_pair(secrets, "tls", certificates.issue(Leaf(layout.DAEMON, layout.DAEMONS), other, NOW), "api-daemon")
    assert actions(run(secrets), "renewed") == {"api-daemon/tls.crt": "it was signed by another CA"}


def test_certificate_that_is_not_valid_yet_is_renewed(secrets: dict[str, Obj]) -> None:
    made = certificates.issue(Leaf(layout.DAEMON, layout.DAEMONS), pair(secrets, "ca"), NOW + timedelta(days=2))
    put_pair(secrets, "tls", made, "api-daemon")
    assert actions(run(secrets), "renewed") == {"api-daemon/tls.crt": "it wasn't valid yet"}


@pytest.mark.parametrize("name", AUTHORITIES)
@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ({"key": None}, "{name}.key is missing"),
        ({"crt": b"x"}, "the certificate can't be read"),
        ({"key": b"x"}, "the key can't be read"),
        ({"crt": None, "key": b"x"}, "the key can't be read"),
        ({"key": certificates.key_pem(certificates.new_key())}, "the key isn't that of the certificate"),
    ],
)
def test_damaged_ca_is_refused(secrets: dict[str, Obj], name: str, damage: dict[str, bytes | None], why: str) -> None:
    for suffix, content in damage.items():
        put(secrets["api-pki"], f"{name}.{suffix}", content)
    with pytest.raises(Damaged) as error:
        run(secrets)
    message = f"Secret shop/api-pki: {name}.crt can't be used: {why.format(name=name)}. Nothing was written. Restore"
    assert str(error.value).startswith(message)


def test_certificate_that_is_no_ca_is_refused(secrets: dict[str, Obj]) -> None:
    put_pair(secrets, "ca", pair(secrets, "apiserver"))
    with pytest.raises(Damaged, match="it isn't the certificate of a CA"):
        run(secrets)


def test_ca_with_key_of_another_kind_is_refused(secrets: dict[str, Obj]) -> None:
    form = serialization.PrivateFormat.PKCS8
    key = ed25519.Ed25519PrivateKey.generate()
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    put(secrets["api-pki"], "ca.key", pem)
    with pytest.raises(Damaged, match="the key is neither ECDSA nor RSA"):
        run(secrets)


def test_expired_ca_is_refused_and_expiring_one_warned_about(secrets: dict[str, Obj]) -> None:
    soon = NOW + timedelta(days=3650) - YEAR / 2
    done = run(secrets, now=soon)
    assert [re.findall(r"api-pki: (\S+) ends on 2036-04-28", warning) for warning in done.warnings] == [
        [f"{name}.crt"] for name in AUTHORITIES
    ]
    assert all("Remove" in warning and "not its key" in warning for warning in done.warnings)
    assert certificate(secrets["api-pki"], "apiserver.crt").not_valid_after_utc == NOW + timedelta(days=3650)
    assert writes(run(secrets, now=soon)) == []
    with pytest.raises(Damaged, match=r"ca.crt can't be used: it ended on 2036-04-28. Nothing was written. Remove ca"):
        run(secrets, now=NOW + timedelta(days=3650))
    with pytest.raises(Damaged, match=r"valid only from 2026-05-01 11:55Z on\. Nothing was written\. Is a clock wrong"):
        run(secrets, now=NOW - timedelta(days=1))


def test_ca_gets_a_new_certificate_that_clients_of_the_old_one_accept(secrets: dict[str, Obj]) -> None:
    later = NOW + timedelta(days=3400)
    run(secrets, now=later)
    old = certificate(secrets["api-pki"], "ca.crt")
    put(secrets["api-pki"], "ca.crt", None)
    done = run(secrets, now=later)
    assert actions(done, "made", "renewed")["api-pki/ca.crt"] == "with the key that was there"
    new = certificate(secrets["api-pki"], "ca.crt")
    assert new.not_valid_after_utc == later + timedelta(days=3650)
    for ca in (old, new):
        certificate(secrets["api-pki"], "apiserver.crt").verify_directly_issued_by(ca)
        certificate(secrets["api-kubeconfig"], "tls.crt").verify_directly_issued_by(ca)
    assert files(secrets["api-daemon"])["ca.crt"] == files(secrets["api-pki"])["ca.crt"]
    assert not any(
        "ca.crt" in warning and "front" not in warning and "etcd" not in warning for warning in done.warnings
    )
    assert writes(run(secrets, now=later)) == []


def test_removed_ca_is_replaced_with_its_certificates(secrets: dict[str, Obj]) -> None:
    put(secrets["api-pki"], "ca.crt", None)
    put(secrets["api-pki"], "ca.key", None)
    changed = actions(run(secrets), "made", "renewed")
    assert changed["api-kubeconfig/tls.crt"] == changed["api-pki/apiserver.crt"] == "it was signed by another CA"
    assert "api-pki/etcd-server.crt" not in changed
    assert writes(run(secrets)) == []


@pytest.mark.parametrize("emptied", [True, False])
def test_lost_control_plane_secret_is_refused_beside_its_certificates(secrets: dict[str, Obj], emptied: bool) -> None:
    if emptied:
        secrets["api-pki"]["data"] = {"note": ""}
    else:
        del secrets["api-pki"]
    message = "Secret shop/api-pki has neither a CA nor sa.key, but certificates that it signed are in"
    with pytest.raises(
        Damaged, match=rf"{message} api-kubeconfig and api-daemon\. Nothing was written\. Restore it from"
    ):
        run(secrets)
    del secrets["api-kubeconfig"]
    with pytest.raises(Damaged, match=rf"{message} api-daemon\. .* Or delete api-daemon, too"):
        run(secrets)
    del secrets["api-daemon"]
    assert writes(run(secrets)) == ALL


def test_rsa_ca_of_the_operator_is_kept_and_signs(secrets: dict[str, Obj]) -> None:
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "Our CA")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW + 10 * YEAR)
    bare = builder.add_extension(x509.BasicConstraints(True, None), critical=True).sign(key, hashes.SHA256())
    put_pair(secrets, "ca", KeyPair(bare, key))
    assert actions(run(secrets), "renewed")["api-pki/apiserver.crt"] == "it was signed by another CA"
    assert files(secrets["api-pki"])["ca.crt"] == bare.public_bytes(serialization.Encoding.PEM)
    assert writes(run(secrets)) == []


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ({"sa.key": None}, "sa.key can't be used: it is missing"),
        ({"sa.key": b""}, "sa.key can't be used: the key can't be read"),
        ({"sa.pub": b"x"}, "sa.pub can't be used: it lacks the public key of sa.key"),
        ({"sa.key": certificates.key_pem(certificates.new_key())}, "it lacks the public key of sa.key"),
    ],
)
def test_damaged_keys_of_tokens_are_refused(secrets: dict[str, Obj], damage: dict[str, bytes | None], why: str) -> None:
    for name, content in damage.items():
        put(secrets["api-pki"], name, content)
    with pytest.raises(Damaged, match=why):
        run(secrets)


def test_public_key_of_tokens_follows_from_the_key(secrets: dict[str, Obj]) -> None:
    before = files(secrets["api-pki"])["sa.pub"]
    put(secrets["api-pki"], "sa.pub", None)
    assert set(actions(run(secrets), "made", "renewed")) == {"api-pki/sa.pub"}
    assert files(secrets["api-pki"])["sa.pub"] == before
    put(secrets["api-pki"], "sa.pub", certificates.public_pem(certificates.new_key()) + before)
    assert writes(run(secrets)) == []  # a former key verifies the tokens that it has signed


@pytest.mark.parametrize("name", ALL)
def test_secret_that_is_not_ours_is_refused(secrets: dict[str, Obj], name: str) -> None:
    labels = secrets[name]["metadata"].pop("labels")
    with pytest.raises(Damaged, match=f"Secret shop/{name} is there, but isn't ours.*vsyncer.dev/pki=api"):
        run(secrets)
    secrets[name]["metadata"]["labels"] = {layout.MARK: "other"}
    with pytest.raises(Damaged, match=f"Secret shop/{name} has the certificates of the Service other"):
        run(secrets)
    assert labels == {layout.MARK: "api"}


def test_foreign_data_in_a_secret_is_kept(secrets: dict[str, Obj]) -> None:
    secret, other = secrets["api-pki"], {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "9"}
    secret["metadata"]["labels"]["team"] = "a"
    secret["metadata"]["ownerReferences"].insert(0, other)
    put(secret, "note", b"hello")
    assert writes(run(secrets)) == []
    run(secrets, names=("api.example.com",))
    assert files(secrets["api-pki"])["note"] == b"hello"
    assert secrets["api-pki"]["metadata"]["labels"] == {"team": "a", layout.MARK: "api"}
    assert secrets["api-pki"]["metadata"]["ownerReferences"][0] == other


def test_daemon_secret_names_virtual_cluster_while_configured(secrets: dict[str, Obj]) -> None:
    metadata = secrets["api-daemon"]["metadata"]
    metadata["labels"]["team"], metadata["annotations"] = "a", {"note": "b"}
    virtual = "vsyncer.dev/virtual-cluster"
    assert writes(run(secrets, followed=("shop", "vc-shop"))) == ["api-daemon"]
    found = secrets["api-daemon"]["metadata"]
    assert found["labels"] == {"team": "a", layout.MARK: "api", virtual: ""}
    assert found["annotations"] == {"note": "b", f"{virtual}-name": "shop", f"{virtual}-host-namespace": "vc-shop"}
    assert writes(run(secrets, followed=("shop", "vc-shop"))) == []
    assert writes(run(secrets)) == [], "a run that says nothing of it leaves it as it is"
    assert writes(run(secrets, followed=("", ""))) == ["api-daemon"]
    found = secrets["api-daemon"]["metadata"]
    assert (found["labels"], found["annotations"]) == ({"team": "a", layout.MARK: "api"}, {"note": "b"})


def test_secret_that_no_daemon_follows_gets_no_annotations(secrets: dict[str, Obj]) -> None:
    assert writes(run(secrets, followed=("", ""))) == []


def test_secrets_belong_to_the_service_that_is_there_unless_they_are_kept(secrets: dict[str, Obj]) -> None:
    assert writes(run(secrets, of=service(uid="2"))) == ALL
    for name in ALL:
        [owner] = secrets[name]["metadata"]["ownerReferences"]
        assert owner == {"apiVersion": "v1", "kind": "Service", "name": "api", "uid": "2"}
    assert writes(run(secrets, of=service(uid="2"), keep=True)) == ALL
    assert all("ownerReferences" not in secrets[name]["metadata"] for name in ALL)
    assert writes(run(secrets, of=service(uid="3"), keep=True)) == []


def test_secret_is_replaced_only_as_it_was_read(secrets: dict[str, Obj]) -> None:
    secrets["api-pki"]["metadata"]["resourceVersion"] = "77"
    [write] = [step.write for step in run(secrets, names=("api.example.com",)).steps if step.write]
    assert write["metadata"]["resourceVersion"] == "77"
