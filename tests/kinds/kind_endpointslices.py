"""EndpointSlices of Services without a selector."""

from hypothesis import strategies as st

from syncer.api import Obj
from syncer.resources.endpointslices import CONTROLLER, MANAGED_BY, SERVICE_NAME, EndpointSliceSyncer
from syncer.resources.kinds import ENDPOINT_SLICES
from syncer.testing import strategies
from syncer.testing.merge import merged
from syncer.testing.objects import endpointslice
from syncer.testing.samples import Sample

_ADDRESSES = st.sampled_from(["192.0.2.7", "198.51.100.1", "2001:DB8::1"])
_ENDPOINT = st.fixed_dictionaries(
    {"addresses": st.lists(_ADDRESSES, min_size=1, max_size=2)},
    optional={
        "conditions": st.sampled_from([{}, {"ready": True}]),
        "hostname": st.just("a"),
        "targetRef": st.just({"kind": "Pod", "namespace": "kube-system", "name": "dns"}),
    },
)
_CONTENTS = st.fixed_dictionaries(
    {"addressType": st.sampled_from(["IPv4", "IPv6", "FQDN"])},
    optional={
        "endpoints": st.one_of(st.none(), st.lists(_ENDPOINT, max_size=3)),
        "ports": st.one_of(st.none(), st.just([{"name": "", "protocol": "TCP", "port": 8080}])),
    },
)
_LABELS = st.fixed_dictionaries(
    {},
    optional={SERVICE_NAME: strategies.SERVICE_NAMES, MANAGED_BY: st.sampled_from([CONTROLLER, "example.org"])},
)


def _labelled(virtual: Obj, labels: Obj) -> Obj:
    return merged(virtual, {"metadata": {"labels": labels}})


SAMPLE = Sample(
    syncer=EndpointSliceSyncer,
    objects=st.builds(_labelled, strategies.objects(ENDPOINT_SLICES, _CONTENTS), _LABELS),
    make=endpointslice,
    change={"ports": [{"name": "http", "port": 9090, "protocol": "TCP"}]},
    config={"sync": {"toHost": {"endpointSlices": {"allowAddresses": ["192.0.2.0/24"]}}}},
    # Addresses of others, and the names of objects.
    dropped=("endpoints",),
)
