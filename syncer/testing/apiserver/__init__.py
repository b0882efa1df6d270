"""An in-process Kubernetes API server for tests."""

from syncer.testing.apiserver.changes import Change
from syncer.testing.apiserver.clock import EPOCH
from syncer.testing.apiserver.faults import Faults, Rule
from syncer.testing.apiserver.lag import Lag
from syncer.testing.apiserver.memory import MemoryTransport
from syncer.testing.apiserver.rbac import User
from syncer.testing.apiserver.server import ADMIN, ApiServer, Logged

__all__ = ["ADMIN", "EPOCH", "ApiServer", "Change", "Faults", "Lag", "Logged", "MemoryTransport", "Rule", "User"]
