"""Copies of the virtual Secrets that synced Pods and Ingresses use."""

from collections.abc import Iterable, Sequence

from syncer.api import Context, Index, Key, Obj, Refused, Settings, Side, Source, Watch
from syncer.resources.ingress_references import secrets_of
from syncer.resources.kinds import INGRESSES, SECRETS
from syncer.resources.used import UsedConfig, UsedSyncer

#: The end of the names under which pod-tokens keeps the tokens of a Pod; no synced Secret may be called so.
TOKENS_ENDING = ".pod-tokens"

#: Types that mean something to the control plane that they lie in. The host must not act on a tenant's.
CONTROL_PLANE_TYPES = frozenset({"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"})

_INGRESS_SOURCE = Source(Side.VIRTUAL, INGRESSES)


class SecretSyncer(UsedSyncer):
    """The virtual side owns all of a Secret; what the host would act on becomes Opaque."""

    name = "secrets"
    resource = SECRETS
    down = ("data", "type", "immutable")

    def indexes(self) -> Sequence[Index]:
        """Pods and Ingresses by the Secrets that they name, as ``namespace/name``."""
        ingresses = Index(_INGRESS_SOURCE, self.name, lambda ingress: map(str, secrets_of(ingress)), "ingresses")
        return [*super().indexes(), ingresses]

    def watches(self) -> Sequence[Watch]:
        """Look again when a Pod or an Ingress begins or ceases to name a Secret."""
        return [*super().watches(), Watch(_INGRESS_SOURCE, _used_by_ingress, needs="ingresses")]

    def used(self, ctx: Context[UsedConfig], key: Key) -> bool:
        """Whether a Pod or, where Ingresses are synced, an Ingress refers to the Secret."""
        if super().used(ctx, key):
            return True
        return ctx.enabled("ingresses") and bool(ctx.reader.indexed(Side.VIRTUAL, INGRESSES, self.name, str(key)))

    def only_when_used(self, virtual: Obj) -> bool:
        """Credentials of the virtual control plane leave it only for a Pod that mounts them."""
        return virtual.get("type") in CONTROL_PLANE_TYPES

    def translate(self, ctx: Context[UsedConfig], virtual: Obj) -> Obj:
        """The copy, Opaque where the host's controllers would act on its type."""
        if virtual["metadata"]["name"].endswith(TOKENS_ENDING):
            raise Refused(f"names that end in {TOKENS_ENDING} are kept for the tokens of Pods", path="metadata.name")
        host = super().translate(ctx, virtual)
        if host.get("type") in CONTROL_PLANE_TYPES:
            host["type"] = "Opaque"
        return host


def _used_by_ingress(ingress: Obj, settings: Settings) -> Iterable[Key]:
    return secrets_of(ingress)
