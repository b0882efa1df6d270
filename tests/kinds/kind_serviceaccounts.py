"""ServiceAccounts, of which only labels and annotations cross."""

from syncer.resources.serviceaccounts import ServiceAccountSyncer
from syncer.testing import strategies
from syncer.testing.objects import serviceaccount
from syncer.testing.samples import Sample

SAMPLE = Sample(
    syncer=ServiceAccountSyncer,
    objects=strategies.serviceaccounts(),
    make=serviceaccount,
    tamper={"automountServiceAccountToken": True},
)
