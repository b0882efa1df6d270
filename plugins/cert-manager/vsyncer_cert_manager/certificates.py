"""Certificates are issued on the host, each into a Secret with our marks.

So the Secret can be copied back.
"""

from typing import ClassVar

from syncer.api import (
    AllowedFields,
    Context,
    Key,
    Mirror,
    Obj,
    Reference,
    References,
    Refused,
    Side,
    Source,
    dig,
    key_of,
)
from vsyncer_cert_manager.cluster_issuers import published
from vsyncer_cert_manager.kinds import CERTIFICATES, CLUSTER_ISSUERS, GROUP, ISSUERS, SECRETS

#: The fields that tenants may set. (cert-manager's API reference, ``CertificateSpec`` of v1.) Of
#: ``secretTemplate`` nothing goes down, see below.
ALLOWED = AllowedFields(
    *("additionalOutputFormats", "commonName", "dnsNames", "duration", "emailAddresses"),
    *(
        "encodeUsagesInRequest",
        "ipAddresses",
        "isCA",
        "issuerRef",
        "literalSubject",
        "nameConstraints",
    ),
    *("otherNames", "privateKey", "renewBefore", "renewBeforePercentage", "revisionHistoryLimit"),
    *("secretName", "signatureAlgorithm", "subject", "uris", "usages"),
    *(f"keystores.jks.{field}" for field in ("alias", "create", "password", "passwordSecretRef")),
    *(
        f"keystores.pkcs12.{field}"
        for field in ("create", "password", "passwordSecretRef", "profile")
    ),
    *(f"secretTemplate.{part}" for part in ("annotations", "labels")),
)


class CertificateSyncer(Mirror):
    """The virtual side owns the spec, the host the status.

    The labels and annotations of ``secretTemplate`` are set on the virtual Secret alone: on the
    host's, they could have it copied into other namespaces, or from there.
    """

    name = "certificates"
    resource = CERTIFICATES
    down = ("spec",)
    up = ("status",)
    reads = (Source(Side.VIRTUAL, SECRETS),)
    #: The passwords of keystores must be on the host. The Secret of ``secretName`` begins there.
    references: ClassVar[References] = {
        "spec.keystores.jks.passwordSecretRef.name": SECRETS,
        "spec.keystores.pkcs12.passwordSecretRef.name": SECRETS,
        "spec.secretName": Reference(SECRETS, use="named", comes_later=True),
    }

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        """Return the copy, with our marks for the Secret to come, and the issuer's host name.

        Raises:
            Refused: The Certificate has a field that tenants may not set.
        """
        ALLOWED.refuse_others(virtual.get("spec"), at="spec")
        host, namespace = super().translate(ctx, virtual), key_of(virtual).namespace
        spec: Obj = {
            name: value
            for name, value in (host.get("spec") or {}).items()
            if name != "secretTemplate"
        }
        if name := dig(virtual, "spec.secretName"):
            key = Key(namespace, name)
            _refuse_taken(ctx, key)
            spec = spec | {"secretTemplate": _marks(ctx, key)}
        return host | {
            "spec": spec | {"issuerRef": _issuer(ctx, namespace, spec.get("issuerRef") or {})}
        }


def _refuse_taken(ctx: Context, key: Key) -> None:
    """Refuse a Certificate whose Secret the tenant has created: cert-manager and the daemon would
    overwrite it in turns.
    """
    secret = ctx.virtual(SECRETS, key)
    if secret is not None and not ctx.marks.is_from_here(secret, cluster=ctx.identity):
        why = f"there is a Secret {key} that was not issued for a Certificate"
        raise Refused(f"{why}. Delete it, or name another", path="spec.secretName")


def _marks(ctx: Context, key: Key) -> Obj:
    """Return the ``secretTemplate`` with the marks that lead the Secret back.

    Their kind is Certificate, so that the Secret is never taken for the copy of a virtual Secret.
    """
    host_key = ctx.names.to_host(SECRETS, key)
    original = {"metadata": {"name": key.name, "namespace": key.namespace}}
    return {
        "labels": ctx.marks.labels(ctx.identity, key),
        "annotations": ctx.marks.annotations(CERTIFICATES, original, host_key),
    }


def _issuer(ctx: Context, namespace: str, reference: Obj) -> Obj:
    """Return the reference to the issuer on the host: the copy of a tenant's own, or one that the
    host publishes.
    """
    name, kind = dig(reference, "name", ""), reference.get("kind") or ISSUERS.kind
    if (reference.get("group") or GROUP) != GROUP:
        raise Refused(f"only issuers of {GROUP} are synced", path="spec.issuerRef.group")
    if kind == ISSUERS.kind:
        return reference | {"name": ctx.host_name(ISSUERS, namespace, name)}
    if kind == CLUSTER_ISSUERS.kind and name in published(ctx.settings):
        return reference
    how = "Use an Issuer, or ask for it in sync.fromHost.clusterIssuers.names"
    raise Refused(f"there is no {kind} {name}. {how}", path="spec.issuerRef.name")
