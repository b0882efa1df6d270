"""The Gateways of the host that appear in the virtual cluster, and their names there."""

import re
from collections.abc import Collection, Mapping

from syncer.api import Key

#: Stands for all Gateways of a namespace.
ANY = "*"

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = rf"{_LABEL}(\.{_LABEL})*"
_HOST = re.compile(rf"{_LABEL}/({_NAME}|\*)")
_KEY = re.compile(rf"{_LABEL}/{_NAME}")
_NAMESPACE = re.compile(_LABEL)


def checked(mappings: Mapping[str, str]) -> None:
    """Check mappings as an operator has written them.

    Raises:
        ValueError: A side is of another form, or two Gateways would appear under one name.
    """
    virtual: dict[str, str] = {}
    for host, target in mappings.items():
        if not _HOST.fullmatch(host):
            forms = "namespace/name or namespace/*"
            raise ValueError(f"mappings: {host!r} is no Gateway of the host: expected {forms}")
        if host.endswith(f"/{ANY}"):
            if not _NAMESPACE.fullmatch(target):
                why = "expected a namespace, as all Gateways of one are mapped"
                raise ValueError(f"mappings: {host} leads to {target!r}: {why}")
        elif not _KEY.fullmatch(target):
            raise ValueError(f"mappings: {host} leads to {target!r}: expected namespace/name")
        if target in virtual:
            both = f"{virtual[target]} and {host}"
            raise ValueError(f"mappings: {both} lead to {target}: give each a name of its own")
        virtual[target] = host


class Mappings:
    """The mappings of an operator, in both directions; each key has at most one counterpart.

    A Gateway with a mapping of its own is left out of that of its namespace. So is one whose name
    another one has by a mapping of its own.
    """

    def __init__(self, mappings: Mapping[str, str]) -> None:
        """Read mappings that :func:`checked` accepts."""
        self._written = mappings
        self._hosts: dict[Key, Key] = {}
        self._virtual: dict[Key, Key] = {}
        self._host_namespaces: dict[str, str] = {}
        self._virtual_namespaces: dict[str, str] = {}
        for host, target in mappings.items():
            key = Key.parse(host)
            if key.name == ANY:
                self._host_namespaces[target] = key.namespace
                self._virtual_namespaces[key.namespace] = target
            else:
                self._hosts[Key.parse(target)] = key
                self._virtual[key] = Key.parse(target)

    def without_all_of(self, namespaces: Collection[str]) -> "Mappings":
        """Return the mappings without those for all Gateways of these host namespaces."""
        if not self._virtual_namespaces.keys() & set(namespaces):
            return self
        left_out = {f"{each}/{ANY}" for each in namespaces}
        written = {host: key for host, key in self._written.items() if host not in left_out}
        return Mappings(written)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The host namespaces whose Gateways may appear."""
        named = {key.namespace for key in self._virtual}
        return tuple(sorted(named | self._virtual_namespaces.keys()))

    def host_key(self, key: Key) -> Key | None:
        """Return the key of the host's Gateway that appears at a virtual key, or None."""
        if key in self._hosts:
            return self._hosts[key]
        namespace = self._host_namespaces.get(key.namespace)
        if namespace is None:
            return None
        host = Key(namespace, key.name)
        if host in self._virtual:
            return None
        return host

    def virtual_key(self, host: Key) -> Key | None:
        """Return the virtual key at which a Gateway of the host appears, or None."""
        if host in self._virtual:
            return self._virtual[host]
        namespace = self._virtual_namespaces.get(host.namespace)
        if namespace is None:
            return None
        key = Key(namespace, host.name)
        if key in self._hosts:
            return None
        return key
