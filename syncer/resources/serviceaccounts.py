"""Copies of virtual ServiceAccounts on the host: identities without rights and without credentials."""

from syncer.api import Context, Mirror, Obj
from syncer.resources.kinds import SERVICE_ACCOUNTS


class ServiceAccountSyncer(Mirror):
    """Gives host pods the account that the tenant chose, for host admission and policies to tell them apart.

    Only metadata crosses. Tokens come from the virtual API server, and pods bring their own image pull secrets, so
    the copy lists neither.
    """

    name = "serviceaccounts"
    resource = SERVICE_ACCOUNTS
    section = "toHost.serviceAccounts"

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        """Return the copy; nothing that runs under it gets a token of the host by itself."""
        host = ctx.host_copy(virtual)
        host["automountServiceAccountToken"] = False
        return host
