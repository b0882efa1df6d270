"""PATCH: the four kinds of patch, each on the object in the version of the path."""

from collections.abc import Callable
from typing import Any

from kube_envtest.apiserver import apply, patches
from kube_envtest.apiserver.bodies import parse
from kube_envtest.apiserver.errors import (
    ApiError,
    apply_conflict,
    bad_request,
    unhandled,
    unsupported_patch,
)
from kube_envtest.apiserver.reading import refuse_undeclared
from kube_envtest.apiserver.request import Call

Obj = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

#: Maximum number of operations in a JSON patch. Source: ``maxJSONPatchOperations`` of apiserver.
MOST_OPERATIONS = 10_000


def patch_kind(call: Call) -> str:
    """Return the media type of the patch.

    Raises:
        ApiError: UnsupportedMediaType: the resource doesn't accept it.
    """
    form = call.request.content_type.partition(";")[0].strip()
    accepted = [JSON_PATCH, MERGE_PATCH, *(() if call.type.custom else (STRATEGIC,)), APPLY]
    if form not in accepted:
        raise unsupported_patch()
    return form


def patched(call: Call, form: str, doc: Obj) -> Obj:
    """Return the object after the patch; ``doc`` is a private copy."""
    try:
        return _apply(call, form, doc)
    except patches.PatchError as problem:
        raise _patch_error(problem) from None


def _apply(call: Call, form: str, doc: Obj) -> Obj:
    content = _content(call.request.body)
    if form == JSON_PATCH:
        if isinstance(content, list) and len(content) > MOST_OPERATIONS:
            text = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(content)}"
            raise ApiError(413, "RequestEntityTooLarge", text, {})
        result = patches.json_patch(doc, content)
    elif form == MERGE_PATCH:
        result = patches.merge_patch(doc, content)
    else:
        result = patches.strategic_merge(doc, content, resource=call.type.kind)
    if not isinstance(result, dict):
        raise bad_request("cannot restore struct from: not an object")
    return result


def _content(body: bytes) -> Any:
    try:
        return parse(body, "application/json")
    except ApiError as problem:
        text = problem.message.replace("couldn't get version/kind; json parse error", "error decoding patch")
        raise bad_request(text) from None


def _patch_error(problem: patches.PatchError) -> ApiError:
    if problem.code == 422:
        return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})
    return bad_request(str(problem))


def applied(call: Call, live: Obj | None) -> Obj:
    """Return the object after a server-side apply.

    Raises:
        ApiError: Conflict: other managers own the fields.
    """
    manager = call.query.get("fieldManager", "")
    if not manager:
        raise _no_manager()
    content = parse(call.request.body, "application/yaml")
    if not isinstance(content, dict):
        raise bad_request("error decoding YAML: not an object")
    _check_applied(call, content)
    refuse_undeclared(call, content)
    force = call.query.get("force", "") in ("true", "1")
    return _refusing(lambda: _server_side(call, live, content, manager, force))


def _server_side(call: Call, live: Obj | None, content: Obj, manager: str, force: bool) -> Obj:
    return apply.server_side_apply(
        live,
        content,
        manager=manager,
        force=force,
        now=call.now,
        subresource=call.subresource,
        schema=call.type.schema,
    )


def _refusing(build: Callable[[], Obj]) -> Obj:
    try:
        return build()
    except apply.ApplyConflict as problem:
        raise apply_conflict(str(problem), problem.causes) from None
    except apply.ApplyRefusedError as problem:
        raise bad_request(str(problem)) if problem.code == 400 else unhandled(str(problem)) from None


def _check_applied(call: Call, content: Obj) -> None:
    version = content.get("apiVersion", "")
    kind = content.get("kind", "")
    if (version, kind) != (call.type.api_version, call.type.kind):
        found = f"{version}, Kind={kind}"
        expected = f"{call.type.api_version}, Kind={call.type.kind}"
        raise bad_request(f"invalid object type: {found} (expected {expected})")
    name = (content.get("metadata") or {}).get("name")
    if name != call.name:
        text = f"the name of the object ({name or ''}) does not match the name on the URL ({call.name})"
        raise bad_request(text)


def _no_manager() -> ApiError:
    message = 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
    causes = [
        {
            "reason": "FieldValueRequired",
            "message": "Required value: is required for apply patch",
            "field": "fieldManager",
        }
    ]
    about = {"group": "meta.k8s.io", "kind": "PatchOptions", "causes": causes}
    return ApiError(422, "Invalid", message, about)
