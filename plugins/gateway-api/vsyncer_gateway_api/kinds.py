"""The resources that the syncers of this package use."""

from syncer.api import Resource

GROUP = "gateway.networking.k8s.io"
VERSION = f"{GROUP}/v1"

GATEWAY_CLASSES = Resource(VERSION, "GatewayClass", "gatewayclasses", namespaced=False)
GATEWAYS = Resource(VERSION, "Gateway", "gateways")
HTTP_ROUTES = Resource(VERSION, "HTTPRoute", "httproutes")
GRPC_ROUTES = Resource(VERSION, "GRPCRoute", "grpcroutes")
TLS_ROUTES = Resource(VERSION, "TLSRoute", "tlsroutes")
#: The kinds of routes that are synced.
ROUTES = (HTTP_ROUTES, GRPC_ROUTES, TLS_ROUTES)
#: The version that all releases of the Gateway API serve.
REFERENCE_GRANTS = Resource(f"{GROUP}/v1beta1", "ReferenceGrant", "referencegrants")
SERVICES = Resource("v1", "Service", "services")
SECRETS = Resource("v1", "Secret", "secrets")
NAMESPACES = Resource("v1", "Namespace", "namespaces", namespaced=False)
