"""Decode an object by its kind: unknown fields are dropped, reported, or refused, according to
``fieldValidation``.

Source: "Field validation" in kubernetes.io/docs/reference/using-api/api-concepts.
"""

from typing import Any

from kube_envtest.apiserver.errors import ApiError, bad_request, cause, unhandled
from kube_envtest.apiserver.request import Call
from kube_envtest.apiserver.resources import ResourceType
from kube_envtest.apiserver.structs import Reader, lost, name_of

Obj = dict[str, Any]


def read(call: Call, obj: Obj) -> Obj:
    """Return the object without unknown fields, which are added to the call's warnings.

    Raises:
        ApiError: BadRequest: a value has a wrong type, or an unknown field is refused. Invalid: a
            patch caused that.
    """
    known, unknown = known_part(call.type, obj)
    if unknown:
        faults = [f'unknown field "{path}"' for path in unknown]
        directive = call.query.get("fieldValidation") or "Warn"
        if directive == "Strict":
            raise _refused(call, ", ".join(faults))
        if directive == "Warn":
            call.warnings.extend(faults)
    return known


def known_part(rt: ResourceType, obj: Obj) -> tuple[Obj, list[str]]:
    """Return the object without unknown fields, and the paths of these."""
    if rt.custom:
        if rt.schema is None:
            return obj, []
        pruned = rt.schema.prune(obj)
        return pruned, list(lost(obj, pruned))
    name = name_of(rt.stored_api_version, rt.kind)
    if not name:
        return obj, []
    reader = Reader(_subject(rt))
    return reader.struct(name, obj, "", ""), reader.unknown


def _subject(rt: ResourceType) -> str:
    return f'{rt.kind} in version "{rt.version}" cannot be handled as a {rt.kind}'


def _refused(call: Call, faults: str) -> ApiError:
    text = f"strict decoding error: {faults}"
    if call.verb == "patch":
        message = f"Invalid value: {text}"
        causes = [cause("patch", message)]
        return ApiError(422, "Invalid", f' "" is invalid: patch: {message}', {"causes": causes})
    if call.type.custom:
        return bad_request(text)
    return bad_request(f"{_subject(call.type)}: {text}")


def refuse_undeclared(call: Call, obj: Obj) -> None:
    """Refuse an unknown field in server-side apply: 500, as on the real server."""
    _, unknown = known_part(call.type, obj)
    if unknown:
        namespace = obj["metadata"].get("namespace") or ""
        what = f"{namespace}/{call.name}; {call.type.api_version if call.type.group else '/v1'}, Kind={call.type.kind}"
        text = f"failed to create typed patch object ({what}): .{unknown[0]}: field not declared in schema"
        raise unhandled(text)
