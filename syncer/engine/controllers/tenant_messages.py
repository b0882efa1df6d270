"""Error messages for tenants, without details of the host.

Host names in them are replaced later.
"""

from syncer.api.errors import (
    Forbidden,
    Invalid,
    NamespaceTerminating,
    NotConnected,
    Refused,
    SyncerError,
    TooMany,
    Unauthorized,
    Unreachable,
    WebhookFailed,
)
from syncer.api.objects import Side

#: The message of an API server about annotations over 256 KiB.
_LONG_ANNOTATIONS = "metadata.annotations: Too long"


def for_tenant(error: Exception, message: str) -> str:
    """Return the message of an error for the tenant; ``message`` is the operator's.

    An error that only the operator can correct is described without rights and addresses. So is an
    unexpected exception of a syncer, as its text may quote a host object.
    """
    match error:
        case Forbidden():
            action = f"{error.verb} {error.resource}" if error.resource else "do this"
            why = f"the syncer has no right to {action} on the {error.side} cluster"
            return f"{why}; its operator has to grant it"
        case Unauthorized():
            why = f"the {error.side} cluster rejects the syncer's credentials"
            return f"{why}; its operator has to renew them"
        case WebhookFailed(side=Side.VIRTUAL):
            why = (
                f"the webhook {error.webhook} of this cluster does not answer,"
                " and its failurePolicy requires an answer"
            )
            return f"{why}: repair the webhook, or remove its configuration; retrying"
        case NamespaceTerminating(side=Side.HOST):
            return "the namespace of its copy on the host is being deleted; retrying"
        case Unreachable() | NotConnected() | TooMany():
            return f"the {error.side} cluster accepts no requests at the moment; retrying"
        case Invalid(side=Side.HOST) if _LONG_ANNOTATIONS in message:
            why = (
                "The annotations of a copy include our marks,"
                " which name each of its labels and annotations"
            )
            return f"{message}. {why}: make those of this object smaller"
        case Refused():
            return f"{error.path}: {error.why}" if error.path else error.why
        case SyncerError():
            return message
        case _:
            kind = type(error).__name__
            why = f"the syncer failed on this object with {kind}"
            return f"{why}; the syncer's log gives its operator the reason"
