"""The decision about a copy of a CRD that is no longer wanted.

Deleting a CRD deletes all custom resources of its kind.
"""

from syncer.api import Decision, Obj, Side, delete, is_deleting, reasons, skip
from syncer.resources.definitions.config import OnRemoval
from syncer.resources.definitions.versions import custom_resource


def removed(copy: Obj, side: Side, policy: OnRemoval, *, why: str, section: str) -> Decision:
    """Return the decision about our copy; ``section`` is that of the policy, below ``sync``."""
    name = copy["metadata"]["name"]
    option = f"sync.{section}.onRemoval"
    if is_deleting(copy):
        return skip(reasons.CRD_ENDS(why, name))
    if policy == "retain":
        return skip(reasons.CRD_RETAINED(why, name, option))

    users = None
    if policy == "delete-if-unused":
        if not any(version.get("served") for version in copy["spec"]["versions"]):
            return skip(reasons.CRD_UNCHECKED(why, name))
        users = custom_resource(copy)

    reason = f"{why}, and {option} is {policy}"
    if side is Side.VIRTUAL:
        return delete(virtual=copy, only_if_none=users, reason=reason)
    return delete(host=copy, only_if_none=users, reason=reason)
