"""The objects in a virtual cluster that lead its API server to the daemon's ``metrics.k8s.io``."""

from syncer.api import Key
from syncer.resources.kinds import API_SERVICES, ENDPOINT_SLICES, SERVICES

API_SERVICE = Key("", "v1beta1.metrics.k8s.io")
#: The Service, and its EndpointSlice.
SERVICE = Key("kube-system", "vsyncer-metrics")

#: All of them, in the order in which they are removed.
OBJECTS = ((API_SERVICES, API_SERVICE), (ENDPOINT_SLICES, SERVICE), (SERVICES, SERVICE))
