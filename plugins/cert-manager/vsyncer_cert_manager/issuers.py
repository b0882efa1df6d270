"""Issuers work on the host for the Certificates of their virtual namespace."""

from collections.abc import Collection, Mapping
from typing import ClassVar

from syncer.api import (
    AllowedFields,
    Config,
    Context,
    Mirror,
    Obj,
    Reference,
    References,
    Refused,
    dig,
)
from vsyncer_cert_manager.kinds import ISSUERS, SECRETS

#: The names in an Issuer. (cert-manager's API reference, ``IssuerSpec`` of v1.)
_NAMES: References = {
    "ca.secretName": SECRETS,
    #: cert-manager makes a key that is missing.
    "acme.privateKeySecretRef.name": Reference(SECRETS, comes_later=True),
    "acme.externalAccountBinding.keySecretRef.name": SECRETS,
    "acme.solvers[].dns01.acmeDNS.accountSecretRef.name": SECRETS,
    "acme.solvers[].dns01.akamai.accessTokenSecretRef.name": SECRETS,
    "acme.solvers[].dns01.akamai.clientSecretSecretRef.name": SECRETS,
    "acme.solvers[].dns01.akamai.clientTokenSecretRef.name": SECRETS,
    "acme.solvers[].dns01.azureDNS.clientSecretSecretRef.name": SECRETS,
    "acme.solvers[].dns01.cloudDNS.serviceAccountSecretRef.name": SECRETS,
    "acme.solvers[].dns01.cloudflare.apiKeySecretRef.name": SECRETS,
    "acme.solvers[].dns01.cloudflare.apiTokenSecretRef.name": SECRETS,
    "acme.solvers[].dns01.digitalocean.tokenSecretRef.name": SECRETS,
    "acme.solvers[].dns01.rfc2136.tsigSecretSecretRef.name": SECRETS,
    "acme.solvers[].dns01.route53.accessKeyIDSecretRef.name": SECRETS,
    "acme.solvers[].dns01.route53.secretAccessKeySecretRef.name": SECRETS,
    "vault.auth.tokenSecretRef.name": SECRETS,
    "vault.auth.appRole.secretRef.name": SECRETS,
    "vault.auth.clientCertificate.secretName": SECRETS,
    "vault.auth.kubernetes.secretRef.name": SECRETS,
    "vault.caBundleSecretRef.name": SECRETS,
    "vault.clientCertSecretRef.name": SECRETS,
    "vault.clientKeySecretRef.name": SECRETS,
    "venafi.tpp.credentialsRef.name": SECRETS,
    "venafi.tpp.caBundleSecretRef.name": SECRETS,
    "venafi.cloud.apiTokenSecretRef.name": SECRETS,
}

#: The other fields that tenants may set: they name nothing of the host but what the configuration
#: allows, and add nothing to the objects that cert-manager makes there.
_OTHERS = {
    "": ("selfSigned.crlDistributionPoints",),
    "ca": ("crlDistributionPoints", "ocspServers", "issuingCertificateURLs"),
    "vault": ("server", "serverName", "path", "namespace", "caBundle"),
    "vault.auth.appRole": ("path", "roleId"),
    "vault.auth.clientCertificate": ("mountPath", "name"),
    "vault.auth.kubernetes": ("mountPath", "role"),
    "venafi": ("zone", "tpp.url", "tpp.caBundle", "cloud.url"),
    "acme": (
        *("email", "server", "preferredChain", "caBundle", "skipTLSVerify", "profile"),
        *("disableAccountKeyGeneration", "enableDurationFeature"),
    ),
    "acme.externalAccountBinding": ("keyID", "keyAlgorithm"),
    "acme.solvers[]": ("selector", "dns01.cnameStrategy"),
    "acme.solvers[].http01.ingress": ("class", "ingressClassName", "serviceType"),
    "acme.solvers[].http01.gatewayHTTPRoute": ("serviceType",),
    "acme.solvers[].http01.gatewayHTTPRoute.parentRefs[]": (
        "group",
        "kind",
        "name",
        "sectionName",
        "port",
    ),
    "acme.solvers[].dns01.acmeDNS": ("host",),
    "acme.solvers[].dns01.akamai": ("serviceConsumerDomain",),
    "acme.solvers[].dns01.azureDNS": (
        *("clientID", "subscriptionID", "tenantID", "resourceGroupName"),
        *("hostedZoneName", "environment"),
    ),
    "acme.solvers[].dns01.cloudDNS": ("project", "hostedZoneName"),
    "acme.solvers[].dns01.cloudflare": ("email",),
    "acme.solvers[].dns01.rfc2136": ("nameserver", "tsigKeyName", "tsigAlgorithm", "protocol"),
    "acme.solvers[].dns01.route53": ("accessKeyID", "role", "hostedZoneID", "region"),
}


def _allowed() -> AllowedFields:
    """Return all fields that tenants may set; beside the name of a Secret there may be a key."""
    keys = [path.removesuffix("name") + "key" for path in _NAMES if path.endswith("Ref.name")]
    others = [
        f"{above}.{field}".lstrip(".") for above, fields in _OTHERS.items() for field in fields
    ]
    return AllowedFields(*_NAMES, *keys, *others)


ALLOWED = _allowed()

#: Reasons why a field that a tenant might well ask for isn't synced.
_NO_ACCOUNT = "cert-manager would make a token of the host's, with any audience, and send it away"
_A_POD = "cert-manager would run that Pod beside those that are synced"
#: Such fields, each with its reason: of a solver, and of the spec.
REFUSED = {
    "dns01.route53.auth": f"{_NO_ACCOUNT}. Use accessKeyIDSecretRef",
    "dns01.webhook": "only the webhook knows which names in its config are those of Secrets",
    "http01.ingress.name": "cert-manager would edit the copy of that Ingress. Use ingressClassName",
    "http01.ingress.ingressTemplate": (
        "its annotations would configure the host's ingress controller"
    ),
    "http01.ingress.podTemplate": _A_POD,
    "http01.gatewayHTTPRoute.podTemplate": _A_POD,
}
REFUSED_IN_SPEC = {
    "vault.auth.kubernetes.serviceAccountRef": (
        f"{_NO_ACCOUNT}. Use secretRef, appRole or tokenSecretRef"
    ),
}


class IssuerConfig(Config):
    """What Issuers of tenants may use of the host."""

    gateways: tuple[str, ...] = ()
    """The names of Gateways that `http01.gatewayHTTPRoute` may name, besides the copies in the host
    namespace.

    cert-manager makes routes of the tenant's host names there. None by default.
    """


class IssuerSyncer(Mirror[IssuerConfig]):
    """The virtual side owns the spec, the host the status.

    Every Secret that an Issuer names is synced. A missing ACME account key is created on the host.
    """

    name = "issuers"
    resource = ISSUERS
    down = ("spec",)
    up = ("status",)
    references: ClassVar[References] = {f"spec.{path}": kind for path, kind in _NAMES.items()}

    def translate(self, ctx: Context[IssuerConfig], virtual: Obj) -> Obj:
        """Return the copy.

        Raises:
            Refused: The Issuer would do something on the host that the tenant may not.
        """
        _refuse(virtual.get("spec"), REFUSED_IN_SPEC, at="spec")
        solvers = dig(virtual, "spec.acme.solvers")
        for index, solver in enumerate(solvers if isinstance(solvers, list) else ()):
            _refuse(solver, REFUSED, at=f"spec.acme.solvers[{index}]")
        ALLOWED.refuse_others(virtual.get("spec"), at="spec")
        for index, solver in enumerate(solvers if isinstance(solvers, list) else ()):
            _refuse_gateways(solver, ctx.config.gateways, at=f"spec.acme.solvers[{index}]")
        return super().translate(ctx, virtual)


def _refuse(given: object, refused: Mapping[str, str], *, at: str) -> None:
    for path, why in refused.items():
        if isinstance(given, dict) and dig(given, path):
            raise Refused(f"can't be synced: {why}", path=f"{at}.{path}")


def _refuse_gateways(solver: object, allowed: Collection[str], *, at: str) -> None:
    parents = (
        dig(solver, "http01.gatewayHTTPRoute.parentRefs") if isinstance(solver, dict) else None
    )
    for index, parent in enumerate(parents if isinstance(parents, list) else ()):
        if isinstance(parent, dict) and parent.get("name") not in allowed:
            why = (
                "can't be synced: that is a Gateway of the host,"
                " and sync.toHost.issuers.gateways doesn't name it"
            )
            raise Refused(why, path=f"{at}.http01.gatewayHTTPRoute.parentRefs[{index}].name")
