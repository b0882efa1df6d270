"""Secrets of the host. Matrix and sieve have rows of their own for listed objects of the host."""

from kind_host_configmaps import of_host

from syncer.resources.host_objects import HostSecretSyncer
from syncer.testing import strategies
from syncer.testing.objects import NAMESPACE
from syncer.testing.samples import Sample

SAMPLE = Sample(
    syncer=HostSecretSyncer,
    objects=strategies.secrets().map(of_host),
    config={"sync": {"fromHost": {"secrets": {"mappings": {"byName": {"infra/*": NAMESPACE}}}}}},
)
