"""ReferenceGrants, which are copied where copies are in several host namespaces."""

from hypothesis import strategies as st
from scenes_of_routes import NAMESPACES
from vsyncer_gateway_api.kinds import GROUP, REFERENCE_GRANTS
from vsyncer_gateway_api.reference_grants import ReferenceGrantSyncer

from syncer.names import PerNamespace
from syncer.testing import strategies
from syncer.testing.samples import Sample

FROM = st.fixed_dictionaries(
    {
        "group": st.just(GROUP),
        "kind": st.sampled_from(["HTTPRoute", "TLSRoute", "Gateway"]),
        "namespace": st.sampled_from(NAMESPACES),
    }
)
TO = st.fixed_dictionaries(
    {"group": st.just(""), "kind": st.sampled_from(["Service", "Secret"])},
    optional={"name": strategies.LABELS},
)
SPEC = st.fixed_dictionaries({"from": st.lists(FROM, max_size=3), "to": st.lists(TO, max_size=3)})

SAMPLE = Sample(
    syncer=ReferenceGrantSyncer,
    objects=strategies.objects(
        REFERENCE_GRANTS, st.fixed_dictionaries({"spec": SPEC}), names=strategies.LABELS
    ),
    translator=PerNamespace,
    dropped=("spec",),  # only what is about routes and Services is copied
)
