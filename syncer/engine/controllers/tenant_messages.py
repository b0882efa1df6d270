"""Error messages for tenants: with virtual names, and without details of the host."""

import re
from collections.abc import Iterable, Mapping

from syncer.api.context import Settings
from syncer.api.errors import Forbidden, NotConnected, Refused, SyncerError, TooMany, Unauthorized, Unreachable
from syncer.api.objects import Key, Resource
from syncer.observe.events import virtual_names
from syncer.resources.kinds import CONFIG_MAPS, NAMESPACES

#: Stands for the host namespace, which tenants don't know.
HOST = "<host>"

#: A name, or a namespace and a name, in a message.
_NAMES = re.compile(r"(?<![\w./-])[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?:/[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)?(?![\w/-])")


def for_tenant(error: Exception, message: str) -> str:
    """Return the message of an error for the tenant; ``message`` is the operator's.

    An error that only the operator can mend is described without rights and addresses. So is an unexpected exception of
    a syncer: its text may quote a host object.
    """
    match error:
        case Forbidden():
            what = f"{error.verb} {error.resource}" if error.resource else "do this"
            return f"the syncer has no right to {what} on the {error.side} cluster; its operator has to grant it"
        case Unauthorized():
            return f"the syncer is not let into the {error.side} cluster; its operator has to renew its credentials"
        case Unreachable() | NotConnected() | TooMany():
            return f"the {error.side} cluster does not do what it is asked at the moment; it is tried again"
        case Refused():
            return f"{error.path}: {error.why}" if error.path else error.why
        case SyncerError():
            return message
        case _:
            return f"the syncer fails on it with {type(error).__name__}; its operator finds the reason in its log"


def translated(settings: Settings, message: str, *, resources: Iterable[Resource], known: Mapping[str, str]) -> str:
    """Return the message with host names replaced by virtual names.

    ``known`` maps some of them; for others the name translator is tried, for objects of
    ``resources``.
    """
    kinds = tuple(dict.fromkeys((*resources, CONFIG_MAPS)))

    def virtual(found: re.Match[str]) -> str:
        return _virtual(settings, found[0], kinds) or found[0]

    return _NAMES.sub(virtual, virtual_names(message, known))


def _virtual(settings: Settings, text: str, kinds: Iterable[Resource]) -> str | None:
    """Return the virtual name of a host name, or None."""
    names = settings.names
    namespace, slash, name = text.rpartition("/")
    if text == settings.host_namespace:
        return HOST
    for kind in kinds:
        place = Key((namespace or settings.host_namespace) if kind.namespaced else "", name)
        if kind.namespaced or not slash:
            found = names.to_virtual(kind, place)
            if found is not None and found != place:
                return str(found) if slash or not kind.namespaced else found.name
    home = names.to_virtual(NAMESPACES, Key("", namespace or text))
    if home is not None and home.name != (namespace or text):
        return f"{home.name}/{name}" if slash else home.name
    return f"{HOST}/{name}" if slash and namespace == settings.host_namespace else None
