"""Handlers of the control API for the page, besides those that commands have, too.

All but the first are about one virtual cluster, and lists come in pages of a bounded size.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from typing import Any, TypeVar

from syncer.api.errors import Refused
from syncer.daemon.pages.control import selection, syncer_rows
from syncer.daemon.pages.explain import frozen_field
from syncer.daemon.pages.history import History
from syncer.daemon.pages.listing import limit_of
from syncer.daemon.pages.status import clusters
from syncer.daemon.process import Process
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.patrol.findings import Finding, Scan
from syncer.engine.reconcile.drift import path_text
from syncer.engine.reconcile.plan import Frozen
from syncer.observe.control import Control

_T = TypeVar("_T")

#: Fields of an object that drift is shown of.
MOST_FIELDS = 10


def findings(process: Process, pair: ClusterPair) -> Iterator[tuple[Scan, Finding]]:
    """Yield the drift that the latest scan of each kind has found, with the scan."""
    patroller = process.served[pair.name].patroller
    reports = {} if patroller is None else patroller.reports
    for _, scan in sorted(reports.items()):
        for finding in scan.findings:
            yield scan, finding


def drift_row(found: tuple[Scan, Finding]) -> dict[str, Any]:
    """Return drift as JSON: fields without their values, and who wrote them when."""
    scan, finding = found
    drift = finding.drift
    fields: list[dict[str, str]] = []
    for change in drift.changes[:MOST_FIELDS]:
        field = {"path": path_text(change.path), "changedBy": "", "at": ""}
        manager = finding.by.get(change.path)
        if manager is not None:
            field |= {"changedBy": manager.name, "at": manager.time}
        fields.append(field)
    return {
        "syncer": scan.syncer,
        "object": f"{drift.side} {drift.resource} {drift.key}",
        "of": str(finding.request.key),
        "class": drift.kind,
        "outcome": finding.outcome.value,
        "reason": finding.reason,
        "scannedAt": scan.at,
        "fields": fields,
        "moreFields": max(len(drift.changes) - MOST_FIELDS, 0),
    }


def frozen_row(one: Frozen) -> dict[str, str]:
    """Return a frozen field as JSON, with its request."""
    request = one.request
    return {"syncer": request.syncer, "key": str(request.key), **frozen_field(one)}


def add(control: Control, process: Process, history: History) -> None:
    """Register the handlers for this process."""

    def pair_of(given: Mapping[str, Any]) -> ClusterPair:
        """Return the virtual cluster that is named, or the only one."""
        pairs = selection(process, cluster=_text(given, "cluster")).pairs
        if len(pairs) != 1:
            raise Refused(f"this daemon leads {len(pairs)} virtual clusters: name one")
        return pairs[0]

    async def answer_clusters(given: Mapping[str, Any]) -> Any:
        most = limit_of(given)
        found = clusters(process, _text(given, "begin"), most + 1)
        following = found[most - 1].cluster if len(found) > most else ""
        return {"items": [asdict(each) for each in found[:most]], "next": following}

    async def answer_kinds(given: Mapping[str, Any]) -> Any:
        return syncer_rows(process, [pair_of(given)])

    async def answer_drift(given: Mapping[str, Any]) -> Any:
        return _page(findings(process, pair_of(given)), drift_row, given)

    async def answer_frozen(given: Mapping[str, Any]) -> Any:
        return _page(pair_of(given).policies.contention.frozen(), frozen_row, given)

    async def answer_history(given: Mapping[str, Any]) -> Any:
        return history.of(pair_of(given).name)

    control.add("GET", "/page/clusters", answer_clusters)
    control.add("GET", "/page/kinds", answer_kinds)
    control.add("GET", "/page/drift", answer_drift)
    control.add("GET", "/page/frozen", answer_frozen)
    control.add("GET", "/page/history", answer_history)


def _page(
    found: Iterable[_T], row: Callable[[_T], dict[str, Any]], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the rows from the number ``begin`` on, and where the next page begins."""
    text = _text(given, "begin") or "0"
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise Refused(f"begin: {text!r} is no number of a row")
    begin = int(text)
    most = limit_of(given)
    items = list(islice(found, begin, begin + most + 1))
    following = str(begin + most) if len(items) > most else ""
    return {"items": list(map(row, items[:most])), "next": following}


def _text(given: Mapping[str, Any], name: str) -> str:
    return str(given.get(name) or "")
