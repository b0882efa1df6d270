"""CRDs that the host publishes. Matrix and sieve have rows of their own for them."""

from syncer.api import Obj, key_of
from syncer.resources.definitions.public import PublicDefinitionSyncer
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.merge import merged
from syncer.testing.samples import Sample


def _public(host: Obj) -> Scene:
    labelled = merged(host, {"metadata": {"labels": {"tenancy.x-k8s.io/super.public": "true"}}})
    return Scene(key_of(host), (), (labelled,))


OPTIONS = {"enabled": True, "onRemoval": "delete", "deny": ["*.b.*"]}

SAMPLE = Sample(
    syncer=PublicDefinitionSyncer,
    objects=strategies.crds("widgets.example.com", "a.b.example.com").map(_public),
    config={"sync": {"fromHost": {"customResourceDefinitions": OPTIONS}}},
    dropped=("spec.conversion",),
)
