"""Copies of virtual Secrets that synced objects use."""

from syncer.api import TOKENS_ENDING, Context, Decision, Obj, Pair, Refused, delete
from syncer.resources.kinds import SECRETS
from syncer.resources.used import UsedConfig, UsedSyncer

#: Types that a control plane acts on. The host must not act on a tenant's.
CONTROL_PLANE_TYPES = frozenset(
    {"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"},
)
#: The start of the types of Helm's releases. Helm on the host must not act on a tenant's.
HELM_TYPES = "helm.sh/"
#: The type of a Secret without any.
OPAQUE = "Opaque"


class SecretSyncer(UsedSyncer):
    """Copies the Secrets that synced objects use; the virtual side owns them.

    Types that the host would act on become Opaque. Pods only read Secrets, so a copy stays until
    its original is gone, whatever finalizers hold that.
    """

    name = "secrets"
    resource = SECRETS
    shown_by = "host-secrets"
    down = ("data", "type", "immutable")
    translates = ("type",)

    def only_when_used(self, virtual: Obj) -> bool:
        """Return True for credentials of the virtual control plane.

        They leave it only for a Pod that mounts them.
        """
        return virtual.get("type") in CONTROL_PLANE_TYPES

    def translate(self, ctx: Context[UsedConfig], virtual: Obj) -> Obj:
        """Return the copy, Opaque if the host's controllers would act on its type."""
        if virtual["metadata"]["name"].endswith(TOKENS_ENDING):
            why = f"names that end in {TOKENS_ENDING} are kept for the tokens of Pods"
            raise Refused(why, path="metadata.name")
        host = super().translate(ctx, virtual)
        if is_acted_on(host.get("type", OPAQUE)):
            host["type"] = OPAQUE
        return host

    def sync(self, ctx: Context[UsedConfig], pair: Pair) -> Decision:
        """Update the copy, or replace it if the host acts on its type.

        An earlier version made such copies, and the type is immutable.
        """
        if is_acted_on(pair.host.get("type", OPAQUE)):
            why = "the host acts on the type of the copy, which is replaced by one of type Opaque"
            return delete(host=pair.host, reason=why)
        return super().sync(ctx, pair)


def is_acted_on(type_: str) -> bool:
    """Return True for a type of Secret that controllers or Helm act on."""
    return type_ in CONTROL_PLANE_TYPES or type_.startswith(HELM_TYPES)
