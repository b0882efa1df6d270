"""Issued certificates come back from the host as the Secret that the tenant's Certificate names."""

from collections.abc import Iterable, Sequence

from syncer.api import (
    Context,
    Decision,
    Index,
    Indexes,
    Key,
    Obj,
    Pair,
    Right,
    Settings,
    Side,
    Source,
    Sync,
    Syncer,
    SyncFromHost,
    Watch,
    Watches,
    apply,
    delete,
    dig,
    key_of,
    skip,
)
from vsyncer_cert_manager.kinds import CERTIFICATES, SECRETS

_CERTIFICATES = Source(Side.VIRTUAL, CERTIFICATES)


class CertificateSecretSyncer(Syncer, SyncFromHost, Sync, Indexes, Watches):
    """The host owns the whole Secret; it bears our mark because the Certificate's copy asks
    cert-manager for it.

    As with cert-manager itself, the Secret outlives its Certificate; here until the tenant deletes
    it.
    """

    name = "certificate-secrets"
    section = "fromHost.certificateSecrets"
    resource = SECRETS
    up = ("data", "type")
    host_marked = True
    reverts_virtual_changes = True
    rights = (Right(Side.HOST, SECRETS, ("delete",)),)

    def indexes(self) -> Sequence[Index]:
        """Return the index of Certificates by the Secret that they name, as ``namespace/name``."""
        return [
            Index(_CERTIFICATES, self.name, lambda certificate: map(str, _secrets_of(certificate)))
        ]

    def watches(self) -> Sequence[Watch]:
        """Requeue a Secret when a Certificate begins or ceases to name it."""
        return [Watch(_CERTIFICATES, _named_by)]

    def virtual_key(self, ctx: Context, host: Obj) -> Key | None:
        """Return the key of the Secret in its marks.

        None if it was not issued for a Certificate of this virtual cluster.
        """
        ours = ctx.marks.is_ours(host, cluster=ctx.identity, resource=CERTIFICATES)
        return ctx.marks.virtual_key(host) if ours else None

    def sync_from_host(self, ctx: Context, host: Obj) -> Decision:
        """Create the virtual Secret; delete the host's if no Certificate names it any more."""
        key = self.virtual_key(ctx, host)
        if key is None:
            return skip("it was not issued for a Certificate of this virtual cluster")
        certificate = self._certificate(ctx, key)
        if certificate is None:
            return delete(
                host=host,
                reason="both the virtual Secret and the Certificate it was issued for are gone",
            )
        return apply(virtual=_copy(ctx, host, key, certificate), reason="the host has issued it")

    def sync(self, ctx: Context, pair: Pair) -> Decision:
        """Update the virtual Secret from the host's, which is renewed before it expires."""
        key = key_of(pair.virtual)
        certificate = self._certificate(ctx, key)
        if certificate is None:
            return skip("its Certificate is gone, and cert-manager doesn't touch it any more")
        return apply(virtual=_copy(ctx, pair.host, key, certificate))

    def _certificate(self, ctx: Context, secret: Key) -> Obj | None:
        """Return the virtual Certificate that names a Secret."""
        keys = ctx.reader.indexed(Side.VIRTUAL, CERTIFICATES, self.name, str(secret))
        return next((ctx.virtual(CERTIFICATES, key) for key in sorted(keys)), None)


def _secrets_of(certificate: Obj) -> Iterable[Key]:
    name = dig(certificate, "spec.secretName")
    return [Key(key_of(certificate).namespace, name)] if name else []


def _named_by(certificate: Obj, settings: Settings) -> Iterable[Key]:
    return _secrets_of(certificate)


def _copy(ctx: Context, host: Obj, key: Key, certificate: Obj) -> Obj:
    """Return the virtual Secret, with virtual names in cert-manager's annotations.

    It has the labels and annotations that the Certificate asks for.
    """
    virtual = ctx.virtual_copy(host, key)
    virtual |= {
        part: value
        for part, value in host.items()
        if part not in ("apiVersion", "kind", "metadata")
    }
    noted = virtual["metadata"].get("annotations") or {}
    names = {
        "cert-manager.io/certificate-name": key_of(certificate).name,
        "cert-manager.io/issuer-name": dig(certificate, "spec.issuerRef.name", ""),
    }
    own = {name: names[name] for name in names.keys() & noted.keys()}
    virtual["metadata"]["annotations"] = _asked(ctx, certificate, "annotations") | noted | own
    labels = virtual["metadata"].get("labels") or {}
    virtual["metadata"]["labels"] = _asked(ctx, certificate, "labels") | labels
    return virtual


def _asked(ctx: Context, certificate: Obj, part: str) -> Obj:
    """Return the labels or annotations of ``secretTemplate``, without marks."""
    given = dig(certificate, f"spec.secretTemplate.{part}")
    return (
        {name: text for name, text in given.items() if not ctx.marks.is_mark(name)}
        if isinstance(given, dict)
        else {}
    )
