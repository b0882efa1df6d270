"""Turn a failed request into an error: the class of the error decides the engine's next step."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from syncer.api.errors import (
    AlreadyExists,
    ClusterError,
    Conflict,
    Denied,
    Expired,
    Forbidden,
    Invalid,
    MissingRight,
    NamespaceTerminating,
    NoCredentials,
    NotFound,
    QuotaExceeded,
    ServerFailed,
    TooMany,
    Unauthorized,
    Unreachable,
    WebhookFailed,
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
    r'User "([^"]*)" cannot (\S+) resource "([^"]*)"'
    r'(?: in API group "([^"]*)")?'
    r'(?: in the namespace "([^"]*)")?',
)
#: The beginning of a refusal about a name.
_NAMED = re.compile(r'\S+ "([^"]+)" is forbidden: ')
#: A refusal names this user if the API server doesn't know the credentials.
_ANONYMOUS = 'User "system:anonymous" cannot '
#: The message of the quota plugin.
_QUOTA = re.compile(r"exceeded quota: ([^,\s]+)(?:, requested: (.*?), used: )?")
#: The message of a webhook's or policy's refusal, with any status.
_BY_POLICY = re.compile(
    r"admission webhook \S+ denied the request|ValidatingAdmissionPolicy \S+ .*denied request",
)
#: The message about a webhook without a usable answer.
_WEBHOOK = re.compile(r'failed calling webhook "([^"]{1,253})"')
#: The message of admission; texts like ``could not find the requested resource`` don't match.
_ADMISSION = re.compile(r"is forbidden: ")
#: Part of the refusal to create an object in a namespace that is being deleted.
_TERMINATING = "being terminated"
#: etcd's refusal of an object over its ``--max-request-bytes`` (by default 1.5 MiB), and that of
#: the API server's client of etcd over 2 MiB. The API server passes both on with status 500.
_TOO_LARGE = ("etcdserver: request is too large", "trying to send message larger than max")
#: Causes of a refusal that are shown whole.
_MOST_CAUSES = 5
#: Most characters of a text of a cause.
_MOST_MESSAGE = 500
#: The texts of a Status' details that are kept.
_DETAILS = ("name", "group", "kind", "uid")
#: Most causes of a Status that are kept.
_MOST_KEPT = 100

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
    """A request, as it is named in messages."""

    cluster: str
    side: Side | None
    verb: str
    resource: Resource | None = None
    key: Key | None = None
    subresource: str = ""

    def __str__(self) -> str:
        target = str(self.resource) if self.resource else "the API"
        text = f"{self.title}: {self.verb} {target}"
        if self.subresource:
            text += f"/{self.subresource}"
        if self.key and self.key.name:
            text += f" {self.key}"
        return text

    @property
    def title(self) -> str:
        """The cluster: its side if it has one, and its name unless that is empty or the side."""
        if self.side is None:
            return f"cluster {self.cluster}"
        if self.cluster in ("", self.side.value):
            return f"{self.side} cluster"
        return f"{self.side} cluster {self.cluster}"

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
    """Return the error for a response with a status other than 2xx."""
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
        wait = DEFAULT_RETRY_AFTER
        if retry_after is not None:
            wait = min(retry_after, LONGEST_RETRY_AFTER)
        return TooMany(
            f"{where}: the API server asks to come back in {wait:g} s",
            retry_after=wait,
            **fields,
        )
    kind, message = _kind_and_message(code, status, where, origin)
    return kind(message, **fields)


def _with_types(status: Obj) -> Obj:
    """Return the fields of a Status that are used here, with the types of Kubernetes' API.

    A server may answer anything, and an error may be kept for long, so texts are cut off, and
    there are at most :data:`_MOST_KEPT` causes.
    """
    given = status.get("details")
    if not isinstance(given, dict):
        given = {}
    causes = given.get("causes")
    if not isinstance(causes, list):
        causes = []
    objects = [cause for cause in causes[:_MOST_KEPT] if isinstance(cause, dict)]
    shown = [_texts(cause, ("field", "message", "reason")) for cause in objects[:_MOST_CAUSES]]
    further = [_texts(cause, ("field",)) for cause in objects[_MOST_CAUSES:]]

    details = {**_texts(given, _DETAILS), "causes": [*shown, *further]}
    after = given.get("retryAfterSeconds")
    if type(after) in (int, float):
        details["retryAfterSeconds"] = after

    code = status.get("code")
    if type(code) is not int:
        code = 500
    return {
        "message": "",
        "reason": "",
        **_texts(status, ("message", "reason")),
        "code": code,
        "details": details,
    }


def _texts(given: Obj, names: tuple[str, ...]) -> Obj:
    """Return the fields with these names that are texts.

    They are cut off, and don't have the values that API servers quote in messages.
    """
    found = {}
    for name in names:
        text = given.get(name)
        if isinstance(text, str):
            found[name] = without_values(text)[:_MOST_MESSAGE]
    return found


def from_failure(
    failure: ConnectionFailed,
    where: FailedRequest,
    origin: ClusterOrigin = UNKNOWN_ORIGIN,
) -> ClusterError:
    """Return the error for a request without a response."""
    if isinstance(failure, CredentialsAwaited):
        message = f"{where.title}: there are no credentials yet: {failure}"
        return NoCredentials(message, **where.fields())
    if isinstance(failure, CredentialsFailed):
        source = f" in {origin.source}" if origin.source else ""
        complaint = _complaint(origin)
        if str(failure) in complaint:
            complaint = ""
        message = f"{where.title}: there are no usable credentials{source}: {failure}{complaint}"
        return Unauthorized(message, status=401, **where.fields())
    if isinstance(failure, ReplyTooLarge):
        return Invalid(f"{where}: {failure}", **where.fields())
    return Unreachable(f"{where}: {failure}{_reached_by(origin, str(failure))}", **where.fields())


def _reached_by(origin: ClusterOrigin, message: str) -> str:
    """Return the end of a message: the address unless the message has it, the file, the problem."""
    text = ""
    if origin.address and origin.address not in message:
        text += f" at {origin.address}"
    if origin.source:
        text += f" (from {origin.source})"
    return text + _complaint(origin)


def _complaint(origin: ClusterOrigin) -> str:
    """Return the end of a message: the known problem of the credentials, if there is one."""
    complaint = origin.complaint()
    if not complaint:
        return ""
    return f"; {complaint}"


def _kind_and_message(
    code: int,
    status: Obj,
    where: FailedRequest,
    origin: ClusterOrigin,
) -> tuple[ErrorFactory, str]:
    """Return the error for a refused request, and its message."""
    text = status["message"] or status["reason"] or f"status {code}"
    if code < 500 and _BY_POLICY.search(text):
        return Denied, f"{where} is not accepted: {text}"
    match code:
        case 401:
            return Unauthorized, f"{where.title} answers 401: {_not_accepted(origin)}"
        case 403 if _ANONYMOUS in text:
            cause = f"treats us as system:anonymous: {_not_accepted(origin)}"
            return Unauthorized, f"{where.title} {cause}"
        case 403:
            return _forbidden(text, where)
        case 404:
            return NotFound, f"{where}: {_what_is_missing(status, where)}"
        case 409 if status.get("reason") == "AlreadyExists":
            return AlreadyExists, f"{where}: another object has this name"
        case 409:
            cause = "the object has changed in the meantime, or it is another object of this name"
            return Conflict, f"{where}: {cause}"
        case 410:
            return Expired, f"{where}: the requested version is too old"
        case 413:
            advice = "Make it smaller, or divide it into several objects"
            return Invalid, f"{where} is not accepted: {text}. {advice}"
        case 400 | 405 | 406 | 415 | 422:
            return Invalid, f"{where} is not accepted: {_causes(status) or text}"
        case _ if code >= 500:
            reached = _reached_by(origin, text)
            message = f"{where}: the API server failed with {code}: {text}{reached}"
            webhook = _WEBHOOK.search(text)
            if webhook is not None:
                return partial(WebhookFailed, webhook=webhook[1]), message
            return ServerFailed, message
        case _:
            return ClusterError, f"{where}: unexpected status {code}: {text}"


def _not_accepted(origin: ClusterOrigin) -> str:
    described = origin.credentials()
    source = f" from {described}" if described else ""
    return f"the credentials{source} are not accepted{_complaint(origin)}. Renew them."


def _what_is_missing(status: Obj, where: FailedRequest) -> str:
    kind = (status.get("details") or {}).get("kind")
    if not kind:
        return "not found: the API server does not serve this"
    if kind == "namespaces" and where.key and where.key.namespace:
        return f"the namespace {where.key.namespace} does not exist"
    return "not found"


def _forbidden(text: str, where: FailedRequest) -> tuple[ErrorFactory, str]:
    """Return the error for a forbidden request, and its message.

    Either a right is missing, a quota is exceeded, or admission refuses the request.
    """
    refusal = _REFUSAL.search(text)
    if refusal is not None:
        user, verb, resource, group, namespace = (part or "" for part in refusal.groups())
        scope = f" in namespace {namespace}" if namespace else ""
        rule = f'apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["{verb}"]'
        named = _NAMED.match(text)
        if named is not None and verb in ("list", "watch"):
            # It selects this name alone, and so takes the right to that name.
            rule = f'{rule}, resourceNames: ["{named[1]}"]'
        right = MissingRight(verb, group, resource, namespace)
        message = f"{where} is forbidden. Missing RBAC rule for {user}: {{{rule}}}{scope}."
        return partial(Forbidden, right=right), message

    message = f"{where} is forbidden. {text}"
    quota = _QUOTA.search(text)
    if quota is not None:
        pairs = (quota[2] or "").split(",")
        requested = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        return partial(QuotaExceeded, quota=quota[1], requested=requested), message
    if _TERMINATING in text:
        return NamespaceTerminating, message
    if where.verb in _WRITES and _ADMISSION.search(text):
        return Denied, message
    return Forbidden, message


def _causes(status: Obj) -> str:
    """Return the invalid fields with the reasons, as the API server words them."""
    causes = status["details"]["causes"]
    shown = [
        f"{cause.get('field', '?')}: {cause.get('message') or cause.get('reason', '')}"
        for cause in causes[:_MOST_CAUSES]
    ]
    more = len(causes) - len(shown)
    if more > 0:
        shown.append(f"and {more} more")
    return "; ".join(shown)


def _harmless(details: Obj) -> Obj:
    """Return the details of a Status, with the paths of the invalid fields only.

    The messages of the causes may quote values.
    """
    harmless = {name: value for name, value in details.items() if name != "causes"}
    fields = [{"field": cause["field"]} for cause in details["causes"] if "field" in cause]
    if fields:
        harmless["causes"] = fields
    return harmless


def _status_of(reply: HttpResponse) -> Obj:
    """Return the Status of a response; for another document, a Status with only the code."""
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
    date = date_of(text)
    now = date_of(reply.headers.get("date", ""))
    if date is None or now is None:
        return DEFAULT_RETRY_AFTER
    return max((date - now).total_seconds(), 0.0)


def date_of(text: str) -> datetime | None:
    """Parse a date of HTTP; None if it is none, or has no time zone."""
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo is not None else None
