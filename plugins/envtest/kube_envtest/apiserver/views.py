"""The forms of a response: whole objects, their metadata alone, or a table for kubectl."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from kube_envtest.apiserver import printing
from kube_envtest.apiserver.convert import served, to_version
from kube_envtest.apiserver.request import Accept
from kube_envtest.apiserver.resources import ResourceType
from kube_envtest.apiserver.storage import Entry, encode

Obj = dict[str, Any]

META_VERSION = "meta.k8s.io/v1"


class View(Protocol):
    """A form of objects."""

    def one(self, entry: Entry) -> bytes:
        """Return the body of a response with an object."""

    def many(self, entries: Iterable[Entry], metadata: Obj) -> bytes:
        """Return the body of a list."""

    def frame(self, kind: str, entry: Entry) -> bytes:
        """Return a line of a watch."""

    def bookmark(self, revision: int, annotations: Mapping[str, str] | None = None) -> bytes:
        """Return the bookmark line of a watch."""


class Whole:
    """Whole objects; items of built-in lists have no kind and apiVersion, as on the real server."""

    def __init__(self, rt: ResourceType) -> None:
        self._rt = rt

    def one(self, entry: Entry) -> bytes:
        """Return the object."""
        return served(self._rt, entry)

    def many(self, entries: Iterable[Entry], metadata: Obj) -> bytes:
        """Return ``…List`` with items."""
        rt = self._rt
        skip = 0 if rt.custom else len(rt.prefix)
        items = [served(rt, entry) for entry in entries]
        body = b",".join(b"{" + item[skip:] for item in items) if skip else b",".join(items)
        return _list_head(f"{rt.kind}List", rt.api_version, metadata) + body + b"]}"

    def frame(self, kind: str, entry: Entry) -> bytes:
        """Return ``{type, object}``."""
        return b'{"type":"%s","object":%s}' % (kind.encode(), served(self._rt, entry))

    def bookmark(self, revision: int, annotations: Mapping[str, str] | None = None) -> bytes:
        """Return an object that has only a version."""
        return _bookmark(self._rt.kind, self._rt.api_version, revision, annotations)


class MetadataOnly:
    """PartialObjectMetadata."""

    def __init__(self, rt: ResourceType) -> None:
        self._rt = rt

    def _body(self, entry: Entry) -> bytes:
        metadata = entry.obj["metadata"]
        return encode({"kind": "PartialObjectMetadata", "apiVersion": META_VERSION, "metadata": metadata})

    def one(self, entry: Entry) -> bytes:
        """Return the object's metadata."""
        return self._body(entry)

    def many(self, entries: Iterable[Entry], metadata: Obj) -> bytes:
        """Return PartialObjectMetadataList."""
        body = b",".join(encode({"metadata": entry.obj["metadata"]}) for entry in entries)
        return _list_head("PartialObjectMetadataList", META_VERSION, metadata) + body + b"]}"

    def frame(self, kind: str, entry: Entry) -> bytes:
        """Return ``{type, object}``."""
        return b'{"type":"%s","object":%s}' % (kind.encode(), self._body(entry))

    def bookmark(self, revision: int, annotations: Mapping[str, str] | None = None) -> bytes:
        """Return an object that has only a version."""
        return _bookmark("PartialObjectMetadata", META_VERSION, revision, annotations)


class Tabular:
    """A Table with a row for each object; only the first of a watch has the columns."""

    def __init__(self, rt: ResourceType, include: str, now: float) -> None:
        self._rt = rt
        self._include = include or "Metadata"
        self._now = now
        self._has_columns = False

    def _table(self, entries: Iterable[Entry], metadata: Obj) -> Obj:
        columns = printing.columns(self._rt)
        rows = [self._row(entry) for entry in entries]
        had_columns = self._has_columns
        self._has_columns = True
        head: Obj = {"kind": "Table", "apiVersion": META_VERSION, "metadata": metadata}
        head["columnDefinitions"] = [] if had_columns else columns
        return {**head, "rows": rows}

    def _row(self, entry: Entry) -> Obj:
        row: Obj = {"cells": printing.cells(self._rt, to_version(self._rt, entry.obj), self._now)}
        if self._include == "Object":
            row["object"] = to_version(self._rt, entry.obj)
        elif self._include == "Metadata":
            metadata = entry.obj["metadata"]
            row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": META_VERSION, "metadata": metadata}
        return row

    def one(self, entry: Entry) -> bytes:
        """Return a table with a single row."""
        self._has_columns = False
        return encode(self._table([entry], {"resourceVersion": str(entry.revision)}))

    def many(self, entries: Iterable[Entry], metadata: Obj) -> bytes:
        """Return a table."""
        self._has_columns = False
        return encode(self._table(entries, metadata))

    def frame(self, kind: str, entry: Entry) -> bytes:
        """Return ``{type, object}`` with a table of a single row."""
        return encode({"type": kind, "object": self._table([entry], {"resourceVersion": str(entry.revision)})})

    def bookmark(self, revision: int, annotations: Mapping[str, str] | None = None) -> bytes:
        """Return an empty table that has a version."""
        del annotations
        return encode({"type": "BOOKMARK", "object": self._table([], {"resourceVersion": str(revision)})})


def view_of(rt: ResourceType, accept: Accept, include: str, now: float) -> View:
    """Return the form that the client accepts; ``include`` is the query's ``includeObject``."""
    if accept.form == "Table":
        return Tabular(rt, include, now)
    if accept.form.startswith("PartialObjectMetadata"):
        return MetadataOnly(rt)
    return Whole(rt)


def _list_head(kind: str, api_version: str, metadata: Obj) -> bytes:
    return encode({"kind": kind, "apiVersion": api_version, "metadata": metadata})[:-1] + b',"items":['


def _bookmark(kind: str, api_version: str, revision: int, annotations: Mapping[str, str] | None) -> bytes:
    metadata: Obj = {"resourceVersion": str(revision)}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return encode({"type": "BOOKMARK", "object": {"kind": kind, "apiVersion": api_version, "metadata": metadata}})
