"""The laws of every syncer, over those of this package."""

from typing import Any

from hypothesis import strategies as st
from vsyncer_cert_manager.certificate_secrets import CertificateSecretSyncer
from vsyncer_cert_manager.certificates import CertificateSyncer
from vsyncer_cert_manager.cluster_issuers import ClusterIssuerSyncer
from vsyncer_cert_manager.issuers import IssuerSyncer
from vsyncer_cert_manager.kinds import CERTIFICATES, CLUSTER_ISSUERS, ISSUERS, SECRETS

from syncer.api import Key, Marks, Obj, key_of
from syncer.names import SingleNamespace
from syncer.testing import strategies
from syncer.testing.laws import Scene, laws_for
from syncer.testing.objects import build

#: An object with an unknown field in its spec is refused.
REFUSED = ["spec"]
MARKS, NAMES = Marks(), SingleNamespace(cluster="vc", namespace="vc-ns")

SPEC = st.fixed_dictionaries(
    {"issuerRef": st.just({"name": "ca"})},
    optional={
        "secretName": strategies.NAMES,
        "secretTemplate": st.sampled_from(
            [{"labels": {"app": "web"}}, {"annotations": {"vsyncer.dev/cluster": "x"}}]
        ),
        "keystores": st.builds(
            lambda name: {"jks": {"passwordSecretRef": {"name": name}}}, strategies.NAMES
        ),
    },
)
ISSUER = strategies.some(
    {
        "ca": st.builds(lambda name: {"secretName": name}, strategies.NAMES),
        "acme": st.builds(lambda name: {"privateKeySecretRef": {"name": name}}, strategies.NAMES),
    }
)


def issued(found: Obj, certificate: str | None) -> Scene:
    """A Secret as a tenant may have it, as if cert-manager had made it for a Certificate."""
    key = key_of(found)
    host_key = NAMES.to_host(SECRETS, key)
    metadata: dict[str, Any] = {
        "labels": (found["metadata"].get("labels") or {}) | MARKS.labels("vc.vc-ns", key),
        "annotations": (found["metadata"].get("annotations") or {})
        | MARKS.annotations(CERTIFICATES, found, host_key),
    }
    host = found | {
        "metadata": {"name": host_key.name, "namespace": host_key.namespace, **metadata}
    }
    spec = {"secretName": key.name, "issuerRef": {"name": "ca"}}
    wanted = (
        [build(CERTIFICATES, certificate, namespace=key.namespace, spec=spec)]
        if certificate
        else []
    )
    return Scene(Key(key.namespace, key.name), virtual=tuple(wanted), host=(host,))


TestCertificates = laws_for(
    CertificateSyncer,
    objects=strategies.objects(CERTIFICATES, st.fixed_dictionaries({"spec": SPEC})),
    dropped=REFUSED,
)
TestIssuers = laws_for(
    IssuerSyncer,
    objects=strategies.objects(ISSUERS, st.fixed_dictionaries({"spec": ISSUER})),
    dropped=REFUSED,
)
TestCertificateSecrets = laws_for(
    CertificateSecretSyncer,
    objects=st.builds(issued, strategies.secrets(), st.sampled_from(["web", "web", None])),
)
TestClusterIssuers = laws_for(
    ClusterIssuerSyncer,
    objects=strategies.objects(
        CLUSTER_ISSUERS, st.just({"spec": {"ca": {}}, "status": {}}), names=st.just("public")
    ).map(lambda issuer: Scene(key_of(issuer), host=(issuer,))),
    config={"sync": {"fromHost": {"clusterIssuers": {"names": ["public"]}}}},
    dropped=["spec"],
)
