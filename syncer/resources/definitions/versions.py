"""The part of a CRD's specification that crosses, and the changes that are safe.

Once objects are stored, some changes would lose fields of them. For the rules of versions see
kubernetes.io, "Versions in CustomResourceDefinitions".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from syncer.api import Obj, Refused, Resource, Side, dig
from syncer.resources.definitions import schemas
from syncer.resources.definitions.config import Conversion

#: The short names of kinds that API servers have (``kubectl api-resources``), and the names of
#: those kinds that people ask for in full.
_SHORT_NAMES = frozenset(
    (
        *("cm", "cj", "crd", "crds", "csr", "deploy", "ds", "ep", "ev", "hpa", "ing", "limits"),
        *("netpol", "no", "ns", "pc", "pdb", "po", "pv", "pvc", "quota", "rc", "rs", "sa", "sc"),
        *("sts", "svc", "vac", "pod", "pods", "node", "nodes", "secret", "secrets", "service"),
        *("services", "configmap", "configmaps", "namespace", "namespaces", "event", "events"),
        *("deployment", "deployments", "job", "jobs", "lease", "leases", "role", "roles"),
    ),
)
#: The categories of kinds that API servers have.
_CATEGORIES = frozenset({"all", "api-extensions"})


@dataclass(frozen=True, slots=True)
class Crossing:
    """The specification for the other side."""

    spec: Obj
    #: The differences there, each with its reason.
    notes: tuple[str, ...] = ()
    #: True if a conversion webhook was removed.
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
        why = "a webhook converts between its versions, which can't be reached from the other side"
        how = "set conversion: strip to sync without the webhook"
        raise Refused(f"{why}; {how}", path="spec.conversion")
    spec, left_out = _without_webhook(spec)
    return Crossing(spec, (*notes, *left_out), stripped=True)


def without_built_in_names(wanted: Crossing) -> Crossing:
    """Return a tenant's specification without short names and categories of built-in kinds.

    Otherwise ``kubectl get po`` or ``kubectl delete all`` of the host's people could mean the
    tenant's objects.
    """
    names: Obj = wanted.spec["names"]
    result = dict(names)
    notes = list(wanted.notes)
    for part, built_in in (("shortNames", _SHORT_NAMES), ("categories", _CATEGORIES)):
        given = names.get(part) or ()
        taken = [each for each in given if each in built_in]
        if taken:
            kept = [each for each in given if each not in built_in]
            result |= {part: kept}
            notes.append(f"{part} of built-in kinds are left out: {', '.join(taken)}")
            if not kept:
                del result[part]
    if result == names:
        return wanted
    return replace(wanted, spec={**wanted.spec, "names": result}, notes=tuple(notes))


def custom_resource(crd: Obj) -> Resource:
    """Return the resource that a CRD defines.

    The version is the stored one if it is served, or else another served one.
    """
    spec = crd["spec"]
    version: str = storage_version(spec)["name"]
    served = [each["name"] for each in spec["versions"] if each.get("served")]
    if served and version not in served:
        version = served[0]
    names = spec["names"]
    namespaced = spec["scope"] == "Namespaced"
    return Resource(f"{spec['group']}/{version}", names["kind"], names["plural"], namespaced)


def defined(name: str) -> Resource:
    """Return the resource of a CRD of this name, in any version and scope, for a right."""
    plural, _, group = name.partition(".")
    return Resource(f"{group}/*", "*", plural, namespaced=False)


def storage_version(spec: Obj) -> Obj:
    """Return the version in which objects are stored; a valid CRD has exactly one."""
    versions: list[Obj] = spec["versions"]
    for version in versions:
        if version.get("storage"):
            return version
    return versions[-1]


def refuse_unsafe(wanted: Crossing, live: Obj, side: Side) -> None:
    """Refuse a change that is impossible, or by which stored objects would lose fields.

    Raises:
        Refused: The live CRD can't be changed to the wanted one.
    """
    where = "in the virtual cluster" if side is Side.VIRTUAL else "on the host"
    _refuse_another_kind(wanted.spec, live["spec"], where)

    versions = {version["name"]: version for version in wanted.spec["versions"]}
    stored = [str(version) for version in dig(live, "status.storedVersions") or ()]
    lost = ", ".join(version for version in stored if version not in versions)
    if lost:
        why = f"{lost} is gone, but objects may be stored as {lost} {where}"
        how = f"write each of them once, then take {lost} out of"
        how = f"{how} status.storedVersions of the CRD there"
        raise Refused(f"{why}; {how}", path="spec.versions")

    if wanted.stripped:
        _refuse_unreadable(wanted.spec, versions, stored, where)


def _refuse_another_kind(wanted: Obj, live: Obj, where: str) -> None:
    """Refuse to change the scope, the kind or the plural of a CRD, which are immutable."""
    for path in ("scope", "names.kind", "names.plural"):
        new = dig(wanted, path)
        old = dig(live, path)
        if new != old:
            why = f"it is {new} now, and can't be changed from {old} {where}"
            how = "delete the CRD there, with its objects, and it is created again"
            raise Refused(f"{why}; {how}", path=f"spec.{path}")


def _refuse_unreadable(
    wanted: Obj,
    versions: Mapping[str, Obj],
    stored: Iterable[str],
    where: str,
) -> None:
    """Refuse versions with different schemas.

    Without the webhook, an object that is stored in one version and read in another loses the
    fields that the other one doesn't know.
    """
    storage = storage_version(wanted)
    name = storage["name"]
    others = ", ".join(each for each in stored if not _alike(versions[each], storage))
    if others:
        why = f"{name} is stored now, but objects may be stored as {others} {where}"
        why = f"{why}, with another schema and no webhook to convert them"
        how = "save them, delete the CRD there (it is created again), and create them"
        raise Refused(f"{why}; {how} as {name}", path="spec.versions")


def _with_defaults(spec: Obj) -> Obj:
    """Return the specification with an API server's defaults, so that both sides compare equal."""
    names: Obj = spec["names"]
    kind = names["kind"]
    defaults: dict[str, Any] = {"singular": kind.lower(), "listKind": f"{kind}List"}
    given = {name: value for name, value in names.items() if value}
    named = {**defaults, **given}
    conversion = spec.get("conversion") or {"strategy": "None"}
    return {**spec, "names": named, "conversion": conversion}


def _without_blanket_preservation(spec: Obj, crd: Obj) -> tuple[Obj, tuple[str, ...]]:
    """Replace ``preserveUnknownFields: true``, which no API server accepts in a new CRD.

    It is left from apiextensions/v1beta1. Schemas that keep unknown fields have the same effect. A
    schema that isn't structural, which a new CRD may not have either, is removed; the API server
    reports that in a condition.
    """
    kept = {name: value for name, value in spec.items() if name != "preserveUnknownFields"}
    if not spec.get("preserveUnknownFields"):
        return kept, ()
    conditions = dig(crd, "status.conditions") or ()
    found = [one.get("status") for one in conditions if one.get("type") == "NonStructuralSchema"]
    is_structural = "True" not in found
    kept["versions"] = []
    for version in spec["versions"]:
        schema = _schema(version)
        # Unknown fields can only be kept below a schema that is structural.
        made = schemas.anything()
        if schema and is_structural:
            made = schemas.opened(schema)
        given = version.get("schema") or {}
        opened = {**version, "schema": {**given, "openAPIV3Schema": made}}
        kept["versions"].append(opened)

    if is_structural:
        return kept, ("its schemas stand for preserveUnknownFields",)
    return kept, ("its schemas are not structural, so any field is accepted",)


def _without_webhook(spec: Obj) -> tuple[Obj, tuple[str, ...]]:
    """Return the specification without conversion, and the notes about that.

    Only those versions are served that need no conversion.
    """
    storage = storage_version(spec)
    versions = []
    unlike = []
    for version in spec["versions"]:
        if version.get("served") and not _alike(version, storage):
            unlike.append(version["name"])
            versions.append({**version, "served": False})
        else:
            versions.append(version)
    if not any(version.get("served") for version in versions):
        why = f"its objects are stored as {storage['name']}, which isn't served"
        why = f"{why}, and the webhook that converts them can't be reached from the other side"
        raise Refused(f"{why}; store a version that is served", path="spec.conversion")

    notes = ["its conversion webhook can't be reached from there and is left out"]
    if unlike:
        named = ", ".join(unlike)
        why = f"as its schema differs from that of {storage['name']}"
        notes.append(f"{named} is not served there, {why}")
    return {**spec, "versions": versions, "conversion": {"strategy": "None"}}, tuple(notes)


def _alike(one: Obj, other: Obj) -> bool:
    """Return True if objects of one version can be read in the other without a conversion."""
    return one["name"] == other["name"] or schemas.alike(_schema(one), _schema(other))


def _schema(version: Obj) -> Obj | None:
    schema: Obj | None = dig(version, "schema.openAPIV3Schema")
    return schema
