"""The laws of every syncer, over those of this package."""

from syncer.testing.samples import by_name

_SAMPLES = by_name(["tests/kinds"])

TestHTTPRoutes = _SAMPLES["httproutes"].laws()
TestGRPCRoutes = _SAMPLES["grpcroutes"].laws()
TestTLSRoutes = _SAMPLES["tlsroutes"].laws()
TestReferenceGrants = _SAMPLES["referencegrants"].laws()
TestGateways = _SAMPLES["gateways"].laws()
TestGatewayClasses = _SAMPLES["gatewayclasses"].laws()
TestTenantGateways = _SAMPLES["tenant-gateways"].laws()
