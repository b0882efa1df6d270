"""Services that a load balancer publishes."""

from typing import Any

from syncer.api import Obj
from syncer.resources.services import ServiceSyncer
from syncer.testing import strategies
from syncer.testing.objects import service
from syncer.testing.samples import Sample


def _balanced(name: str) -> Obj:
    return service(name, spec={"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False})


def _reported(address: str) -> Any:
    return {"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}


SAMPLE = Sample(
    syncer=ServiceSyncer,
    objects=strategies.services(),
    make=_balanced,
    change={"spec": {"sessionAffinity": "ClientIP"}},
    reports=(_reported("192.0.2.1"), _reported("192.0.2.2")),
)
