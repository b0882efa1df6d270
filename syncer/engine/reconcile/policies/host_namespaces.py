"""Copies are written only into host namespaces that are ours, or that the configuration lists.

Where a name translator has no fixed host namespaces, a tenant's namespaces decide in which ones
copies are put. One that the host has for itself isn't the tenant's, whatever its name is.
"""

from dataclasses import replace

from syncer.api import reasons
from syncer.api.context import Settings
from syncer.api.decision import Decision, Outcome, Verb, Write
from syncer.api.errors import Refused
from syncer.api.objects import Key, Obj, ObjectRef, Resource, Side, is_deleting
from syncer.engine.reconcile.plan import Observed
from syncer.engine.stores.informers import Informers
from syncer.resources.kinds import NAMESPACES, SERVICE_ACCOUNTS
from syncer.resources.namespaces import is_built_in


class HostNamespaces:
    """The host namespaces that the copies of a virtual cluster may be written to."""

    def __init__(self, settings: Settings, informers: Informers) -> None:
        self._settings = settings
        self._informers = informers
        #: The host namespaces that the translator uses; None if a tenant's namespaces decide.
        self._fixed = settings.names.host_namespaces()

    def forbids(self, namespace: str) -> str:
        """Return why a namespace never gets copies; ``""`` if it does once it is ready."""
        if self._fixed is not None:
            return "" if namespace in self._fixed else "no name leads there"
        if namespace in self._settings.namespaces:
            return ""
        key = Key("", namespace)
        if is_built_in(namespace) and self._settings.names.to_virtual(NAMESPACES, key) == key:
            why = "every cluster has one of this name for itself"
            return f"{why}. An operator can list it in names.namespaces"
        if not self._informers.has(Side.HOST, NAMESPACES):
            return "Namespaces aren't synced. An operator can list it in names.namespaces"
        return ""

    def lacks(self, namespace: str) -> str:
        """Return what a namespace lacks before copies are written to it; ``""`` if nothing."""
        if self._is_given(namespace):
            return ""
        found = self._informers.get(Side.HOST, NAMESPACES, Key("", namespace))
        if found is None:
            return "is not there yet"
        if not self.is_ours(found):
            return "is not one that was made for it"
        return "is being deleted" if is_deleting(found) else ""

    def holds_copies(self, namespace: str) -> bool | None:
        """Return True if copies may be in a namespace; None if the cache doesn't know of it.

        Nothing in any other is ours, so nobody reads it for a tenant.
        """
        if self.forbids(namespace):
            return False
        if self._is_given(namespace):
            return True
        found = self._informers.get(Side.HOST, NAMESPACES, Key("", namespace))
        return True if found is not None and self.is_ours(found) else None

    def uid(self, namespace: str) -> str:
        """Return the uid of a namespace that was made for the virtual cluster.

        ``""`` if the cache doesn't know of it.
        """
        if self._is_given(namespace) or not self._informers.has(Side.HOST, NAMESPACES):
            return ""
        entry = self._informers.store(Side.HOST, NAMESPACES).entry(Key("", namespace))
        return "" if entry is None else entry.uid

    def is_ours(self, namespace: Obj) -> bool:
        """Return True if a host namespace was made for the virtual cluster."""
        return self._settings.marks.is_ours(
            namespace, cluster=self._settings.identity, resource=NAMESPACES
        )

    def _is_given(self, namespace: str) -> bool:
        """Return True if it needs no mark of ours: the translator or the configuration names it."""
        return self._fixed is not None or namespace in self._settings.namespaces

    def hold_back(self, observed: Observed, decision: Decision) -> Decision:
        """Return the decision without what would be written to a host namespace that isn't ready.

        Deletions go on, and so does what goes up.

        Raises:
            Refused: Copies are never written there.
        """
        resource = observed.controller.syncer.host_resource
        withheld = [write for write in decision.writes if self._puts(write, resource)]
        for write in withheld:
            namespace = write.obj["metadata"].get("namespace", "")
            if why := self.forbids(namespace):
                if (
                    resource == SERVICE_ACCOUNTS
                ):  # each namespace has one, which nobody has asked for
                    return replace(
                        decision,
                        writes=(),
                        outcome=Outcome.SKIPPED,
                        reason=reasons.NAMESPACE_EXCLUDED(why),
                    )
                raise Refused(
                    f"nothing of its namespace is synced: {why}", reason="NamespaceRefused"
                )
            if why := self.lacks(namespace):
                others = tuple(each for each in decision.writes if each not in withheld)
                on = ObjectRef(Side.HOST, NAMESPACES, Key("", namespace))
                return replace(
                    decision,
                    writes=others,
                    outcome=Outcome.PENDING,
                    reason=reasons.HOST_NAMESPACE_UNREADY(why, observed.request.key.namespace),
                    on=(*decision.on, on),
                )
        return decision

    def check(self, write: Write, resource: Resource) -> None:
        """Refuse a write to a host namespace that isn't the virtual cluster's, or isn't ready.

        A copy is deleted wherever it is, unless the translator says where copies are.

        Raises:
            Refused: The namespace is not one that may be written to.
        """
        namespace = write.obj["metadata"].get("namespace", "")
        if self._fixed and namespace in self._fixed:
            return
        if not resource.namespaced or (self._fixed is None and write.verb is Verb.DELETE):
            return
        if why := self.forbids(namespace) or self.lacks(namespace):
            raise Refused(
                f"the host namespace {namespace} is not one that this virtual cluster may write to:"
                f" {why}"
            )

    def _puts(self, write: Write, resource: Resource) -> bool:
        wanted = write.resource or resource
        return write.side is Side.HOST and write.verb is not Verb.DELETE and wanted.namespaced
