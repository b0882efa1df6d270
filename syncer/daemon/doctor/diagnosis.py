"""The result of a check, as a value."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from syncer.api.errors import ClusterError
from syncer.clusters.codec import DecodeError

#: The errors of a request that a check makes; a tenant's API server may answer anything.
UNREADABLE = (ClusterError, DecodeError)


class DiagnosisState(StrEnum):
    """The result of a check."""

    OK = "ok"
    #: It works, and something may go wrong later, or is less safe than it could be.
    WARNING = "warning"
    #: Something doesn't work.
    ERROR = "error"
    #: It couldn't be checked.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of a check: what was found, and what to do about it."""

    #: The virtual cluster; ``""`` for the daemon and the host.
    cluster: str
    #: What was checked, such as ``rights on the host``.
    check: str
    state: DiagnosisState
    message: str
    #: What to do; ``""`` if there is nothing to do.
    way_out: str = ""

    def json(self) -> dict[str, Any]:
        """Return the JSON for programs."""
        return {
            "cluster": self.cluster,
            "check": self.check,
            "state": self.state.value,
            "message": self.message,
            "wayOut": self.way_out,
        }


def ok(cluster: str, check: str, message: str) -> Diagnosis:
    """Return the result of a check that found nothing wrong."""
    return Diagnosis(cluster, check, DiagnosisState.OK, message)


def warning(cluster: str, check: str, message: str, way_out: str) -> Diagnosis:
    """Return the result of a check that found what may go wrong later."""
    return Diagnosis(cluster, check, DiagnosisState.WARNING, message, way_out)


def error(cluster: str, check: str, message: str, way_out: str) -> Diagnosis:
    """Return the result of a check that found what doesn't work."""
    return Diagnosis(cluster, check, DiagnosisState.ERROR, message, way_out)


def unknown(cluster: str, check: str, message: str, way_out: str) -> Diagnosis:
    """Return the result of a check that could not be made."""
    return Diagnosis(cluster, check, DiagnosisState.UNKNOWN, message, way_out)
