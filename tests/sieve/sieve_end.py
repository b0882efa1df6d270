"""The final state of both sides, without all that differs from run to run: uids, versions, times, addresses, order."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from harness import Two

from syncer.api import Obj, Side, annotations_of
from syncer.testing import ApiServer

#: Parts of metadata that every run has others of.
_NOISE = frozenset({"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"})

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_ADDRESS = re.compile(r"\b10\.96\.\d+\.\d+\b")
_RANDOM = re.compile(r"\bkube-api-access-[a-z0-9]{5}\b")
_SERVICE = re.compile(r"_(SERVICE|PORT)(_|$)")
_PORT = re.compile(r'"nodePort":(\d+)')

#: What both sides hold, by side, resource and key.
End = Mapping[str, Any]

encode = msgspec.json.encode
decode = msgspec.json.decode


def end_of(two: Two) -> End:
    """The contents of both servers, comparable."""
    objects = {
        f"{side} {resource} {key}": obj
        for side, server in ((Side.VIRTUAL, two.virtual), (Side.HOST, two.host))
        for resource, key, obj in contents(server)
    }
    names = {side: _names(objects, side) for side in Side}
    found: dict[str, Any] = {}
    for identity, obj in objects.items():
        if not _is_own_event(obj):
            own = names[Side(identity.partition(" ")[0])]
            found[_without_uids(identity, own)] = _plain(obj, own)
    return {
        **found,
        "Services with the address of their original": _same_addresses(objects),
        "virtual objects whose present generation was observed": _observed(objects),
    }


def _same_addresses(objects: Mapping[str, Obj]) -> Any:
    """Return the copies of Services that have the ClusterIP of their original."""
    alike = {}
    for identity, obj in objects.items():
        namespace, name = (annotations_of(obj).get(f"vsyncer.dev/virtual-{part}") for part in ("namespace", "name"))
        original = objects.get(f"{Side.VIRTUAL} services {namespace}/{name}")
        if identity.startswith(f"{Side.HOST} services ") and original is not None:
            alike[identity] = original["spec"].get("clusterIP") == obj["spec"].get("clusterIP")
    return alike


def _observed(objects: Mapping[str, Obj]) -> Any:
    """Return whether the status of a virtual object is about its present generation, of those that say so."""
    found = {}
    for identity, obj in objects.items():
        status = obj.get("status") or {}
        if identity.startswith(Side.VIRTUAL) and "observedGeneration" in status:
            found[identity] = status["observedGeneration"] == obj["metadata"]["generation"]
    return found


def contents(server: ApiServer) -> list[tuple[str, str, Obj]]:
    """All objects of a server, each with its resource and key."""
    found = []
    for resource in server.resources():
        for obj in server.objects(resource):
            metadata = obj["metadata"]
            found.append((resource, f"{metadata.get('namespace', '')}/{metadata['name']}", obj))
    return found


def _names(objects: Mapping[str, Obj], side: Side) -> Mapping[str, str]:
    """Return the owner of each uid, ClusterIP and node port of a side. The host's node ports are on both."""
    names: dict[str, str] = {}
    for identity, obj in objects.items():
        named = _UID.sub("<uid>", identity)
        names[obj["metadata"].get("uid", "")] = f"<uid of {named}>"
        spec = (obj.get("spec") or {}) if " services " in identity else {}
        if identity.startswith(side):
            names[spec.get("clusterIP", "")] = f"<ip of {identity}>"
        for port in spec.get("ports") or ():
            if port.get("nodePort"):
                names[str(port["nodePort"])] = f"<node port of {identity} {port['port']}>"
    return names


def _without_uids(text: str, names: Mapping[str, str]) -> str:
    """Return a text with the owners of uids in place of these: volumes are named by the uids of their claims."""
    return _UID.sub(lambda found: names.get(found.group(), "<uid of what is gone>"), text)


def _plain(obj: Obj, names: Mapping[str, str]) -> Any:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _NOISE}
    plain = {**obj, "metadata": metadata}
    if isinstance(obj.get("status"), dict):
        plain["status"] = {name: value for name, value in obj["status"].items() if name != "observedGeneration"}
    if any(mark.endswith("/token-expires") for mark in annotations_of(obj)):
        plain["data"] = sorted(obj.get("data") or ())
    if obj.get("kind") == "Pod":
        plain["spec"] = {**obj["spec"], "containers": [_lasting(one) for one in obj["spec"]["containers"]]}
    text = _without_uids(encode(plain).decode(), names)
    text = _ADDRESS.sub(lambda found: names.get(found.group(), found.group()), text)
    text = _PORT.sub(lambda found: f'"nodePort":"{names.get(found.group(1), found.group(1))}"', text)
    text = _RANDOM.sub("kube-api-access-<random>", text)
    return decode(_TIME.sub("<time>", text))


def _lasting(container: Obj) -> Obj:
    """A container without the addresses of the Services that were there when it was made, which never change."""
    kept = [one for one in container.get("env") or () if not _SERVICE.search(one["name"])]
    return {**container, "env": kept}


def _is_own_event(obj: Obj) -> bool:
    """Return True if it is an Event about our own troubles: a disturbed run may have more of them."""
    return obj.get("kind") == "Event" and obj.get("reportingComponent") == "vsyncer"


def differences(expected: End, found: End) -> list[str]:
    """In what the end differs from the expected one, by object and path."""
    problems = []
    for identity in sorted(expected.keys() | found.keys()):
        if identity not in found:
            problems.append(f"the end lacks {identity}")
        elif identity not in expected:
            problems.append(f"the end has {identity}, which the undisturbed run has not")
        else:
            problems += [
                f"the end differs: {identity} {line}" for line in _paths(expected[identity], found[identity], "")
            ]
    return problems


def _paths(expected: Any, found: Any, path: str) -> list[str]:
    if isinstance(expected, dict) and isinstance(found, dict):
        return [
            line
            for name in sorted(expected.keys() | found.keys())
            for line in _paths(expected.get(name), found.get(name), f"{path}.{name}")
        ]
    return [] if expected == found else [f"{path}: {found!r:.80}, not {expected!r:.80}"]
