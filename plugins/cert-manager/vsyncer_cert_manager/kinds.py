"""The resources that the syncers of this package use."""

from syncer.api import Resource

#: The API group of cert-manager, and its version (cert-manager 1.0 and later).
GROUP = "cert-manager.io"
VERSION = f"{GROUP}/v1"

CERTIFICATES = Resource(VERSION, "Certificate", "certificates")
ISSUERS = Resource(VERSION, "Issuer", "issuers")
CLUSTER_ISSUERS = Resource(VERSION, "ClusterIssuer", "clusterissuers", namespaced=False)
SECRETS = Resource("v1", "Secret", "secrets")
