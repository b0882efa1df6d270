"""Services of the host. Matrix and sieve have rows of their own for listed objects of the host."""

from kind_host_configmaps import of_host

from syncer.resources.host_services import HostServiceSyncer
from syncer.testing import strategies
from syncer.testing.objects import NAMESPACE
from syncer.testing.samples import Sample

SAMPLE = Sample(
    syncer=HostServiceSyncer,
    objects=strategies.services().map(of_host),
    config={"sync": {"fromHost": {"services": {"mappings": {"byName": {"infra/*": NAMESPACE}}}}}},
    dropped=("spec",),
)
