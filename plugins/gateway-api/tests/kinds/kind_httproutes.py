"""HTTPRoutes, with ReferenceGrants for backends in other namespaces."""

from scenes_of_routes import MIRRORED, sample
from vsyncer_gateway_api.kinds import HTTP_ROUTES
from vsyncer_gateway_api.routes import HTTPRouteSyncer

from syncer.testing import strategies

RULES = strategies.some({**MIRRORED, "timeouts": {"request": "5s"}})

SAMPLE = sample(HTTPRouteSyncer, "httpRoutes", HTTP_ROUTES, RULES)
