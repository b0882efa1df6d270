"""The part of a CRD's specification that crosses, and the changes that are safe once objects are
stored.

The rules of versions:
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from syncer.api import Obj, Refused, Resource, Side, dig
from syncer.resources.definitions import schemas
from syncer.resources.definitions.config import Conversion


@dataclass(frozen=True, slots=True)
class Crossing:
    """The specification for the other side.

    ``notes`` say what differs there, and why. ``stripped`` is True if a conversion webhook was
    removed.
    """

    spec: Obj
    notes: tuple[str, ...] = ()
    stripped: bool = False


def crossing(crd: Obj, *, conversion: Conversion) -> Crossing:
    """Return the specification of a CRD for an API server that can't reach the CRD's webhook.

    Raises:
        Refused: The CRD has a webhook, and the policy is to refuse that.
    """
    spec, notes = _without_blanket_preservation(_with_defaults(crd["spec"]), crd)
    if dig(spec, "conversion.strategy") != "Webhook":
        return Crossing(spec, notes)
    if conversion == "refuse":
        raise Refused(
            "a webhook converts between its versions, which can't be reached from the other side; set conversion: strip"
            " to do without it",
            path="spec.conversion",
        )
    spec, left_out = _without_webhook(spec)
    return Crossing(spec, (*notes, *left_out), stripped=True)


def custom_resource(crd: Obj) -> Resource:
    """Return the resource that a CRD defines, in the stored version if it is served, or else in
    another served one.
    """
    spec = crd["spec"]
    served = [version["name"] for version in spec["versions"] if version.get("served")]
    stored: str = storage_version(spec)["name"]
    version = stored if stored in served or not served else served[0]
    names = spec["names"]
    return Resource(f"{spec['group']}/{version}", names["kind"], names["plural"], spec["scope"] == "Namespaced")


def defined(name: str) -> Resource:
    """Return the resource that a CRD of this name defines, in any version and scope, for a right."""
    plural, _, group = name.partition(".")
    return Resource(f"{group}/*", "*", plural, namespaced=False)


def storage_version(spec: Obj) -> Obj:
    """Return the version in which objects are stored; a valid CRD has exactly one."""
    return next((version for version in spec["versions"] if version.get("storage")), spec["versions"][-1])


def refuse_unsafe(wanted: Crossing, live: Obj, side: Side) -> None:
    """Refuse a change that is impossible, or by which stored objects would lose fields.

    Raises:
        Refused: The live CRD can't be changed to the wanted one.
    """
    _refuse_another_kind(wanted.spec, live["spec"], side)
    versions = {version["name"]: version for version in wanted.spec["versions"]}
    stored = [str(version) for version in dig(live, "status.storedVersions") or ()]
    _refuse_lost_versions([version for version in stored if version not in versions], side)
    if wanted.stripped:
        _refuse_unreadable(wanted.spec, versions, stored, side)


def _place(side: Side) -> str:
    return "in the virtual cluster" if side is Side.VIRTUAL else "on the host"


def _refuse_another_kind(wanted: Obj, live: Obj, side: Side) -> None:
    for path in ("scope", "names.kind", "names.plural"):
        new, old = dig(wanted, path), dig(live, path)
        if new != old:
            raise Refused(
                f"it is {new} now, and can't be changed from {old} {_place(side)}; delete the CRD there, with its"
                " objects, to have it made anew",
                path=f"spec.{path}",
            )


def _refuse_lost_versions(lost: Iterable[str], side: Side) -> None:
    if names := ", ".join(lost):
        raise Refused(
            f"{names} is gone, but objects may be stored as {names} {_place(side)}; write each of them once, then take"
            f" {names} out of status.storedVersions of the CRD there",
            path="spec.versions",
        )


def _refuse_unreadable(wanted: Obj, versions: Mapping[str, Obj], stored: Iterable[str], side: Side) -> None:
    """Refuse versions with different schemas: without the webhook, an object stored in one version
    and read in another loses unknown fields.
    """
    storage = storage_version(wanted)
    unlike = [name for name in stored if not _alike(versions[name], storage)]
    if names := ", ".join(unlike):
        raise Refused(
            f"{storage['name']} is stored now, but objects may be stored as {names} {_place(side)}, with another schema"
            " and no webhook to convert them; save them, delete the CRD there to have it made anew, and create them"
            f" as {storage['name']}",
            path="spec.versions",
        )


def _with_defaults(spec: Obj) -> Obj:
    """Return the specification with the defaults of an API server, so that both sides can be compared."""
    names: Obj = spec["names"]
    kind = names["kind"]
    defaults: dict[str, Any] = {"singular": kind.lower(), "listKind": f"{kind}List"}
    named = {**defaults, **{name: value for name, value in names.items() if value}}
    conversion = spec.get("conversion") or {"strategy": "None"}
    return {**spec, "names": named, "conversion": conversion}


def _without_blanket_preservation(spec: Obj, crd: Obj) -> tuple[Obj, tuple[str, ...]]:
    """Replace ``preserveUnknownFields: true``, left from apiextensions/v1beta1, which no API server
    accepts in a new CRD.

    Schemas that keep unknown fields have the same effect. A schema that isn't structural, which a
    new CRD may not have either, is removed; the API server reports that in a condition.
    """
    kept = {name: value for name, value in spec.items() if name != "preserveUnknownFields"}
    if not spec.get("preserveUnknownFields"):
        return kept, ()
    structural = not any(
        one.get("type") == "NonStructuralSchema" and one.get("status") == "True"
        for one in dig(crd, "status.conditions") or ()
    )
    versions = [{**version, "schema": _keeping_all(version, structural)} for version in spec["versions"]]
    if structural:
        return {**kept, "versions": versions}, ("preserveUnknownFields is said by the schemas",)
    return {**kept, "versions": versions}, ("its schemas are not structural, so that anything is taken",)


def _keeping_all(version: Obj, structural: bool) -> Obj:
    schema = _schema(version)
    opened = schemas.opened(schema) if schema and structural else schemas.anything()
    return {**(version.get("schema") or {}), "openAPIV3Schema": opened}


def _without_webhook(spec: Obj) -> tuple[Obj, tuple[str, ...]]:
    """Return the specification without conversion, and with only those versions served that need none."""
    storage = storage_version(spec)
    unlike = [one["name"] for one in spec["versions"] if one.get("served") and not _alike(one, storage)]
    versions = [{**one, "served": False} if one["name"] in unlike else one for one in spec["versions"]]
    if not any(version.get("served") for version in versions):
        raise Refused(
            f"its objects are stored as {storage['name']}, which isn't served, and the webhook that converts them can't"
            " be reached from the other side; store a version that is served",
            path="spec.conversion",
        )
    notes = ["its conversion webhook can't be reached from there and is left out"]
    if unlike:
        notes.append(f"{', '.join(unlike)} is not served there, as its schema differs from that of {storage['name']}")
    return {**spec, "versions": versions, "conversion": {"strategy": "None"}}, tuple(notes)


def _alike(one: Obj, other: Obj) -> bool:
    return one["name"] == other["name"] or schemas.alike(_schema(one), _schema(other))


def _schema(version: Obj) -> Obj | None:
    schema: Obj | None = dig(version, "schema.openAPIV3Schema")
    return schema
