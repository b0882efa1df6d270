"""Certificates are issued on the host, each into a Secret with our marks, so that it can be copied back."""

from collections.abc import Mapping
from typing import ClassVar

from syncer.api import Context, Key, Mirror, Obj, Reference, References, Refused, Side, Source, dig, key_of
from vsyncer_cert_manager.cluster_issuers import published
from vsyncer_cert_manager.kinds import CERTIFICATES, CLUSTER_ISSUERS, GROUP, ISSUERS, SECRETS


class CertificateSyncer(Mirror):
    """The virtual side owns the spec, the host the status."""

    name = "certificates"
    resource = CERTIFICATES
    down = ("spec",)
    up = ("status",)
    reads = (Source(Side.VIRTUAL, SECRETS),)
    #: The passwords of keystores must be on the host. The Secret of ``secretName`` begins there.
    references: ClassVar[References] = {
        "spec.keystores.jks.passwordSecretRef.name": SECRETS,
        "spec.keystores.pkcs12.passwordSecretRef.name": SECRETS,
        "spec.secretName": Reference(SECRETS, use="named"),
    }

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        """Return the copy, with our marks for the Secret that will be created, and the issuer's host name."""
        host, namespace = super().translate(ctx, virtual), key_of(virtual).namespace
        spec: Obj = host.get("spec") or {}
        if name := dig(virtual, "spec.secretName"):
            key = Key(namespace, name)
            _refuse_taken(ctx, key)
            spec = spec | {"secretTemplate": _marked(ctx, key, spec.get("secretTemplate") or {})}
        return host | {"spec": spec | {"issuerRef": _issuer(ctx, namespace, spec.get("issuerRef") or {})}}


def _refuse_taken(ctx: Context, key: Key) -> None:
    """Refuse a Certificate whose Secret the tenant has created: cert-manager and the daemon would
    overwrite it in turns.
    """
    secret = ctx.virtual(SECRETS, key)
    if secret is not None and not ctx.marks.is_from_here(secret, cluster=ctx.identity):
        why = f"there is a Secret {key} that was not issued for a Certificate. Delete it, or name another"
        raise Refused(why, path="spec.secretName")


def _marked(ctx: Context, key: Key, template: Obj) -> Obj:
    """Return the ``secretTemplate`` with the marks that lead the Secret back.

    Their kind is Certificate, so that the Secret is never taken for the copy of a virtual Secret.
    """
    place = ctx.names.to_host(SECRETS, key)
    original = {"metadata": {"name": key.name, "namespace": key.namespace}}
    return {
        **template,
        "labels": _without_marks(ctx, template, "labels") | ctx.marks.labels(ctx.identity, key),
        "annotations": _without_marks(ctx, template, "annotations")
        | ctx.marks.annotations(CERTIFICATES, original, place),
    }


def _without_marks(ctx: Context, template: Obj, part: str) -> dict[str, str]:
    given: Mapping[str, str] = template.get(part) or {}
    return {key: value for key, value in given.items() if not ctx.marks.is_mark(key)}


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
    why = f"there is no {kind} {name}. Use an Issuer, or ask for it in sync.fromHost.clusterIssuers.names"
    raise Refused(why, path="spec.issuerRef.name")
