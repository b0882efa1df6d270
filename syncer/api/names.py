"""The protocol of name translators: virtual key ↔ host key."""

from typing import Protocol, runtime_checkable

from syncer.api.objects import Key, Resource


@runtime_checkable
class NameTranslator(Protocol):
    """Translates keys.

    Pure and stable: a key has the same translation in every process and every version.

    A class registered in the entry-point group ``syncer.names`` is called as
    ``translator(cluster=<virtual cluster's name>, namespace=<host namespace>)``.
    """

    def to_host(self, resource: Resource, key: Key) -> Key:
        """Return the host key of a virtual object. No two keys of a resource may share a host key.

        Raises:
            syncer.api.Refused: The key has no valid translation.
        """
        ...

    def to_virtual(self, resource: Resource, key: Key) -> Key | None:
        """Return the virtual key of a host key.

        None if it doesn't follow from the name alone; then the host object's marks have it.
        """
        ...

    def host_namespaces(self) -> tuple[str, ...] | None:
        """Return the host namespaces that copies can be in.

        None if they are not known beforehand.
        """
        ...
