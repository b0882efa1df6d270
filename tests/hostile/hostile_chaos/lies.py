"""Lies of an aggregated API server, which no API server tells."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from syncer.api import Obj

Lie = Callable[[Any], Any]


def _metadata(**fields: Any) -> Lie:
    """Return a lie about fields of the metadata; None removes a field."""

    def lie(obj: Obj) -> Obj:
        metadata = {**obj["metadata"], **fields}
        return {**obj, "metadata": {name: value for name, value in metadata.items() if value is not None}}

    return lie


def _deep(obj: Obj) -> Obj:
    value: Any = "deep"
    for _ in range(900):
        value = {"x": value}
    return {**obj, "spec": value}


LIES: Mapping[str, Lie] = {
    "no version": _metadata(resourceVersion=None),
    "version is a number": _metadata(resourceVersion=7),
    "version is text": _metadata(resourceVersion="new"),
    "no uid": _metadata(uid=None),
    "uid is a list": _metadata(uid=["x"]),
    "labels are a list": _metadata(labels=["a"]),
    "labels are numbers": _metadata(labels={"a": 1}),
    "annotations are text": _metadata(annotations="a"),
    "annotations are mappings": _metadata(annotations={"a": {"b": "c"}}),
    "owners are text": _metadata(ownerReferences="a"),
    "owners are texts": _metadata(ownerReferences=["a"]),
    "finalizers are a number": _metadata(finalizers=7),
    "deleted at a number": _metadata(deletionTimestamp=7),
    "created never": _metadata(creationTimestamp="never"),
    "namespace is a list": _metadata(namespace=["shop"]),
    "metadata is null": lambda obj: {**obj, "metadata": None},
    "spec is text": lambda obj: {**obj, "spec": "text"},
    "spec is a list": lambda obj: {**obj, "spec": [1]},
    "status is a number": lambda obj: {**obj, "status": 7},
    "data is a list": lambda obj: {**obj, "data": [None]},
    "data is nested": lambda obj: {**obj, "data": {"a": {"b": 1}}},
    "containers are texts": lambda obj: {**obj, "spec": {"containers": ["a"], "volumes": ["b"], "affinity": "c"}},
    "volumes are null": lambda obj: {**obj, "spec": {"containers": None, "volumes": [None], "imagePullSecrets": [7]}},
    "ports are texts": lambda obj: {**obj, "spec": {"ports": ["a"], "selector": ["b"], "externalIPs": "c"}},
    "references are lists": lambda obj: {**obj, "spec": {"secretName": ["a"], "issuerRef": [{"name": {}}]}},
    "requests are text": lambda obj: {**obj, "spec": {"resources": {"requests": "a"}, "dataSource": ["b"]}},
    "endpoints are texts": lambda obj: {**obj, "endpoints": ["a"], "ports": "b"},
    "addresses are numbers": lambda obj: {**obj, "endpoints": [{"addresses": [7], "targetRef": "a"}]},
    "taints are texts": lambda obj: {**obj, "spec": {"taints": ["a"]}, "status": {"conditions": ["b"]}},
    "subject is text": lambda obj: {**obj, "involvedObject": "a", "count": ["b"]},
    "object is a number": lambda obj: 7,
    "object is null": lambda obj: None,
    "object is a list": lambda obj: [obj],
    "deep": _deep,
}
#: Lies about the bytes. A list that ends early tells nothing of any object, and its kind waits for a
#: whole one: ``cut`` is said in watches alone.
RAW: Mapping[str, Callable[[bytes], bytes]] = {
    "bad UTF-8": lambda line: line.replace(b'"name":"', b'"name":"\xff\xfe'),
    "bad UTF-8 in a key": lambda line: line.replace(b'"metadata":', b'"meta\xffdata":'),
    "name twice": lambda line: line.replace(b'"metadata":{', b'"metadata":{"name":7,'),
    "cut": lambda line: line[:-20],
    "large number": lambda line: line.replace(b'"metadata":{', b'"metadata":{"generation":' + b"9" * 400 + b","),
}


def falsified(sent: bytes, name: str, choice: str) -> bytes:
    """Return a line or a list with a lie of this name about an object, and about no other."""
    if not sent.startswith(b'{"type":"'):
        return _listed(sent, name, choice)
    raw = RAW.get(choice)
    return raw(sent) if raw else _encoded({**(line := json.loads(sent)), "object": LIES[choice](line["object"])})


def _listed(sent: bytes, name: str, choice: str) -> bytes:
    """Return a list in which the lie is about the item of this name."""
    found = json.loads(sent)
    if choice == "cut" or "items" not in found:
        return sent
    items = [_lied(each, choice) if each["metadata"]["name"] == name else _encoded(each) for each in found.pop("items")]
    return _encoded(found)[:-1] + b',"items":[' + b",".join(items) + b"]}"


def _lied(obj: Obj, choice: str) -> bytes:
    raw = RAW.get(choice)
    return raw(_encoded(obj)) if raw else _encoded(LIES[choice](obj))


def _encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
