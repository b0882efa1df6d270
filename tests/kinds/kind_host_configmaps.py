"""ConfigMaps of the host. Matrix and sieve have rows of their own for listed objects of the host."""

from syncer.api import Key, Obj, key_of
from syncer.resources.host_objects import HostConfigMapSyncer
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.merge import merged
from syncer.testing.objects import NAMESPACE, namespace
from syncer.testing.samples import Sample


def of_host(listed: Obj) -> Scene:
    """Return an object of the host, in a namespace that appears as a whole in that of the tests."""
    host = merged(listed, {"metadata": {"namespace": "infra"}})
    return Scene(Key(NAMESPACE, key_of(host).name), (namespace(NAMESPACE),), (host,))


SAMPLE = Sample(
    syncer=HostConfigMapSyncer,
    objects=strategies.configmaps().map(of_host),
    config={"sync": {"fromHost": {"configMaps": {"mappings": {"byName": {"infra/*": NAMESPACE}}}}}},
)
