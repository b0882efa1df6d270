"""Issuers work on the host for the Certificates of the virtual namespace that they are in."""

from collections.abc import Iterable

from syncer.api import Context, Key, Mirror, Obj, Paths, Refers, Refused, Resource, dig, key_of
from vsyncer_cert_manager.kinds import ISSUERS, SECRETS, SERVICE_ACCOUNTS

_DNS01 = (
    "acmeDNS.accountSecretRef",
    "akamai.accessTokenSecretRef",
    "akamai.clientSecretSecretRef",
    "akamai.clientTokenSecretRef",
    "azureDNS.clientSecretSecretRef",
    "cloudDNS.serviceAccountSecretRef",
    "cloudflare.apiKeySecretRef",
    "cloudflare.apiTokenSecretRef",
    "digitalocean.tokenSecretRef",
    "rfc2136.tsigSecretSecretRef",
    "route53.accessKeyIDSecretRef",
    "route53.secretAccessKeySecretRef",
)
_SOLVER_POD = "acme.solvers[].http01.{}.podTemplate.spec"

#: What an Issuer names in its namespace, below its ``spec``. (cert-manager's API reference, ``IssuerSpec`` of v1.)
NAMES: Paths[Resource] = Paths(
    {
        "ca.secretName": SECRETS,
        "acme.privateKeySecretRef.name": SECRETS,
        "acme.externalAccountBinding.keySecretRef.name": SECRETS,
        **{f"acme.solvers[].dns01.{path}.name": SECRETS for path in _DNS01},
        "acme.solvers[].dns01.route53.auth.kubernetes.serviceAccountRef.name": SERVICE_ACCOUNTS,
        **{f"{_SOLVER_POD.format(way)}.imagePullSecrets[].name": SECRETS for way in ("ingress", "gatewayHTTPRoute")},
        **{
            f"{_SOLVER_POD.format(way)}.serviceAccountName": SERVICE_ACCOUNTS for way in ("ingress", "gatewayHTTPRoute")
        },
        "vault.auth.tokenSecretRef.name": SECRETS,
        "vault.auth.appRole.secretRef.name": SECRETS,
        "vault.auth.clientCertificate.secretName": SECRETS,
        "vault.auth.kubernetes.secretRef.name": SECRETS,
        "vault.auth.kubernetes.serviceAccountRef.name": SERVICE_ACCOUNTS,
        "vault.caBundleSecretRef.name": SECRETS,
        "vault.clientCertSecretRef.name": SECRETS,
        "vault.clientKeySecretRef.name": SECRETS,
        "venafi.tpp.credentialsRef.name": SECRETS,
        "venafi.tpp.caBundleSecretRef.name": SECRETS,
        "venafi.cloud.apiTokenSecretRef.name": SECRETS,
    }
)

#: What can't be made right on the host, with the reason.
REFUSED = {
    "dns01.webhook": "only the webhook knows which names in its config are those of Secrets",
    "http01.ingress.name": "cert-manager would edit the copy of that Ingress. Use ingressClassName",
}


class IssuerSyncer(Mirror, Refers):
    """The virtual side owns how certificates are issued, the host side whether that works."""

    name = "issuers"
    resource = ISSUERS
    down = ("spec",)
    up = ("status",)
    refers_to = (SECRETS,)

    def references(self, virtual: Obj) -> Iterable[tuple[Resource, Key]]:
        """Every Secret that the Issuer names. An ACME account key that the tenant hasn't got is made on the host."""
        namespace, found = key_of(virtual).namespace, NAMES.found(virtual.get("spec") or {})
        return [(kind, Key(namespace, name)) for kind, name in found if kind is SECRETS]

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        """The copy, with the names of the copies of what it names."""
        host, namespace = super().translate(ctx, virtual), key_of(virtual).namespace
        for place, solver in enumerate(dig(host, "spec.acme.solvers") or ()):
            for path, why in REFUSED.items():
                if dig(solver, path):
                    raise Refused(f"can't be synced: {why}", path=f"spec.acme.solvers[{place}].{path}")
        spec = NAMES.rewritten(host.get("spec") or {}, lambda kind, name: ctx.host_name(kind, namespace, name))
        return host | {"spec": spec}
