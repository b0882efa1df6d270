"""Issuers work on the host for the Certificates of their virtual namespace."""

from syncer.api import Context, Mirror, Obj, Reference, References, Refused, dig
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

#: ServiceAccounts are on the host whether or not an Issuer names them.
_ACCOUNT = Reference(SERVICE_ACCOUNTS, use="named")

#: The references in an Issuer. (cert-manager's API reference, ``IssuerSpec`` of v1.)
REFERENCES: References = {
    "spec.ca.secretName": SECRETS,
    "spec.acme.privateKeySecretRef.name": SECRETS,
    "spec.acme.externalAccountBinding.keySecretRef.name": SECRETS,
    **{f"spec.acme.solvers[].dns01.{path}.name": SECRETS for path in _DNS01},
    "spec.acme.solvers[].dns01.route53.auth.kubernetes.serviceAccountRef.name": _ACCOUNT,
    **{f"spec.{_SOLVER_POD.format(way)}.imagePullSecrets[].name": SECRETS for way in ("ingress", "gatewayHTTPRoute")},
    **{f"spec.{_SOLVER_POD.format(way)}.serviceAccountName": _ACCOUNT for way in ("ingress", "gatewayHTTPRoute")},
    "spec.vault.auth.tokenSecretRef.name": SECRETS,
    "spec.vault.auth.appRole.secretRef.name": SECRETS,
    "spec.vault.auth.clientCertificate.secretName": SECRETS,
    "spec.vault.auth.kubernetes.secretRef.name": SECRETS,
    "spec.vault.auth.kubernetes.serviceAccountRef.name": _ACCOUNT,
    "spec.vault.caBundleSecretRef.name": SECRETS,
    "spec.vault.clientCertSecretRef.name": SECRETS,
    "spec.vault.clientKeySecretRef.name": SECRETS,
    "spec.venafi.tpp.credentialsRef.name": SECRETS,
    "spec.venafi.tpp.caBundleSecretRef.name": SECRETS,
    "spec.venafi.cloud.apiTokenSecretRef.name": SECRETS,
}

#: Fields that can't be translated to the host, with the reason.
REFUSED = {
    "dns01.webhook": "only the webhook knows which names in its config are those of Secrets",
    "http01.ingress.name": "cert-manager would edit the copy of that Ingress. Use ingressClassName",
}


class IssuerSyncer(Mirror):
    """The virtual side owns the spec, the host the status.

    Every Secret that an Issuer names is synced. A missing ACME account key is created on the host.
    """

    name = "issuers"
    resource = ISSUERS
    down = ("spec",)
    up = ("status",)
    references = REFERENCES

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        """Return the copy.

        Raises:
            Refused: The Issuer would do on the host what the tenant may not.
        """
        host = super().translate(ctx, virtual)
        for place, solver in enumerate(dig(host, "spec.acme.solvers") or ()):
            for path, why in REFUSED.items():
                if dig(solver, path):
                    raise Refused(f"can't be synced: {why}", path=f"spec.acme.solvers[{place}].{path}")
        return host
