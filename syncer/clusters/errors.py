"""Turn a failed request into the error that says what the engine does next, in words for people."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from syncer.api.errors import (
    ClusterError,
    Conflict,
    Denied,
    Exists,
    Expired,
    Forbidden,
    Invalid,
    Missing,
    MissingRight,
    NoCredentials,
    QuotaExceeded,
    TooMany,
    Unauthorized,
    Unreachable,
)
from syncer.api.objects import Key, Obj, Resource, Side
from syncer.clusters import codec
from syncer.clusters.field_errors import without_values
from syncer.clusters.transport import (
    ConnectionFailed,
    CredentialsAwaited,
    CredentialsFailed,
    HttpResponse,
    ReplyTooLarge,
)

#: Seconds to wait if the server asks for that without a time.
DEFAULT_RETRY_AFTER = 1.0
#: Longest delay that is accepted from a server, in seconds.
LONGEST_RETRY_AFTER = 60.0
#: The message of an authorizer's refusal (``ForbiddenMessage`` in k8s.io/apiserver).
_REFUSAL = re.compile(
    r'User "([^"]*)" cannot (\S+) resource "([^"]*)"(?: in API group "([^"]*)")?(?: in the namespace "([^"]*)")?',
)
#: The user of a request whose credentials count for nothing, as a refusal names it.
_ANONYMOUS = 'User "system:anonymous" cannot '
#: The message of the quota plugin, and that of a webhook's or policy's refusal, with any status.
_QUOTA = re.compile(r"exceeded quota: ([^,\s]+)(?:, requested: (.*?), used: )?")
_BY_POLICY = re.compile(
    r"admission webhook \S+ denied the request|ValidatingAdmissionPolicy \S+ .*denied request",
)
#: The message of admission; ``could not find the requested resource`` and the like are no such
#: refusals.
_ADMISSION = re.compile(r"is forbidden: ")
_TERMINATING = "being terminated"
#: etcd's refusal of an object over its ``--max-request-bytes`` (by default 1.5 MiB), and that of
#: the API server's client of etcd over 2 MiB. The API server passes both on with status 500.
_TOO_LARGE = ("etcdserver: request is too large", "trying to send message larger than max")
#: Causes of a refusal that are shown whole.
_MOST_CAUSES = 5
#: Most characters of a text of a cause.
_MOST_MESSAGE = 500
#: The texts of a Status' details that are kept, and the causes at most.
_DETAILS, _MOST_KEPT = ("name", "group", "kind", "uid"), 100


#: The verbs that are subject to admission.
_WRITES = ("create", "update", "patch", "delete")

#: Creates an error from its message and the fields of a request.
ErrorFactory = Callable[..., ClusterError]


def _nothing() -> str:
    return ""


def _never() -> float | None:
    return None


@dataclass(frozen=True, slots=True)
class ClusterOrigin:
    """The origin of a cluster in messages: its address, its file, and its credentials.

    ``credentials`` describes them; ``complaint`` is their known problem, or ``""``; ``ends`` is the
    end of the client certificate in seconds since 1970, or None.
    """

    address: str = ""
    source: str = ""
    credentials: Callable[[], str] = _nothing
    complaint: Callable[[], str] = _nothing
    ends: Callable[[], float | None] = _never


UNKNOWN_ORIGIN = ClusterOrigin()


@dataclass(frozen=True, slots=True)
class FailedRequest:
    """A request, as in messages."""

    cluster: str
    side: Side | None
    verb: str
    resource: Resource | None = None
    key: Key | None = None
    subresource: str = ""

    def __str__(self) -> str:
        what = str(self.resource) if self.resource else "the API"
        what = f"{what}/{self.subresource}" if self.subresource else what
        return f"{self.place}: {self.verb} {what}{f' {self.key}' if self.key and self.key.name else ''}"

    @property
    def place(self) -> str:
        """The cluster: its side if it has one, and its name if that adds something."""
        if self.side is None:
            return f"cluster {self.cluster}"
        return f"{self.side} cluster" + (f" {self.cluster}" if self.cluster not in ("", self.side.value) else "")

    def fields(self) -> dict[str, Any]:
        """Return the keyword arguments that every :class:`ClusterError` takes."""
        return {
            "cluster": self.cluster,
            "side": self.side,
            "verb": self.verb,
            "resource": self.resource,
            "key": self.key,
        }


def from_response(
    reply: HttpResponse,
    where: FailedRequest,
    origin: ClusterOrigin = UNKNOWN_ORIGIN,
) -> ClusterError:
    """Return the error for a response whose status is not 2xx."""
    return from_status(_status_of(reply), where, origin, retry_after=_retry_after(reply))


def from_status(
    status: Obj,
    where: FailedRequest,
    origin: ClusterOrigin = UNKNOWN_ORIGIN,
    *,
    retry_after: float | None = None,
) -> ClusterError:
    """Return the error for a ``Status`` object: a refused request, or an ERROR event of a watch."""
    status = _with_types(status)
    code = status["code"]
    if code >= 500 and any(text in status["message"] for text in _TOO_LARGE):
        code = 413
    details = status["details"]
    if retry_after is None and details.get("retryAfterSeconds"):
        retry_after = float(min(details["retryAfterSeconds"], LONGEST_RETRY_AFTER))
    fields = {
        **where.fields(),
        "status": code,
        "reason": status["reason"],
        "details": _harmless(details),
    }
    if code == 429 or (code == 503 and retry_after is not None):
        wait = min(DEFAULT_RETRY_AFTER if retry_after is None else retry_after, LONGEST_RETRY_AFTER)
        return TooMany(
            f"{where}: the API server asks to come back in {wait:g} s",
            retry_after=wait,
            **fields,
        )
    kind, message = _kind_and_message(code, status, where, origin)
    return kind(message, **fields)


def _with_types(status: Obj) -> Obj:
    """Return what is read of a Status, with the types of Kubernetes' API and short texts, whatever
    its server says: an error may be kept as long as what it is about isn't in step.
    """
    code = status.get("code")
    given = status.get("details")
    given = given if isinstance(given, dict) else {}
    causes = given.get("causes")
    after = given.get("retryAfterSeconds")
    listed = causes[:_MOST_KEPT] if isinstance(causes, list) else []
    objects = [each for each in listed if isinstance(each, dict)]
    shown = [_texts(each, ("field", "message", "reason")) for each in objects[:_MOST_CAUSES]]
    further = [_texts(each, ("field",)) for each in objects[_MOST_CAUSES:]]
    details = {**_texts(given, _DETAILS), "causes": [*shown, *further]}
    if type(after) in (int, float):
        details["retryAfterSeconds"] = after
    known = {"message": "", "reason": "", **_texts(status, ("message", "reason"))}
    return {**known, "code": code if type(code) is int else 500, "details": details}


def _texts(given: Obj, names: tuple[str, ...]) -> Obj:
    """Return those of the fields that are texts, short and without the values that API servers
    quote in messages.
    """
    found = {name: given[name] for name in names if isinstance(given.get(name), str)}
    return {name: without_values(text)[:_MOST_MESSAGE] for name, text in found.items()}


def from_failure(
    failure: ConnectionFailed,
    where: FailedRequest,
    origin: ClusterOrigin = UNKNOWN_ORIGIN,
) -> ClusterError:
    """Return the error for a request without a response."""
    if isinstance(failure, CredentialsAwaited):
        return NoCredentials(
            f"{where.place}: there are no credentials yet: {failure}",
            **where.fields(),
        )
    if isinstance(failure, CredentialsFailed):
        source = f" in {origin.source}" if origin.source else ""
        complaint = _complaint(origin)
        if str(failure) in complaint:
            complaint = ""
        message = f"{where.place}: there are no usable credentials{source}: {failure}{complaint}"
        return Unauthorized(message, status=401, **where.fields())
    if isinstance(failure, ReplyTooLarge):
        return Invalid(f"{where}: {failure}", **where.fields())
    return Unreachable(f"{where}: {failure}{_reached_by(origin, str(failure))}", **where.fields())


def _reached_by(origin: ClusterOrigin, said: str) -> str:
    address = "" if not origin.address or origin.address in said else f" at {origin.address}"
    source = f" (from {origin.source})" if origin.source else ""
    return f"{address}{source}{_complaint(origin)}"


def _complaint(origin: ClusterOrigin) -> str:
    complaint = origin.complaint()
    return f"; {complaint}" if complaint else ""


def _kind_and_message(
    code: int,
    status: Obj,
    where: FailedRequest,
    origin: ClusterOrigin,
) -> tuple[ErrorFactory, str]:
    said = status["message"] or status["reason"] or f"status {code}"
    if code < 500 and _BY_POLICY.search(said):
        return Denied, f"{where} is not accepted: {said}"
    match code:
        case 401:
            return Unauthorized, f"{where.place} says 401: {_not_accepted(origin)}"
        case 403 if _ANONYMOUS in said:
            return (
                Unauthorized,
                f"{where.place} takes us for system:anonymous: {_not_accepted(origin)}",
            )
        case 403:
            return _forbidden(said, where)
        case 404:
            return Missing, f"{where}: {_what_is_missing(status, where)}"
        case 409 if status.get("reason") == "AlreadyExists":
            return Exists, f"{where}: another object has the name"
        case 409:
            return (
                Conflict,
                f"{where}: the object has changed meanwhile or is not the one that was meant",
            )
        case 410:
            return Expired, f"{where}: the version asked for is too old"
        case 413:
            return (
                Invalid,
                f"{where} is not accepted: {said}. Make it smaller, or divide it into several objects",
            )
        case 400 | 405 | 406 | 415 | 422:
            return Invalid, f"{where} is not accepted: {_causes(status) or said}"
        case _ if code >= 500:
            return (
                Unreachable,
                f"{where}: the API server failed with {code}: {said}{_reached_by(origin, said)}",
            )
        case _:
            return ClusterError, f"{where}: unexpected status {code}: {said}"


def _not_accepted(origin: ClusterOrigin) -> str:
    described = origin.credentials()
    whose = f"the credentials from {described}" if described else "the credentials"
    return f"{whose} are not accepted{_complaint(origin)}. Renew them."


def _what_is_missing(status: Obj, where: FailedRequest) -> str:
    kind = (status.get("details") or {}).get("kind")
    if kind == "namespaces" and where.key and where.key.namespace:
        return f"the namespace {where.key.namespace} does not exist"
    return "not found" if kind else "not found: the API server does not serve this"


def _forbidden(said: str, where: FailedRequest) -> tuple[ErrorFactory, str]:
    """Return why a request is forbidden: a right is missing, a quota is exceeded, or admission
    refuses.
    """
    if refusal := _REFUSAL.search(said):
        user, verb, resource, group, namespace = (part or "" for part in refusal.groups())
        place = f" in namespace {namespace}" if namespace else ""
        rule = f'{{apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["{verb}"]}}'
        right = MissingRight(verb, group, resource, namespace)
        return partial(
            Forbidden,
            right=right,
        ), f"{where} is forbidden. Missing RBAC rule for {user}: {rule}{place}."
    message = f"{where} is forbidden. {said}"
    if quota := _QUOTA.search(said):
        requested = dict(part.split("=", 1) for part in (quota[2] or "").split(",") if "=" in part)
        return partial(QuotaExceeded, quota=quota[1], requested=requested), message
    if _TERMINATING in said:
        return ClusterError, message
    return (Denied if where.verb in _WRITES and _ADMISSION.search(said) else Forbidden), message


def _causes(status: Obj) -> str:
    """Return which fields are invalid, and why, in the API server's own words."""
    causes = status["details"]["causes"]
    shown = [
        f"{cause.get('field', '?')}: {cause.get('message') or cause.get('reason', '')}"
        for cause in causes[:_MOST_CAUSES]
    ]
    more = len(causes) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")


def _harmless(details: Obj) -> Obj:
    """Return the details of a Status with the fields of its causes alone: the messages may quote
    values.
    """
    fields = [{"field": cause["field"]} for cause in details["causes"] if "field" in cause]
    return {name: value for name, value in details.items() if name != "causes"} | ({"causes": fields} if fields else {})


def _status_of(reply: HttpResponse) -> Obj:
    """Return the Status of a response; a proxy's error page becomes a Status with the code alone."""
    try:
        status = codec.decode(reply.body)
    except codec.DecodeError:
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        return {"code": reply.status, "message": f"status {reply.status}"}
    return {**status, "code": reply.status}


def _retry_after(reply: HttpResponse) -> float | None:
    text = reply.headers.get("retry-after")
    if text is None:
        return None
    try:
        return max(float(text), 0.0)
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(text)
        now = parsedate_to_datetime(reply.headers["date"])
    except (ValueError, KeyError):
        return DEFAULT_RETRY_AFTER
    return max((date - now).total_seconds(), 0.0)
