"""The failures of an API server: ``Status`` objects with the reasons, details and messages of the real one."""

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
    """A request that fails with a ``Status``; ``headers`` go out with it (``Retry-After``)."""

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
        """The body of the reply."""
        out: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata or {}, "status": "Failure"}
        out["message"] = self.message
        if self.reason:
            out["reason"] = self.reason
        if self.details is not None:
            out["details"] = self.details
        out["code"] = self.code
        return out


def details(rt: ResourceType, name: str = "", *, kind: str = "") -> Obj:
    """The ``details`` that name one object; empty parts are left out."""
    parts = {"name": name, "group": rt.group, "kind": kind or rt.plural}
    return {key: value for key, value in parts.items() if value}


def not_found(rt: ResourceType, name: str) -> ApiError:
    """404 for an object that doesn't exist."""
    return ApiError(404, "NotFound", f'{rt.full_name} "{name}" not found', details(rt, name))


def unknown_path() -> ApiError:
    """404 for a resource that isn't served."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


class NoSuchPath(ApiError):
    """404 for a path that nothing is behind; the real server's mux says so in plain text, without a ``Status``."""

    def __init__(self) -> None:
        super().__init__(404, "NotFound", "404 page not found", {})


def already_exists(rt: ResourceType, name: str) -> ApiError:
    """409 for a create of what exists."""
    return ApiError(409, "AlreadyExists", f'{rt.full_name} "{name}" already exists', details(rt, name))


def conflict(rt: ResourceType, name: str, why: str, *, by_kind: bool = False) -> ApiError:
    """409 for an outdated resourceVersion or a failed precondition; deletes name the kind and not the resource."""
    shown = rt.kind if by_kind else rt.plural
    full = f"{shown}.{rt.group}" if rt.group else shown
    message = f'Operation cannot be fulfilled on {full} "{name}": {why}'
    return ApiError(409, "Conflict", message, details(rt, name, kind=shown))


def modified(rt: ResourceType, name: str) -> ApiError:
    """409 for an outdated resourceVersion."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(rt, name, why)


def apply_conflict(message: str, causes: Sequence[Obj]) -> ApiError:
    """409 for fields that another manager owns."""
    return ApiError(409, "Conflict", message, {"causes": list(causes)})


def invalid(rt: ResourceType, name: str, causes: Sequence[Obj]) -> ApiError:
    """422 with one cause (``reason``, ``message``, ``field``) for each bad field."""
    shown = f"{rt.kind}.{rt.group}" if rt.group else rt.kind
    lines = [f"{cause['field']}: {cause['message']}" if cause.get("field") else cause["message"] for cause in causes]
    text = lines[0] if len(lines) == 1 else "[" + ", ".join(lines) + "]"
    about = {**details(rt, name, kind=rt.kind), "causes": list(causes)}
    return ApiError(422, "Invalid", f'{shown} "{name}" is invalid: {text}', about)


def cause(field: str, message: str, reason: str = "FieldValueInvalid") -> Obj:
    """One cause of an ``Invalid``."""
    return {"reason": reason, "message": message, "field": field}


def bad_request(message: str) -> ApiError:
    """400 for what can't be understood."""
    return ApiError(400, "BadRequest", message)


def forbidden(rt: ResourceType, name: str, why: str) -> ApiError:
    """403 by admission or by RBAC."""
    subject = f'{rt.full_name} "{name}"' if name else rt.full_name
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", details(rt, name))


def forbidden_path(user: str, verb: str, path: str) -> ApiError:
    """403 for a URL that is no resource."""
    return ApiError(403, "Forbidden", f'forbidden: User "{user}" cannot {verb} path "{path}"', {})


def unauthorized() -> ApiError:
    """401 for a credential that nobody knows."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> ApiError:
    """405 for a verb that the resource doesn't have."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    """415 for a body in a form that the endpoint doesn't take."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return ApiError(415, "UnsupportedMediaType", message)


def unsupported_patch() -> ApiError:
    """415 for a patch of a kind that the resource doesn't take."""
    return ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def expired(message: str, *, continue_token: str = "") -> ApiError:
    """410 for a resourceVersion or a continue token that has been compacted away."""
    return ApiError(410, "Expired", message, metadata={"continue": continue_token} if continue_token else None)


def too_old(version: int, oldest: int) -> ApiError:
    """410 for a watch from before the history that is kept."""
    return expired(f"too old resource version: {version} ({oldest})")


def too_large(asked: int, current: int) -> ApiError:
    """504 for a resourceVersion that this server hasn't reached."""
    about = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
    message = f"Too large resource version: {asked}, current: {current}"
    return ApiError(504, "Timeout", message, {**about, "retryAfterSeconds": 1}, headers={"Retry-After": "1"})


def too_many(message: str = "too many requests, please try again later", *, retry_after: int = 1) -> ApiError:
    """429 with the seconds to wait."""
    headers = {"Retry-After": str(retry_after)}
    return ApiError(429, "TooManyRequests", message, {"retryAfterSeconds": retry_after}, headers=headers)


def unhandled(message: str) -> ApiError:
    """500 without a reason, for what the real server doesn't map to a ``Status``."""
    return ApiError(500, "", message)
