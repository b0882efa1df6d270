"""Gateways of the host, some of which are mapped."""

from hypothesis import strategies as st
from scenes_of_routes import GATEWAYS
from vsyncer_gateway_api.gateways import GatewaySyncer
from vsyncer_gateway_api.kinds import GATEWAYS as RESOURCE
from vsyncer_gateway_api.kinds import NAMESPACES
from vsyncer_gateway_api.mappings import Mappings

from syncer.api import Obj, key_of
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.objects import build
from syncer.testing.samples import Sample

LISTENER = st.fixed_dictionaries(
    {"name": strategies.LABELS, "port": st.just(443), "protocol": st.just("HTTPS")},
    optional={
        "hostname": st.just("*.example.org"),
        "tls": st.just({"mode": "Terminate", "certificateRefs": [{"name": "internal"}]}),
        "allowedRoutes": st.just({"namespaces": {"from": "Same"}, "kinds": [{"kind": "TLSRoute"}]}),
    },
)
SPEC = st.fixed_dictionaries(
    {
        "gatewayClassName": st.just("envoy"),
        "listeners": st.lists(LISTENER, min_size=1, max_size=2),
    },
    optional={"infrastructure": st.just({"labels": {"a": "b"}})},
)


def _scene(given: Obj, host: str) -> Scene:
    namespace, _, name = host.partition("/")
    metadata = {**given["metadata"], "namespace": namespace, "name": name}
    gateway = {**given, "metadata": metadata}
    key = Mappings(GATEWAYS["mappings"]).virtual_key(key_of(gateway))
    assert key is not None
    return Scene(key, (build(NAMESPACES, key.namespace),), (gateway,))


SAMPLE = Sample(
    syncer=GatewaySyncer,
    objects=st.builds(
        _scene,
        strategies.objects(
            RESOURCE,
            st.fixed_dictionaries(
                {"spec": SPEC},
                optional={"status": st.just({"addresses": [{"value": "192.0.2.1"}]})},
            ),
        ),
        st.sampled_from(["infra/shared", "edge/outer"]),
    ),
    config={"sync": {"fromHost": {"gateways": GATEWAYS}}},
    dropped=("spec",),
)
