"""TLSRoutes, with ReferenceGrants for backends in other namespaces."""

from hypothesis import strategies as st
from scenes_of_routes import BACKENDS, sample
from vsyncer_gateway_api.kinds import TLS_ROUTES
from vsyncer_gateway_api.routes import TLSRouteSyncer

from syncer.testing import strategies

RULES = strategies.some({"backendRefs": st.lists(BACKENDS, max_size=2), "name": "all"})

SAMPLE = sample(TLSRouteSyncer, "tlsRoutes", TLS_ROUTES, RULES)
