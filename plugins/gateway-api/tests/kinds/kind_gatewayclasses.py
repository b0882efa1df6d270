"""GatewayClasses of the host."""

from hypothesis import strategies as st
from vsyncer_gateway_api.gateway_classes import GatewayClassSyncer
from vsyncer_gateway_api.kinds import GATEWAY_CLASSES

from syncer.api import Obj, key_of
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.samples import Sample


def _on_host(host: Obj) -> Scene:
    return Scene(key_of(host), (), (host,))


SPEC = st.fixed_dictionaries(
    {"controllerName": st.sampled_from(["example.org/a", "example.org/b"])},
    optional={
        "description": strategies.TEXT,
        "parametersRef": st.just({"group": "example.org", "kind": "Params", "name": "internal"}),
    },
)

SAMPLE = Sample(
    syncer=GatewayClassSyncer,
    objects=strategies.objects(
        GATEWAY_CLASSES,
        st.fixed_dictionaries(
            {"spec": SPEC}, optional={"status": st.just({"conditions": [{"type": "Accepted"}]})}
        ),
        names=strategies.LABELS,
    ).map(_on_host),
    dropped=("spec",),
)
