"""Namespaces, where each has its own on the host. Matrix and sieve have rows of their own for them."""

from hypothesis import strategies as st

from syncer.names import PerNamespace
from syncer.resources.namespaces import NamespaceSyncer
from syncer.testing import strategies
from syncer.testing.samples import Sample

SAMPLE = Sample(
    syncer=NamespaceSyncer,
    objects=strategies.objects(NamespaceSyncer.resource, st.just({}), names=strategies.LABELS),
    translator=PerNamespace,
)
