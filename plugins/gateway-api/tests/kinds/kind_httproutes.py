"""HTTPRoutes, with ReferenceGrants for backends in other namespaces."""

from hypothesis import strategies as st
from scenes_of_routes import BACKENDS, GATEWAYS, HOSTS, report, scenes
from vsyncer_gateway_api.gateways import GatewaySyncer
from vsyncer_gateway_api.kinds import HTTP_ROUTES
from vsyncer_gateway_api.routes import HTTPRouteSyncer

from syncer.testing import strategies
from syncer.testing.objects import build
from syncer.testing.samples import Sample

RULES = strategies.some(
    {
        "backendRefs": st.lists(BACKENDS, max_size=2),
        "filters": st.lists(
            st.builds(
                lambda backend: {"type": "RequestMirror", "requestMirror": {"backendRef": backend}},
                BACKENDS,
            ),
            max_size=1,
        ),
        "timeouts": {"request": "5s"},
    }
)

SAMPLE = Sample(
    syncer=HTTPRouteSyncer,
    objects=scenes(HTTP_ROUTES, RULES),
    make=lambda name: build(
        HTTP_ROUTES,
        name,
        spec={
            "parentRefs": [{"name": "web", "namespace": "gateways"}],
            "hostnames": ["shop.example.org"],
            "rules": [{"backendRefs": [{"name": "web", "port": 80}]}],
        },
    ),
    change={"spec": {"hostnames": ["other.example.org"]}},
    tamper={"spec": {"hostnames": ["theirs.example.org"]}},
    reports=(report("Unknown"), report("True")),
    config={
        "sync": {
            "toHost": {"httpRoutes": {"allowedHosts": HOSTS}},
            "fromHost": {"gateways": GATEWAYS},
        }
    },
    together=(GatewaySyncer,),
    dropped=("spec",),  # a route with an unknown field in it is refused
)
