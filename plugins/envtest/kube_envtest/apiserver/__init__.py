"""A Kubernetes API server in the test's own process."""

from kube_envtest.apiserver.background import BackgroundApiServer
from kube_envtest.apiserver.changes import Change
from kube_envtest.apiserver.clock import EPOCH
from kube_envtest.apiserver.faults import Faults, Rule
from kube_envtest.apiserver.lag import Lag
from kube_envtest.apiserver.memory import ConnectionLost, MemoryClient, Reply
from kube_envtest.apiserver.rbac import User
from kube_envtest.apiserver.server import ADMIN, ApiServer, Logged

__all__ = [
    "ADMIN",
    "EPOCH",
    "ApiServer",
    "BackgroundApiServer",
    "Change",
    "ConnectionLost",
    "Faults",
    "Lag",
    "Logged",
    "MemoryClient",
    "Reply",
    "Rule",
    "User",
]
