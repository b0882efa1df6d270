"""Ingresses."""

from typing import Any

from syncer.resources.ingresses import IngressSyncer
from syncer.testing import strategies
from syncer.testing.objects import ingress
from syncer.testing.samples import Sample


def _reported(address: str) -> Any:
    return {"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}


SAMPLE = Sample(
    syncer=IngressSyncer,
    objects=strategies.ingresses(),
    make=ingress,
    change={"spec": {"rules": [{"host": "other.example.org"}]}},
    tamper={"spec": {"rules": [{"host": "theirs.example.org"}]}},
    reports=(_reported("192.0.2.1"), _reported("192.0.2.2")),
)
