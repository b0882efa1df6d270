"""The state and the health of a cluster's connection."""

from dataclasses import dataclass
from enum import StrEnum

from syncer.multicluster.logins import CannotConnect


class State(StrEnum):
    """The state of a connection."""

    UNKNOWN = "Unknown"
    CONNECTING = "Connecting"
    CONNECTED = "Connected"
    DISCONNECTED = "Disconnected"


@dataclass(frozen=True, slots=True)
class Health:
    """What the probes of a cluster have found; times are those of the cache's clock, None before
    the first.

    A connect counts as a probe.
    """

    last_probe: float | None = None
    last_success: float | None = None
    failures: int = 0

    def probed(self, now: float, *, ok: bool) -> "Health":
        """Return the state after a probe."""
        if ok:
            return Health(now, now, 0)
        return Health(now, self.last_success, self.failures + 1)


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The state of a cluster, for people and programs.

    ``reason`` is one of :class:`~syncer.multicluster.Reason`, or ``""``. ``login_error`` is why the
    present login can't be used, with a ``reason`` too; the cluster stays connected with the former
    one, and the present one is read again later.
    """

    state: State
    reason: str
    message: str
    health: Health
    login_error: CannotConnect | None = None
