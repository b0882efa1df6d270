"""CRDs of tenants that the host gets. Matrix and sieve have rows of their own for them."""

from syncer.resources.definitions.tenant import TenantDefinitionSyncer
from syncer.testing import strategies
from syncer.testing.samples import Sample

OPTIONS = {"enabled": True, "onRemoval": "delete", "names": ["widgets.example.com"]}

SAMPLE = Sample(
    syncer=TenantDefinitionSyncer,
    objects=strategies.crds("widgets.example.com", "a.b.example.com"),
    config={"sync": {"toHost": {"customResourceDefinitions": OPTIONS}}},
    dropped=("spec.conversion",),
)
