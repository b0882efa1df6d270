"""GRPCRoutes, with ReferenceGrants for backends in other namespaces."""

from scenes_of_routes import MIRRORED, sample
from vsyncer_gateway_api.kinds import GRPC_ROUTES
from vsyncer_gateway_api.routes import GRPCRouteSyncer

from syncer.testing import strategies

RULES = strategies.some(MIRRORED)

SAMPLE = sample(GRPCRouteSyncer, "grpcRoutes", GRPC_ROUTES, RULES)
