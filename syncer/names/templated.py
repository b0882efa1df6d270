"""A name translator with templates for some resources; other resources are left to another translator."""

from collections.abc import Mapping
from functools import lru_cache

from syncer.api import Key, NameTranslator, Resource
from syncer.names.forms import form_of
from syncer.names.single_namespace import REMEMBERED, is_remembered
from syncer.names.template import Template

#: A made-up resource, to find out how a translator behaves.
_PROBE = Resource("example.org/v1", "Probe", "probes")


class Templated:
    """Wraps a translator: a copy's namespace is the wrapped translator's, its name the template's.

    Injective if :func:`lack` returns ``""`` for each template.
    """

    def __init__(self, inner: NameTranslator, templates: Mapping[str, Template], *, cluster: str) -> None:
        """``templates`` are by resource, written as ``certificates.cert-manager.io``."""
        self.inner, self.templates, self.cluster = inner, dict(templates), cluster
        self._remembered = lru_cache(REMEMBERED)(self._translate)

    def to_host(self, resource: Resource, key: Key) -> Key:
        """Return the host key.

        Raises:
            Refused: The wrapped translator refuses the key.
        """
        if str(resource) not in self.templates:
            return self.inner.to_host(resource, key)
        translate = self._remembered if is_remembered(key) else self._translate
        return translate(resource, key)

    def to_virtual(self, resource: Resource, key: Key) -> Key | None:
        """Return the virtual key, if the name is readable."""
        template = self.templates.get(str(resource))
        if template is None:
            return self.inner.to_virtual(resource, key)
        for found in template.keys(self.cluster, key.name):
            virtual = found if found.namespace or not resource.namespaced else self._placed(resource, key, found)
            if virtual and self.to_host(resource, virtual) == key:
                return virtual
        return None

    def host_namespaces(self) -> tuple[str, ...] | None:
        """Return the host namespaces of the wrapped translator."""
        return self.inner.host_namespaces()

    def _translate(self, resource: Resource, key: Key) -> Key:
        name = self.templates[str(resource)].render(self.cluster, key, form_of(resource))
        return Key(self.inner.to_host(resource, key).namespace, name)

    def _placed(self, resource: Resource, key: Key, found: Key) -> Key | None:
        """Return the key in the virtual namespace that belongs to the host namespace."""
        there = self.inner.to_virtual(resource, Key(key.namespace, found.name))
        return Key(there.namespace, found.name) if there else None


def lack(template: Template, inner: NameTranslator, *, namespaced: bool) -> str:
    """Return why a template could give two objects the same host key; ``""`` if it can't."""
    if not namespaced:
        return "has {namespace} in it, but objects of this kind have none" if template.has("namespace") else ""
    if template.has("namespace") or _keeps_apart(inner):
        return ""
    return "must have {namespace} in it, since copies from all namespaces are put in one (names.translator)"


def keeps_names(translator: NameTranslator) -> bool:
    """Return True if copies have the names of their virtual objects, which the host's own objects may have, too."""
    return translator.to_host(_PROBE, Key("one", "probe")).name == "probe"


def _keeps_apart(translator: NameTranslator) -> bool:
    """Return True if different virtual namespaces have different host namespaces."""
    one, other = (translator.to_host(_PROBE, Key(namespace, "probe")).namespace for namespace in ("one", "two"))
    return one != other
