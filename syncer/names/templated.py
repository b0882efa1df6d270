"""A name translator with templates for some resources, and another translator for all others."""

from collections.abc import Mapping
from functools import lru_cache

from syncer.api import REMEMBERED, Key, NameTranslator, Resource
from syncer.names.forms import form_of
from syncer.names.single_namespace import is_remembered
from syncer.names.template import Template

#: A made-up resource, to find out how a translator behaves.
_PROBE = Resource("example.org/v1", "Probe", "probes")


class Templated:
    """Wraps a translator: a copy's namespace is the wrapped translator's, its name the template's.

    Injective if :func:`fault_of` returns ``""`` for each template.
    """

    def __init__(
        self,
        inner: NameTranslator,
        templates: Mapping[str, Template],
        *,
        cluster: str,
    ) -> None:
        """Create the translator.

        Args:
            inner: The translator of the namespaces, and of resources without a template.
            templates: The templates by resource, written as ``certificates.cert-manager.io``.
            cluster: The name of the virtual cluster.
        """
        self.inner = inner
        self.templates = dict(templates)
        self.cluster = cluster
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
            virtual = found
            if resource.namespaced and not found.namespace:
                # The template has no namespace: it follows from the host namespace.
                placed = self.inner.to_virtual(resource, Key(key.namespace, found.name))
                if placed is None:
                    continue
                virtual = Key(placed.namespace, found.name)
            if self.to_host(resource, virtual) == key:
                return virtual
        return None

    def host_namespaces(self) -> tuple[str, ...] | None:
        """Return the host namespaces of the wrapped translator."""
        return self.inner.host_namespaces()

    def _translate(self, resource: Resource, key: Key) -> Key:
        name = self.templates[str(resource)].render(self.cluster, key, form_of(resource))
        return Key(self.inner.to_host(resource, key).namespace, name)


def fault_of(template: Template, inner: NameTranslator, *, namespaced: bool) -> str:
    """Return what is wrong with a template for a kind; ``""`` if nothing is.

    It has ``{namespace}`` though objects of the kind have none, or it hasn't, and two objects could
    get the same host key.
    """
    if not namespaced:
        if template.has("namespace"):
            return "has {namespace} in it, but objects of this kind have none"
        return ""
    if template.has("namespace"):
        return ""

    # A template without the namespace is enough if the host namespaces differ.
    one = inner.to_host(_PROBE, Key("one", "probe"))
    two = inner.to_host(_PROBE, Key("two", "probe"))
    if one.namespace != two.namespace:
        return ""
    why = "copies from all namespaces are put in one (names.translator)"
    return f"must have {{namespace}} in it, since {why}"


def keeps_names(translator: NameTranslator) -> bool:
    """Return True if copies have the names of their virtual objects.

    The host's own objects may have these names, too.
    """
    return translator.to_host(_PROBE, Key("one", "probe")).name == "probe"
