"""Copies of the virtual Secrets that synced Pods and Ingresses use."""

from syncer.api import Context, Obj, Refused
from syncer.resources.kinds import SECRETS
from syncer.resources.used import UsedConfig, UsedSyncer

#: The end of the names under which pod-tokens keeps the tokens of a Pod; no synced Secret may be called so.
TOKENS_ENDING = ".pod-tokens"

#: Types that mean something to the control plane that they lie in. The host must not act on a tenant's.
CONTROL_PLANE_TYPES = frozenset({"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"})


class SecretSyncer(UsedSyncer):
    """The virtual side owns all of a Secret; what the host would act on becomes Opaque."""

    name = "secrets"
    resource = SECRETS
    down = ("data", "type", "immutable")
    translates = ("type",)

    def only_when_used(self, virtual: Obj) -> bool:
        """Credentials of the virtual control plane leave it only for a Pod that mounts them."""
        return virtual.get("type") in CONTROL_PLANE_TYPES

    def translate(self, ctx: Context[UsedConfig], virtual: Obj) -> Obj:
        """Return the copy, Opaque where the host's controllers would act on its type."""
        if virtual["metadata"]["name"].endswith(TOKENS_ENDING):
            raise Refused(f"names that end in {TOKENS_ENDING} are kept for the tokens of Pods", path="metadata.name")
        host = super().translate(ctx, virtual)
        if host.get("type") in CONTROL_PLANE_TYPES:
            host["type"] = "Opaque"
        return host
