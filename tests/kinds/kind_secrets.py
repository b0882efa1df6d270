"""Secrets, all of them."""

from syncer.resources.secrets import SecretSyncer
from syncer.testing import strategies
from syncer.testing.objects import secret
from syncer.testing.samples import Sample

SAMPLE = Sample(
    syncer=SecretSyncer,
    objects=strategies.secrets(),
    make=secret,
    change={"data": {"password": "bmV3"}},
    tamper={"data": {"password": "bGVhZA=="}},
    config={"sync": {"toHost": {"secrets": {"all": True}}}},
)
