"""Copies of virtual ServiceAccounts on the host: identities without rights or credentials."""

from syncer.api import Context, Grants, KeyRules, MetadataRules, Mirror, Obj
from syncer.resources.kinds import SERVICE_ACCOUNTS


class ServiceAccountSyncer(Mirror, Grants):
    """Copies ServiceAccounts, so that the host's admission and policies can tell pods apart.

    Only metadata is copied. Tokens come from the virtual API server, and pods bring their own image
    pull secrets, so the copy lists neither. Pods may name an account until it is gone, so its copy
    stays until then, whatever finalizers hold it.
    """

    deletion = "whenGone"
    name = "serviceaccounts"
    resource = SERVICE_ACCOUNTS
    has_templates = False
    section = "toHost.serviceAccounts"
    #: A cloud's identity webhook gives pods credentials by the annotations of their account.
    metadata = MetadataRules(annotations=KeyRules(deny=("*",)))
    grants = ("metadata.annotations",)

    def still_granted(self, ctx: Context, host: Obj) -> Obj:
        """Return the copy as it is: nothing but its annotations gives anything."""
        return host

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        """Return the copy; pods that run under it get no token of the host automatically."""
        host = ctx.host_copy(virtual)
        host["automountServiceAccountToken"] = False
        return host
