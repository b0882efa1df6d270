"""The contract of a name translator: key on one side ↔ key on the other."""

from typing import Protocol, runtime_checkable

from syncer.api.objects import Key, Resource


@runtime_checkable
class NameTranslator(Protocol):
    """Pure and stable: the same key always gives the same answer, in every process and every version.

    A class registered in the entry-point group ``syncer.names`` is called as
    ``translator(cluster=<virtual cluster's name>, namespace=<host namespace>)``.
    """

    def to_host(self, resource: Resource, key: Key) -> Key:
        """Return the place of a virtual object on the host. Injective: no two keys of a resource share a place.

        Raises :class:`syncer.api.Refused` where the key has no valid translation.
        """
        ...

    def to_virtual(self, resource: Resource, key: Key) -> Key | None:
        """Return the virtual key of a host key where the name alone tells it, else None
        (the marks on the object tell).
        """
        ...

    def host_namespaces(self) -> tuple[str, ...] | None:
        """Return the host namespaces that copies can be in, or None where that is not known beforehand."""
        ...
