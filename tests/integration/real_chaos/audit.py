"""The audit logs of API servers: writers and times."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncer.api import Side


@dataclass(frozen=True, slots=True)
class Wrote:
    """A write that succeeded; times as the API server's clock has it, which sort as text."""

    side: Side
    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    received: str
    answered: str

    def __str__(self) -> str:
        request = f"{self.verb} {self.resource} {self.namespace}/{self.name}"
        return f"{self.user}: {request} on the {self.side} side, received {self.received}"


class Audit:
    """The log of one API server, read on from the last look."""

    def __init__(self, file: Path) -> None:
        self._file, self._at = file, 0

    def events(self) -> list[dict[str, Any]]:
        """Return the entries since the last call."""
        with self._file.open("rb") as lines:
            lines.seek(self._at)
            found = [json.loads(line) for line in lines]
            self._at = lines.tell()
        return found


def writes(audits: Mapping[Side, Audit]) -> list[Wrote]:
    """Return the writes on both sides since the last call."""
    return [write for side, audit in audits.items() for event in audit.events() for write in _write(side, event)]


def _write(side: Side, event: dict[str, Any]) -> Iterator[Wrote]:
    target = event.get("objectRef")
    if target and event["responseStatus"].get("code", 500) < 300:
        user, times = event["user"]["username"], (event["requestReceivedTimestamp"], event["stageTimestamp"])
        target_key = target["resource"], target.get("namespace", ""), target.get("name", "")
        yield Wrote(side, user, event["verb"], *target_key, *times)


def without_the_lease(writes: Iterable[Wrote]) -> list[str]:
    """The writes that reached an API server when another daemon had taken the Lease."""
    known = list(writes)
    taken = sorted((each.answered, each.user) for each in known if each.resource == "leases")
    found = []
    for each in known:
        holders = [user for answered, user in taken if answered < each.received]
        if each.resource != "leases" and holders and holders[-1] != each.user:
            found.append(f"{each}, when {holders[-1]} held the Lease")
    return found
