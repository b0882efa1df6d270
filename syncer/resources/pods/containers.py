"""The record of the containers that were sent to a host pod: these are the tenant's, and no others.

A host pod has further ones: sidecars that the host's admission has put in, with secrets and rights
of the host, and containers that the operator adds to debug the pod. The virtual Pod doesn't
distinguish them from the tenant's, who can give an ephemeral container any name. So the names that
were sent stand in a mark on the copy, by their list: those of the creation, and each ephemeral
container once the host has accepted it.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from syncer.api import Marks, Obj, Pair, annotations_of
from syncer.resources.pods.fields import CONTAINERS

#: Below the marks' prefix: the names of the containers that were sent, by list, as JSON.
SENT = "containers"

#: The names of the containers that were sent, by the list in a Pod's spec; lists without any are
#: missing.
SentContainers = Mapping[str, Collection[str]]

#: The lists that never change once a Pod is there.
_FIXED = ("containers", "initContainers")


def mark(marks: Marks) -> str:
    """Return the annotation that has the record."""
    return f"{marks.prefix}/{SENT}"


def has_record(marks: Marks, host: Obj) -> bool:
    """Return True if a host pod has a record, of whatever contents."""
    return mark(marks) in annotations_of(host)


def recorded(marks: Marks, host: Obj) -> SentContainers:
    """Return the containers of a host pod that were sent; none without a readable record."""
    try:
        found = json.loads(annotations_of(host).get(mark(marks), "{}"))
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    result = {}
    for part in CONTAINERS:
        names = found.get(part)
        if isinstance(names, list):
            result[part] = _texts(names)
    return result


def created(virtual: Obj) -> SentContainers:
    """Return the containers that the copy of a Pod is created with."""
    return _named({part: _names(virtual, part) for part in _FIXED})


def known(marks: Marks, pair: Pair) -> SentContainers:
    """Return the containers of a copy that were sent, as the record should have them.

    A copy that an earlier version made has no record. That version sent the containers that both
    sides have in a list that never changes; of ephemeral containers none is known to have been
    sent.
    """
    if has_record(marks, pair.host):
        return recorded(marks, pair.host)
    result = {}
    for part in _FIXED:
        there = set(_names(pair.host, part))
        result[part] = [name for name in _names(pair.virtual, part) if name in there]
    return _named(result)


def with_further(sent: SentContainers, part: str, name: str) -> SentContainers:
    """Return a record with one container more."""
    return {**sent, part: [*sent.get(part, ()), name]}


def written(sent: SentContainers) -> str:
    """Return a record as the text of the annotation."""
    lists = {part: list(names) for part, names in sent.items()}
    return json.dumps(lists, separators=(",", ":"), sort_keys=True)


def names_of(sent: SentContainers) -> frozenset[str]:
    """Return the names of all containers in a record; no two containers of a Pod share one."""
    return frozenset().union(*sent.values())


def _names(pod: Obj, part: str) -> list[str]:
    return [container["name"] for container in pod["spec"].get(part) or ()]


def _texts(values: list[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def _named(found: Mapping[str, list[str]]) -> SentContainers:
    return {part: names for part, names in found.items() if names}
