"""Errors of an API server: ``Status`` objects with the real server's reasons, details and messages."""

from collections.abc import Mapping, Sequence
from typing import Any

from kube_envtest.apiserver.resources import ResourceType

Obj = dict[str, Any]

EXPIRED_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class ApiError(Exception):
    """An error with a ``Status``; ``headers`` are sent with it (``Retry-After``)."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Obj | None = None,
        *,
        metadata: Obj | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata = metadata
        self.headers = headers or {}

    def status(self) -> Obj:
        """Return the body of the response."""
        out: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata or {}, "status": "Failure"}
        out["message"] = self.message
        if self.reason:
            out["reason"] = self.reason
        if self.details is not None:
            out["details"] = self.details
        out["code"] = self.code
        return out


def details(rt: ResourceType, name: str = "", *, kind: str = "") -> Obj:
    """Return the ``details`` for an object; empty parts are left out."""
    parts = {"name": name, "group": rt.group, "kind": kind or rt.plural}
    return {key: value for key, value in parts.items() if value}


def not_found(rt: ResourceType, name: str) -> ApiError:
    """Return 404 for an object that doesn't exist."""
    return ApiError(404, "NotFound", f'{rt.full_name} "{name}" not found', details(rt, name))


def unknown_path() -> ApiError:
    """Return 404 for a resource that isn't served."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


class NoSuchPath(ApiError):
    """404 for an unknown path, in plain text without a ``Status``, like the real server's mux."""

    def __init__(self) -> None:
        super().__init__(404, "NotFound", "404 page not found", {})


def already_exists(rt: ResourceType, name: str) -> ApiError:
    """Return 409 for a create of an existing object."""
    return ApiError(409, "AlreadyExists", f'{rt.full_name} "{name}" already exists', details(rt, name))


def conflict(rt: ResourceType, name: str, why: str, *, by_kind: bool = False) -> ApiError:
    """Return 409 for an outdated resourceVersion or a failed precondition; a delete names the kind
    instead of the resource.
    """
    shown = rt.kind if by_kind else rt.plural
    full = f"{shown}.{rt.group}" if rt.group else shown
    message = f'Operation cannot be fulfilled on {full} "{name}": {why}'
    return ApiError(409, "Conflict", message, details(rt, name, kind=shown))


def modified(rt: ResourceType, name: str) -> ApiError:
    """Return 409 for an outdated resourceVersion."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(rt, name, why)


def apply_conflict(message: str, causes: Sequence[Obj]) -> ApiError:
    """Return 409 for fields that another manager owns."""
    return ApiError(409, "Conflict", message, {"causes": list(causes)})


def invalid(rt: ResourceType, name: str, causes: Sequence[Obj]) -> ApiError:
    """Return 422 with a cause (``reason``, ``message``, ``field``) for each invalid field."""
    shown = f"{rt.kind}.{rt.group}" if rt.group else rt.kind
    lines = []
    for cause in causes:
        line = cause["message"]
        if cause.get("field"):
            line = f"{cause['field']}: {line}"
        lines.append(line)
    text = lines[0] if len(lines) == 1 else "[" + ", ".join(lines) + "]"
    about = {**details(rt, name, kind=rt.kind), "causes": list(causes)}
    return ApiError(422, "Invalid", f'{shown} "{name}" is invalid: {text}', about)


def cause(field: str, message: str, reason: str = "FieldValueInvalid") -> Obj:
    """Return a cause of an ``Invalid``."""
    return {"reason": reason, "message": message, "field": field}


def bad_request(message: str) -> ApiError:
    """Return 400 for a malformed request."""
    return ApiError(400, "BadRequest", message)


def forbidden(rt: ResourceType, name: str, why: str) -> ApiError:
    """Return 403 from admission or RBAC."""
    subject = f'{rt.full_name} "{name}"' if name else rt.full_name
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", details(rt, name))


def forbidden_path(user: str, verb: str, path: str) -> ApiError:
    """Return 403 for a path that is no resource."""
    return ApiError(403, "Forbidden", f'forbidden: User "{user}" cannot {verb} path "{path}"', {})


def unauthorized() -> ApiError:
    """Return 401 for an unknown credential."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> ApiError:
    """Return 405 for a verb that the resource doesn't have."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    """Return 415 for a body in a format that the endpoint doesn't accept."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return ApiError(415, "UnsupportedMediaType", message)


def unsupported_patch() -> ApiError:
    """Return 415 for a kind of patch that the resource doesn't accept."""
    return ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def expired(message: str, *, continue_token: str = "") -> ApiError:
    """Return 410 for a compacted resourceVersion or continue token."""
    metadata = None
    if continue_token:
        metadata = {"continue": continue_token}
    return ApiError(410, "Expired", message, metadata=metadata)


def too_old(version: int, oldest: int) -> ApiError:
    """Return 410 for a watch from before the kept history."""
    return expired(f"too old resource version: {version} ({oldest})")


def too_large(asked: int, current: int) -> ApiError:
    """Return 504 for a resourceVersion in the future."""
    about = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
    message = f"Too large resource version: {asked}, current: {current}"
    return ApiError(504, "Timeout", message, {**about, "retryAfterSeconds": 1}, headers={"Retry-After": "1"})


def too_many(message: str = "too many requests, please try again later", *, retry_after: int = 1) -> ApiError:
    """Return 429 with the seconds to wait."""
    headers = {"Retry-After": str(retry_after)}
    return ApiError(429, "TooManyRequests", message, {"retryAfterSeconds": retry_after}, headers=headers)


def unhandled(message: str) -> ApiError:
    """Return 500 without a reason, for errors that the real server doesn't map to a ``Status``."""
    return ApiError(500, "", message)
