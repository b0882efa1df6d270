"""The ``mappings`` of a section: which objects of the host appear where in the virtual cluster."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Self

from pydantic import Field, model_validator

from syncer.api import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    LONGEST_LABEL,
    LONGEST_NAME,
    Config,
    Key,
    Section,
)

#: Stands for all objects of a namespace.
ALL = "*"
_EXAMPLES = "such as infra/settings, or infra/* for all of the namespace"


def _parsed(text: str) -> Key:
    """Return the key that an entry names; its name is ``*`` for all of the namespace.

    Raises:
        ValueError: It isn't of the form ``namespace/name``.
    """
    namespace, _, name = text.partition("/")
    is_namespace = len(namespace) <= LONGEST_LABEL and re.fullmatch(DNS_LABEL, namespace)
    is_name = name == ALL or (len(name) <= LONGEST_NAME and re.fullmatch(DNS_SUBDOMAIN, name))
    if not (is_namespace and is_name):
        found = text[: LONGEST_LABEL + LONGEST_NAME]
        raise ValueError(f"expected a namespace and a name, {_EXAMPLES}, found {found!r}")
    return Key(namespace, name)


class Mappings(Section):
    """Objects of the host, each with its place in the virtual cluster."""

    by_name: dict[str, str] = Field(default={})
    """Objects of the host that appear, as `namespace/name`, each with the namespace and the name
    that it has in the virtual cluster: `infra/settings: shop/settings`.

    `infra/*: shop` stands for all objects of a host namespace; they keep their names, and one that
    is listed by its name, too, appears there alone. Where names are listed, the daemon has the
    right to read these objects and no others. Each name takes a watch. A virtual namespace that
    isn't there yet is awaited.
    """

    @model_validator(mode="after")
    def _is_one_to_one(self) -> Self:
        places: dict[Key, str] = {}
        for host, virtual in self._entries.items():
            text = f"{host.namespace}/{host.name}"
            if (host.name == ALL) is not (virtual.name == ALL):
                form = "infra/*: shop" if host.name == ALL else "infra/settings: shop/settings"
                raise ValueError(f"byName: {text} has a place of another form; give it as {form}")
            other = places.setdefault(virtual, text)
            if other != text:
                place = f"{virtual.namespace}/{virtual.name}"
                why = f"byName puts both {other} and {text} at {place}"
                raise ValueError(f"{why}: two objects would share a name")
        return self

    @cached_property
    def _entries(self) -> Mapping[Key, Key]:
        """The virtual key of each host key; a name ``*`` stands for all of a namespace."""
        entries = {}
        for host, virtual in self.by_name.items():
            place = virtual if "/" in virtual else f"{virtual}/{ALL}"
            entries[_parsed(host)] = _parsed(place)
        return entries

    @cached_property
    def names(self) -> Mapping[Key, Key]:
        """The virtual key of each host object that is listed by its name."""
        return {host: each for host, each in self._entries.items() if host.name != ALL}

    @cached_property
    def namespaces(self) -> Mapping[str, str]:
        """The virtual namespace of each host namespace that appears as a whole."""
        return {
            host.namespace: each.namespace
            for host, each in self._entries.items()
            if host.name == ALL
        }

    @cached_property
    def _host_names(self) -> Mapping[Key, Key]:
        return {virtual: host for host, virtual in self.names.items()}

    @cached_property
    def _host_namespaces(self) -> Mapping[str, str]:
        return {virtual: host for host, virtual in self.namespaces.items()}

    def virtual_key(self, host: Key) -> Key | None:
        """Return the virtual key of a host object; None if it doesn't appear.

        An object that is listed by its name goes before another one that would have that name.
        """
        if host in self.names:
            return self.names[host]
        namespace = self.namespaces.get(host.namespace)
        if namespace is None:
            return None
        key = Key(namespace, host.name)
        return None if key in self._host_names else key

    def host_key(self, virtual: Key) -> Key | None:
        """Return the key of the host object that appears at a virtual key; None if none does."""
        if virtual in self._host_names:
            return self._host_names[virtual]
        namespace = self._host_namespaces.get(virtual.namespace)
        if namespace is None:
            return None
        key = Key(namespace, virtual.name)
        return None if key in self.names else key


class MappingConfig(Config):
    """The options of a kind of which listed objects of the host appear."""

    enabled: bool = False
    """Whether the objects of the host that `mappings` lists appear in the virtual cluster.

    The tenant can read them, and their Pods can use them. What a tenant changes is set back, and a
    tenant's own object of such a name is left alone.
    """

    mappings: Mappings = Mappings()
    """The objects of the host that appear. Without any, none does.

    If an entry is removed, so is its object in the virtual cluster: remove entries before
    `enabled` is set to false.
    """
