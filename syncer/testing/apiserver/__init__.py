"""An in-process Kubernetes API server for tests."""

from syncer.testing.apiserver.clock import EPOCH
from syncer.testing.apiserver.faults import Faults, Rule
from syncer.testing.apiserver.memory import MemoryTransport
from syncer.testing.apiserver.rbac import User
from syncer.testing.apiserver.server import ADMIN, ApiServer, Logged

__all__ = ["ADMIN", "EPOCH", "ApiServer", "Faults", "Logged", "MemoryTransport", "Rule", "User"]
