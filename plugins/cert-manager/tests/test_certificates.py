"""Certificates go to the host, and issued Secrets come back, without a cluster."""

from typing import Any

import pytest
from vsyncer_cert_manager.certificate_secrets import CertificateSecretSyncer
from vsyncer_cert_manager.certificates import CertificateSyncer
from vsyncer_cert_manager.cluster_issuers import ClusterIssuerSyncer
from vsyncer_cert_manager.issuers import IssuerSyncer
from vsyncer_cert_manager.kinds import CERTIFICATES, CLUSTER_ISSUERS, ISSUERS, SECRETS

from syncer.api import Marks, Obj, Refused
from syncer.testing import World
from syncer.testing.cases import Case, load
from syncer.testing.objects import build, pod_mounting, secret, serviceaccount

CERTIFICATE = build(
    CERTIFICATES,
    "web",
    spec={"secretName": "web-tls", "issuerRef": {"name": "ca"}, "dnsNames": ["shop.example.org"]},
)
ON_HOST = "vc-ns/web-tls-x-shop-x-vc"


@pytest.fixture
def world() -> World:
    """All built-in syncers and those of this package.

    A Certificate was issued, but not brought back yet.
    """
    world = World(config={"networking": {"dns": {"service": ""}}}).given(virtual=[CERTIFICATE])
    for syncer in (CertificateSyncer, IssuerSyncer, CertificateSecretSyncer):
        world.syncer(syncer)
    world.settle(CertificateSyncer, "shop/web")
    return world.given(host=[issued(world)])


def issued(world: World, key: str = "a2V5") -> Obj:
    """Return the Secret that cert-manager makes of the Certificate on the host."""
    certificate = world.host("Certificate", "vc-ns/web-x-shop-x-vc")
    assert certificate is not None
    spec = certificate["spec"]
    metadata = {
        "labels": {**spec["secretTemplate"]["labels"], "controller.cert-manager.io/fao": "true"},
        "annotations": {
            **spec["secretTemplate"]["annotations"],
            "cert-manager.io/certificate-name": certificate["metadata"]["name"],
            "cert-manager.io/issuer-name": spec["issuerRef"]["name"],
        },
    }
    contents: Obj = {"type": "kubernetes.io/tls", "data": {"tls.key": key, "tls.crt": "Y3J0"}}
    return build(SECRETS, spec["secretName"], namespace="vc-ns", metadata=metadata, **contents)


def there(obj: Obj | None) -> Obj:
    assert obj is not None
    return obj


def brought_back(world: World) -> Obj:
    world.settle(CertificateSecretSyncer, "shop/web-tls")
    return there(world.virtual("Secret", "shop/web-tls"))


def asked(world: World) -> set[tuple[str, str]]:
    return {(one.syncer, str(one.key)) for one in world.woken()}


@pytest.mark.parametrize("case", load("tests/cases"), ids=str)
def test_case(case: Case) -> None:
    case.check([CertificateSyncer, IssuerSyncer, ClusterIssuerSyncer])


def test_the_secret_comes_back_under_the_virtual_name(world: World) -> None:
    found = brought_back(world)
    assert found["type"] == "kubernetes.io/tls"
    assert found["data"] == {"tls.key": "a2V5", "tls.crt": "Y3J0"}
    assert found["metadata"]["annotations"]["cert-manager.io/certificate-name"] == "web"
    assert found["metadata"]["annotations"]["cert-manager.io/issuer-name"] == "ca"


TEMPLATE = {
    "labels": {"app": "web"},
    "annotations": {
        "vsyncer.dev/fields": "{}",
        "reflector.v1.k8s.emberstack.com/reflection-auto-enabled": "true",
    },
}


def test_the_template_of_the_secret_stays_in_the_virtual_cluster(world: World) -> None:
    world.given(
        virtual=[CERTIFICATE | {"spec": CERTIFICATE["spec"] | {"secretTemplate": TEMPLATE}}]
    )
    world.settle(CertificateSyncer, "shop/web")
    sent = there(world.copy_of(CertificateSyncer, "shop/web"))["spec"]["secretTemplate"]
    given = [*sent["labels"], *sent["annotations"]]
    assert all(Marks().is_mark(key) for key in given), given
    assert "vsyncer.dev/fields" not in sent["annotations"]
    found = brought_back(world)["metadata"]
    assert found["labels"]["app"] == "web"
    assert found["annotations"]["reflector.v1.k8s.emberstack.com/reflection-auto-enabled"] == "true"
    assert found["annotations"]["vsyncer.dev/fields"] != "{}"


def test_a_renewed_secret_comes_back_too(world: World) -> None:
    brought_back(world)
    world.given(host=[issued(world, key="bmV3")])
    assert brought_back(world)["data"]["tls.key"] == "bmV3"


def test_a_pods_copy_mounts_the_secret_issued_on_the_host(world: World) -> None:
    brought_back(world)
    world.given(virtual=[pod_mounting("web", secret="web-tls"), serviceaccount("default")])
    world.settle("serviceaccounts", "shop/default")
    world.settle("pods", "shop/web")
    [volume] = [
        one
        for one in there(world.copy_of("pods", "shop/web"))["spec"]["volumes"]
        if "secret" in one
    ]
    assert f"vc-ns/{volume['secret']['secretName']}" == ON_HOST


def test_the_secret_is_not_copied_back_down(world: World) -> None:
    before = there(world.host("Secret", ON_HOST))
    brought_back(world)
    world.given(virtual=[pod_mounting("web", secret="web-tls")])
    assert world.settle("secrets", "shop/web-tls") == []
    assert world.settle(CertificateSecretSyncer, "shop/web-tls") == []
    assert world.host("Secret", ON_HOST) == before


def test_a_secret_that_the_tenant_deletes_comes_again(world: World) -> None:
    found = brought_back(world)
    world.woken()
    world.gone(virtual=[found])
    assert ("certificate-secrets", "shop/web-tls") in asked(world)
    brought_back(world)


def test_the_secret_outlives_its_certificate_until_the_tenant_deletes_it(world: World) -> None:
    found = brought_back(world)
    world.gone(virtual=[CERTIFICATE])
    assert world.settle(CertificateSecretSyncer, "shop/web-tls") == []
    world.gone(virtual=[found])
    world.settle(CertificateSecretSyncer, "shop/web-tls")
    assert world.host("Secret", ON_HOST) is None


def test_a_secret_of_the_tenants_own_is_not_issued_over() -> None:
    world = World([CertificateSyncer]).given(virtual=[CERTIFICATE, secret("web-tls")])
    with pytest.raises(Refused, match="was not issued for a Certificate"):
        world.decide(CertificateSyncer, "shop/web")


def test_a_replica_that_a_host_controller_made_of_the_secret_stays_on_the_host(
    world: World,
) -> None:
    copied = issued(world) | {"metadata": issued(world)["metadata"] | {"name": "replica"}}
    world.woken()
    world.given(host=[copied])
    assert [one for one in world.woken() if one.syncer == "certificate-secrets"] == []
    assert world.settle(CertificateSecretSyncer, "shop/web-tls", host_key="vc-ns/replica") == []


def test_a_certificate_that_begins_to_name_a_secret_wakes_it(world: World) -> None:
    world.woken()
    world.given(
        virtual=[
            build(CERTIFICATES, "api", spec={"secretName": "api-tls", "issuerRef": {"name": "ca"}})
        ]
    )
    assert ("certificate-secrets", "shop/api-tls") in asked(world)


def test_an_issuer_brings_the_secrets_that_it_names(world: World) -> None:
    spec = {"acme": {"privateKeySecretRef": {"name": "account"}}, "ca": {"secretName": "root"}}
    world.given(
        virtual=[
            secret("root"),
            secret("account"),
            secret("other"),
            build(ISSUERS, "ca", spec=spec),
        ]
    )
    for name in ("root", "account", "other"):
        world.settle("secrets", f"shop/{name}")
    copies = {
        name: world.copy_of("secrets", f"shop/{name}") for name in ("root", "account", "other")
    }
    assert {name for name, copy in copies.items() if copy} == {"root", "account"}
    world.settle(IssuerSyncer, "shop/ca")
    copied = there(world.copy_of(IssuerSyncer, "shop/ca"))["spec"]
    assert copied["ca"]["secretName"] == there(copies["root"])["metadata"]["name"]


def cluster_issuer(name: str, **parts: Any) -> Obj:
    return build(CLUSTER_ISSUERS, name, **parts)


def test_published_cluster_issuers_are_shown_without_their_spec() -> None:
    config = {"sync": {"fromHost": {"clusterIssuers": {"names": ["public"]}}}}
    spec = {"acme": {"email": "operator@example.org"}}
    world = World([ClusterIssuerSyncer], config=config)
    world.given(
        host=[
            cluster_issuer(name, spec=spec, status={"conditions": []})
            for name in ("public", "internal")
        ]
    )
    for name in ("public", "internal"):
        world.settle(ClusterIssuerSyncer, name)
    assert there(world.virtual("ClusterIssuer", "public"))["spec"] == {}
    assert world.virtual("ClusterIssuer", "internal") is None
    world.configure({"sync": {"fromHost": {"clusterIssuers": {"names": []}}}})
    world.settle(ClusterIssuerSyncer, "public", host_key="public")
    assert world.virtual("ClusterIssuer", "public") is None
