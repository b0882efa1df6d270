"""Gateways of the tenant's own, with ReferenceGrants for certificates of other namespaces."""

from hypothesis import strategies as st
from vsyncer_gateway_api.kinds import GATEWAYS, GROUP, REFERENCE_GRANTS
from vsyncer_gateway_api.tenant_gateways import TenantGatewaySyncer

from syncer.api import Obj, key_of
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.objects import build
from syncer.testing.samples import Sample

OPTIONS: Obj = {
    "enabled": True,
    "classes": ["envoy"],
    "protocols": ["HTTP", "HTTPS", "TLS"],
    "maxListeners": 3,
    "allowedHosts": ["*.example.org"],
    "metadata": {"labels": {"allow": ["tier"]}},  # that suites look at
}
CERTIFICATE = st.fixed_dictionaries(
    {"name": strategies.LABELS}, optional={"namespace": st.sampled_from(["shop", "certs"])}
)
LISTENER = st.fixed_dictionaries(
    {
        "name": strategies.LABELS,
        "port": st.sampled_from([80, 443, 443, 8443]),
        "protocol": st.sampled_from(["HTTP", "HTTPS", "TLS"]),
        "hostname": st.sampled_from(["a.example.org", "*.example.org", "example.com"]),
    },
    optional={
        "tls": st.fixed_dictionaries(
            {"certificateRefs": st.lists(CERTIFICATE, max_size=2)},
            optional={"mode": st.just("Terminate")},
        ),
        "allowedRoutes": st.fixed_dictionaries(
            {},
            optional={
                "namespaces": st.fixed_dictionaries(
                    {"from": st.sampled_from(["Same", "All", "All", "Selector"])}
                ),
                "kinds": st.lists(
                    st.builds(
                        lambda kind: {"group": GROUP, "kind": kind},
                        st.sampled_from(["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute"]),
                    ),
                    max_size=2,
                ),
            },
        ),
    },
)
SPEC = st.fixed_dictionaries(
    {
        "gatewayClassName": st.sampled_from(["envoy", "envoy", "other"]),
        "listeners": st.lists(LISTENER, min_size=1, max_size=4),
    },
    optional={"infrastructure": st.just({"labels": {"a": "b"}})},
)


def _scene(gateway: Obj, has_grant: bool) -> Scene:
    own = key_of(gateway).namespace
    spec = {
        "from": [{"group": GROUP, "kind": "Gateway", "namespace": own}],
        "to": [{"group": "", "kind": "Secret"}],
    }
    grant = build(REFERENCE_GRANTS, "certificates", namespace="certs", spec=spec)
    objects: tuple[Obj, ...] = (gateway,)
    if has_grant:
        objects = (gateway, grant)
    return Scene(key_of(gateway), objects)


def _report(status: str) -> Obj:
    condition = {"type": "Programmed", "status": status}
    listener = {"name": "http", "attachedRoutes": 1, "conditions": [condition]}
    addresses = [{"type": "IPAddress", "value": "192.0.2.1"}]
    return {"status": {"addresses": addresses, "conditions": [condition], "listeners": [listener]}}


def _listener(host: str) -> Obj:
    """Return a listener with all that its copy has."""
    allowed = {"namespaces": {"from": "Same"}}
    parts = {"hostname": host, "allowedRoutes": allowed}
    return {"name": "http", "port": 80, "protocol": "HTTP", **parts}


SAMPLE = Sample(
    syncer=TenantGatewaySyncer,
    objects=st.builds(
        _scene,
        strategies.objects(GATEWAYS, st.fixed_dictionaries({"spec": SPEC})),
        st.booleans(),
    ),
    make=lambda name: build(
        GATEWAYS,
        name,
        spec={"gatewayClassName": "envoy", "listeners": [_listener("shop.example.org")]},
    ),
    change={"spec": {"listeners": [_listener("other.example.org")]}},
    tamper={"spec": {"listeners": [_listener("theirs.example.org")]}},
    reports=(_report("Unknown"), _report("True")),
    config={"sync": {"toHost": {"tenantGateways": OPTIONS}}},
    dropped=("spec",),  # a Gateway with an unknown field in it is refused
)
