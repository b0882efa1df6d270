"""Preconditions on the live API servers before a write."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator

from syncer.api import reasons
from syncer.api.errors import Forbidden, NotFound, NotYet, Refused
from syncer.api.objects import Json, Key, Obj, ObjectRef, Resource, Side, is_deleting
from syncer.clusters.client import SideClient
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.controller import Vacant
from syncer.engine.reconcile.policies.host_namespaces import HostNamespaces
from syncer.resources.kinds import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES


class Claim:
    """The stored identity of the virtual cluster.

    The live API server must show it before a copy is deleted because a list lacks its original: a
    virtual cluster that has lost its data has lost its identity, too. A deletion that a watch has
    reported needs no such proof.
    """

    __slots__ = ("_confirmed", "_confirming", "check", "lists")

    def __init__(self) -> None:
        #: Raises Refused if the identity is not stored; None if there is no identity.
        self.check: Callable[[], Awaitable[None]] | None = None
        #: The number of lists of the virtual cluster so far.
        self.lists = 0
        #: The same at the latest confirmation.
        self._confirmed = 0
        self._confirming = asyncio.Lock()

    @property
    def is_confirmed(self) -> bool:
        """True if the identity was stored after the latest list."""
        return self._confirmed == self.lists

    async def confirm(self) -> None:
        """Confirm the identity once after a list, however many deletions come at the same time.

        Raises:
            Refused: It is not stored, or another one is.
            ClusterError: The request failed.
        """
        async with self._confirming:
            if not self.is_confirmed:
                await self.must_hold()

    async def must_hold(self) -> None:
        """Confirm the identity.

        Raises:
            Refused: It is not stored, or another one is.
            ClusterError: The request failed.
        """
        lists = self.lists
        if self.check is not None:
            await self.check()
        self._confirmed = lists


#: The calls that may put the names of other objects into a copy.
_WITH_NAMES = (Operation.CREATE, Operation.PATCH, Operation.MERGE)


async def must_be_unused(
    cluster: SideClient, resource: Resource, key: Key, *, users: Resource
) -> None:
    """Refuse a deletion while there is an object that it would delete, too.

    Raises:
        Refused: There is such an object.
    """
    is_used = False
    try:
        async for page in cluster.list_pages(users, limit=1):
            if page.items:
                is_used = True
                break
    except NotFound as error:
        why = (
            f"the {cluster.side} cluster doesn't serve {users} now,"
            " so it is unknown whether there are any"
        )
        raise Refused(f"{resource.kind} {key} is not deleted: {why}", reason="InUse") from error
    if is_used:
        kept = f"{resource.kind} {key} is not deleted"
        why = f"{kept} while the {cluster.side} cluster has any {users}"
        raise Refused(f"{why}; delete those first", reason="InUse")


async def holds_copies(host: SideClient, homes: HostNamespaces, namespace: str) -> bool:
    """Return True if copies may be in a host namespace.

    Objects in any other namespace aren't ours, and aren't read for a tenant. If the cache, which
    may be stale, lacks the Namespace, the live one decides.

    Raises:
        ClusterError: The request failed.
    """
    known = homes.holds_copies(namespace)
    if known is not None:
        return known
    try:
        live = await host.get(NAMESPACES, Key("", namespace))
    except NotFound:
        return False
    return homes.is_ours(live)


async def must_have_home(host: SideClient, namespace: str, *, since: str, mark: str) -> None:
    """Check that a host namespace exists, isn't terminating, and is older than a copy in it.

    An object that was deleted with its namespace was not deleted for itself, so nothing of the
    tenant's is deleted. ``mark`` is the annotation that records the copy.

    Raises:
        Refused: One of these doesn't hold.
    """
    try:
        home = await host.get(NAMESPACES, Key("", namespace))
    except NotFound:
        state = "is gone"
    else:
        state = _state(home, since)
    if state:
        raise gone_with_its_namespace(namespace, state, mark=mark)


def gone_with_its_namespace(namespace: str, state: str, *, mark: str) -> Refused:
    """Return the refusal to delete the object of a copy that was deleted with its host namespace.

    ``state`` is that of the namespace.
    """
    gone = f"the copy is gone, and the host namespace {namespace} {state}"
    why = f"{gone}: nothing is deleted with that"
    way_out = f"to have the copy made again, take the annotation {mark} off this object"
    return Refused(f"{why}; {way_out}", reason="HostNamespaceGone")


async def must_be_served(
    host: SideClient, resource: Resource, namespace: str, *, since: str, mark: str
) -> None:
    """Check that the CRD of a kind exists on the host, isn't terminating, and is older than a copy.

    A CRD's objects are deleted with it. Without the right to read CRDs, only a missing one is
    noticed. ``mark`` is the annotation that records the copy.

    Raises:
        Refused: One of these doesn't hold.
    """
    if not resource.group:
        return
    try:
        definition = await host.get(CUSTOM_RESOURCE_DEFINITIONS, Key("", str(resource)))
        state = _state(definition, since)
    except (NotFound, Forbidden):
        is_served = await _is_served(host, resource, namespace)
        state = "" if is_served else "is gone"
    if state:
        gone = f"the copy is gone, and the kind {resource} {state} on the host"
        why = f"{gone}: nothing is deleted with that"
        way_out = (
            "to have the copy made again when it is back,"
            f" take the annotation {mark} off this object"
        )
        raise Refused(f"{why}; {way_out}", reason="HostKindGone")


async def must_be_vacant(
    host: SideClient, vacant: Iterable[Vacant], calls: Iterable[Call], *, homes: HostNamespaces
) -> None:
    """Check that the names in a copy lead to no object of others, now or later.

    Names that the calls don't send are left out: they are on the host already.

    Raises:
        Refused: There is such an object, or the namespace is the host's own.
        NotYet: There is an object that may be the tenant's, or the namespace isn't there yet.
    """
    texts: set[str] = set()
    for call in calls:
        if call.kind in _WITH_NAMES:
            texts.update(_texts(call.body))
    for each in vacant:
        resource = each.resource
        host_key = each.host_key
        if not texts & {host_key.name, str(host_key)}:
            continue
        if host_key.namespace and all(controller.is_among_copies for controller in each.about):
            _must_be_home(homes, each)
        try:
            found = await host.get(resource, host_key)
        except NotFound:
            continue

        is_meant = each.is_meant(found)
        ref = ObjectRef(Side.HOST, resource, host_key)
        names = f"it names the {resource.kind} {each.key}"
        if is_meant is None:
            why = reasons.PLACE_UNKNOWN(resource.kind, each.key)
            raise NotYet(why, on=ref)
        if not is_meant:
            taken = f"{names}, and an object of others has that place on the host"
            raise Refused(
                f"{taken}. Name another, or have that one removed",
                reason="NameCollision",
                in_the_way=ref,
            )


def _must_be_home(homes: HostNamespaces, named: Vacant) -> None:
    """Check that the host namespace of a named object is the virtual cluster's.

    Raises:
        Refused: It never is.
        NotYet: It isn't yet.
    """
    namespace = named.host_key.namespace
    names = f"it names the {named.resource.kind} {named.key}"
    forbidden = homes.forbids(namespace)
    if forbidden:
        why = f"{names}, and nothing of its namespace is synced: {forbidden}"
        raise Refused(why, reason="NamespaceRefused")
    if homes.holds_copies(namespace) is None:
        ref = ObjectRef(Side.HOST, NAMESPACES, Key("", namespace))
        raise NotYet(reasons.HOME_MISSING(named.resource.kind, named.key), on=ref)


def _texts(body: Json) -> Iterator[str]:
    """Yield every string in a body, in time that doesn't depend on how deep they are."""
    rest = [body]
    while rest:
        value = rest.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            rest += value.values()
        elif isinstance(value, list):
            rest += value


def _state(container: Obj, since: str) -> str:
    """Return why an object may have been deleted with its container; ``""`` if it was not."""
    if is_deleting(container):
        return "is being deleted"
    if container["metadata"].get("creationTimestamp", "") > since:
        return "was replaced"
    return ""


async def _is_served(host: SideClient, resource: Resource, namespace: str) -> bool:
    try:
        async for _ in host.list_pages(resource, namespace=namespace, limit=1):
            break
    except NotFound:
        return False
    return True
