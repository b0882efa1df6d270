"""The findings of a scan as values, and as JSON for reports."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from syncer.api.drift import Policy
from syncer.api.objects import SyncRequest
from syncer.engine.reconcile.drift import Drift, is_hidden, path_text, value_text
from syncer.engine.reconcile.managed_fields import FieldManager, PathStep
from syncer.engine.reconcile.patch_fields import Change


class FindingOutcome(StrEnum):
    """The outcome of a finding."""

    REPAIRED = "repaired"
    FAILED = "failed"
    REPORTED = "reported"
    IGNORED = "ignored"
    HELD = "held"


#: Outcomes after which nothing is left to do.
DONE = (FindingOutcome.REPAIRED, FindingOutcome.IGNORED)


@dataclass(slots=True)
class Finding:
    """An object that has drifted in one class: its fields, their managers, and the outcome."""

    request: SyncRequest
    drift: Drift
    policy: Policy
    outcome: FindingOutcome
    reason: str = ""
    #: The last manager of each changed path, as far as it is recorded.
    by: Mapping[tuple[PathStep, ...], FieldManager] = field(default_factory=dict)

    def json(self, prefix: str) -> dict[str, Any]:
        """Return the JSON for a report; ``prefix`` is that of the marks."""
        drift = self.drift
        found = {
            "cluster": self.request.cluster,
            "syncer": self.request.syncer,
            "object": f"{drift.side} {drift.resource} {drift.key}",
            "of": str(self.request.key),
            "class": drift.kind,
            "policy": self.policy,
            "outcome": self.outcome.value,
            "reason": self.reason,
            "changes": [self._change(change, prefix) for change in drift.changes],
        }
        return {name: value for name, value in found.items() if value}

    def _change(self, change: Change, prefix: str) -> dict[str, str]:
        hidden = is_hidden(self.drift.resource, change.path, prefix)
        found = {
            "path": path_text(change.path),
            "wanted": value_text(change.wanted, hidden=hidden),
            "found": value_text(change.found, hidden=hidden),
        }
        manager = self.by.get(change.path)
        if manager is not None:
            found |= {"changedBy": manager.name, "at": manager.time}
        return found


@dataclass(slots=True)
class Scan:
    """A scan of a kind."""

    syncer: str
    at: str
    fresh: bool = False
    seconds: float = 0.0
    verified: int = 0
    skipped: int = 0
    #: Number of requests that were skipped because they wait, are in work, or fail already.
    busy: int = 0
    #: Why the scan was given up or not begun; ``""`` if it was complete.
    problem: str = ""
    #: Objects that differed between the cache and the API server although the watch was ahead of
    #: the list.
    corrected: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    #: Number of findings that were dropped to bound memory, by outcome.
    omitted: Counter[str] = field(default_factory=Counter)
    #: Requests that couldn't be decided, with the reason as far as it is known.
    troubles: dict[SyncRequest, str] = field(default_factory=dict)

    @property
    def left(self) -> list[Finding]:
        """The findings that are not in step yet."""
        return [finding for finding in self.findings if finding.outcome not in DONE]

    def keep(self, most: int) -> None:
        """Keep at most so many findings, first those that are not in step, and count the rest."""
        if len(self.findings) <= most:
            return
        done = [finding for finding in self.findings if finding.outcome in DONE]
        self.findings = [*self.left, *done]
        self.omitted.update(finding.outcome.value for finding in self.findings[most:])
        del self.findings[most:]

    def counts(self) -> Mapping[tuple[str, str], int]:
        """Count the findings by class and outcome."""
        return Counter((finding.drift.kind, finding.outcome.value) for finding in self.findings)

    def json(self, prefix: str) -> dict[str, Any]:
        """Return the JSON for a report."""
        return {
            "syncer": self.syncer,
            "at": self.at,
            "fresh": self.fresh,
            "seconds": round(self.seconds, 3),
            "verified": self.verified,
            "skipped": self.skipped,
            "busy": self.busy,
            "problem": self.problem,
            "corrected": self.corrected,
            "troubles": {str(request): reason for request, reason in self.troubles.items()},
            "found": [finding.json(prefix) for finding in self.findings],
            "omitted": dict(self.omitted),
        }
