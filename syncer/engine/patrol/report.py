"""Findings of the patroller, as counters for metrics and as log lines."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from syncer.engine.patrol.findings import FindingOutcome, Scan
from syncer.engine.reconcile.drift import path_text
from syncer.observe.logs import get_logger

#: Number of findings of a scan that are logged one by one.
LOGGED = 50

log = get_logger(__name__)


@dataclass(slots=True)
class Tally:
    """The totals of all scans, for metrics."""

    drift: Counter[tuple[str, ...]] = field(default_factory=Counter)
    objects: dict[tuple[str, ...], int] = field(default_factory=dict)
    pairs: Counter[tuple[str, ...]] = field(default_factory=Counter)
    corrections: Counter[tuple[str, ...]] = field(default_factory=Counter)
    seconds: dict[tuple[str, ...], float] = field(default_factory=dict)
    #: When the latest complete scan ended, in seconds since 1970; 0 before.
    completed: dict[tuple[str, ...], float] = field(default_factory=dict)

    def add(self, scan: Scan, now: datetime) -> None:
        """Add a scan that ended at time ``now``. The remaining drift is that of the latest scan."""
        name = scan.syncer
        for labels in list(self.objects):
            if labels[0] == name:
                del self.objects[labels]
        for finding in scan.left:
            labels = (name, finding.drift.kind)
            self.objects[labels] = self.objects.get(labels, 0) + 1
        for (kind, outcome), number in scan.counts().items():
            self.drift[name, kind, outcome] += number
        self.pairs[name, "verified"] += scan.verified
        self.pairs[name, "skipped"] += scan.skipped
        self.seconds[name,] = scan.seconds
        self.completed.setdefault((name,), 0.0)
        if not scan.problem:
            self.completed[name,] = now.timestamp()


def log_scan(scan: Scan, cluster: str) -> None:
    """Log the findings of a scan of this virtual cluster: objects and fields, never values."""
    if scan.problem:
        log.info("scan not possible", cluster=cluster, syncer=scan.syncer, reason=scan.problem)
    for finding in scan.findings[:LOGGED]:
        drift = finding.drift
        level = log.debug if finding.outcome is FindingOutcome.IGNORED else log.warning
        level(
            "drift",
            cluster=cluster,
            syncer=scan.syncer,
            what=f"{drift.side} {drift.resource} {drift.key}",
            drift=drift.kind,
            fields=", ".join(path_text(change.path) for change in drift.changes),
            outcome=finding.outcome.value,
            reason=finding.reason,
        )
    more = len(scan.findings) - LOGGED
    if more > 0:
        log.warning("more drift", cluster=cluster, syncer=scan.syncer, number=more)
