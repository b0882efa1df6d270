"""Copies of virtual Secrets that synced objects use."""

from syncer.api import Context, Obj, Refused
from syncer.resources.kinds import SECRETS
from syncer.resources.used import UsedConfig, UsedSyncer

#: The suffix of the Secrets with Pod tokens; no copy of a Secret may have such a name.
TOKENS_ENDING = ".pod-tokens"

#: Types that a control plane acts on. The host must not act on a tenant's.
CONTROL_PLANE_TYPES = frozenset({"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"})


class SecretSyncer(UsedSyncer):
    """Copies the Secrets that synced objects use; the virtual side owns them.

    Types that the host would act on become Opaque.
    """

    name = "secrets"
    resource = SECRETS
    down = ("data", "type", "immutable")
    translates = ("type",)

    def only_when_used(self, virtual: Obj) -> bool:
        """Return True for credentials of the virtual control plane: they leave it only for a Pod
        that mounts them.
        """
        return virtual.get("type") in CONTROL_PLANE_TYPES

    def translate(self, ctx: Context[UsedConfig], virtual: Obj) -> Obj:
        """Return the copy, Opaque if the host's controllers would act on its type."""
        if virtual["metadata"]["name"].endswith(TOKENS_ENDING):
            raise Refused(f"names that end in {TOKENS_ENDING} are kept for the tokens of Pods", path="metadata.name")
        host = super().translate(ctx, virtual)
        if host.get("type") in CONTROL_PLANE_TYPES:
            host["type"] = "Opaque"
        return host
