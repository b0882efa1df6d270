"""A name translator that names the copies of some resources by templates, and all others as another one does."""

from collections.abc import Mapping
from functools import lru_cache

from syncer.api import Key, NameTranslator, Resource
from syncer.names.forms import form_of
from syncer.names.single_namespace import REMEMBERED
from syncer.names.template import Template

#: A resource of ours, to find out what a translator does.
_PROBE = Resource("example.org/v1", "Probe", "probes")


class Templated:
    """Wraps a translator. The namespace of a copy is the wrapped translator's, its name is the template's.

    Injective where :func:`lack` finds nothing to say about the templates.
    """

    def __init__(self, inner: NameTranslator, templates: Mapping[str, Template], *, cluster: str) -> None:
        """``templates`` by resource as it is written, such as ``certificates.cert-manager.io``."""
        self.inner, self.templates, self.cluster = inner, dict(templates), cluster
        self._remembered = lru_cache(REMEMBERED)(self._translate)

    def to_host(self, resource: Resource, key: Key) -> Key:
        """Return the place on the host. Raises what the wrapped translator raises."""
        return self._remembered(resource, key) if str(resource) in self.templates else self.inner.to_host(resource, key)

    def to_virtual(self, resource: Resource, key: Key) -> Key | None:
        """Return the virtual key, where the name is a readable one."""
        template = self.templates.get(str(resource))
        if template is None:
            return self.inner.to_virtual(resource, key)
        for found in template.keys(self.cluster, key.name):
            virtual = found if found.namespace or not resource.namespaced else self._placed(resource, key, found)
            if virtual and self.to_host(resource, virtual) == key:
                return virtual
        return None

    def host_namespaces(self) -> tuple[str, ...] | None:
        """Those of the wrapped translator."""
        return self.inner.host_namespaces()

    def _translate(self, resource: Resource, key: Key) -> Key:
        name = self.templates[str(resource)].render(self.cluster, key, form_of(resource))
        return Key(self.inner.to_host(resource, key).namespace, name)

    def _placed(self, resource: Resource, key: Key, found: Key) -> Key | None:
        """Return the key with the virtual namespace that the host namespace stands for."""
        there = self.inner.to_virtual(resource, Key(key.namespace, found.name))
        return Key(there.namespace, found.name) if there else None


def lack(template: Template, inner: NameTranslator, *, namespaced: bool) -> str:
    """Return what a template lacks to give no two objects one place on the host; ``""`` for nothing."""
    if not namespaced:
        return "has {namespace} in it, but objects of this kind have none" if template.has("namespace") else ""
    if template.has("namespace") or _keeps_apart(inner):
        return ""
    return "must have {namespace} in it, since copies from all namespaces are put in one (names.translator)"


def _keeps_apart(translator: NameTranslator) -> bool:
    """Return True if what is in two virtual namespaces is in two on the host."""
    one, other = (translator.to_host(_PROBE, Key(namespace, "probe")).namespace for namespace in ("one", "two"))
    return one != other
