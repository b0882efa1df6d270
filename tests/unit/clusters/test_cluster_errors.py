"""Refusals and failures as errors: the class decides about retries, the message says where, what
and how to mend it.
"""

import json
from typing import Any

import pytest

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
    NotFound,
    QuotaExceeded,
    ServerFailed,
    TooMany,
    Unauthorized,
    Unreachable,
    WebhookFailed,
)
from syncer.api.objects import Key, Obj, Resource, Side
from syncer.clusters.errors import ClusterOrigin, FailedRequest, from_failure, from_response, from_status
from syncer.clusters.transport import ConnectionFailed, CredentialsFailed, HttpResponse

SECRETS = Resource("v1", "Secret", "secrets")
DEPLOYMENTS = Resource("apps/v1", "Deployment", "deployments")
WHERE = FailedRequest("vc-1", Side.VIRTUAL, "update", SECRETS, Key("shop", "db"))
FROM = "kube.yaml, context c, user u"
NOT_ACCEPTED = f"the credentials from {FROM} (token) are not accepted. Renew them."
ORIGIN = ClusterOrigin("10.0.0.1:6443", FROM, lambda: f"{FROM} (token)")
REQUEST = "virtual cluster vc-1: update secrets shop/db"


def reply(
    code: int, reason: str = "", message: str = "", headers: dict[str, str] | None = None, **more: Any
) -> HttpResponse:
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message, **more}
    return HttpResponse(code, headers or {}, json.dumps(status).encode())


TOO_LARGE = f"{REQUEST} is not accepted: {{}}. Make it smaller, or divide it into several objects"


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (reply(404, "NotFound", details={"kind": "secrets"}), NotFound, f"{REQUEST}: not found"),
        (
            reply(404, "NotFound", details={"kind": "namespaces", "name": "shop"}),
            NotFound,
            f"{REQUEST}: the namespace shop does not exist",
        ),
        (
            HttpResponse(404, {}, b"404 page not found\n"),
            NotFound,
            f"{REQUEST}: not found: the API server does not serve this",
        ),
        (reply(409, "AlreadyExists"), AlreadyExists, f"{REQUEST}: another object has this name"),
        (
            reply(409, "Conflict"),
            Conflict,
            f"{REQUEST}: the object has changed in the meantime, or it is another object of this name",
        ),
        (reply(410, "Expired"), Expired, f"{REQUEST}: the requested version is too old"),
        (reply(400, "BadRequest", "what is this"), Invalid, f"{REQUEST} is not accepted: what is this"),
        (reply(413, "RequestEntityTooLarge", "too large"), Invalid, TOO_LARGE.format("too large")),
        (
            reply(401, "Unauthorized"),
            Unauthorized,
            f"virtual cluster vc-1 answers 401: {NOT_ACCEPTED}",
        ),
        (
            reply(403, "Forbidden", 'User "system:anonymous" cannot update resource "secrets"'),
            Unauthorized,
            f"virtual cluster vc-1 treats us as system:anonymous: {NOT_ACCEPTED}",
        ),
        (
            reply(500, "InternalError", "webhook down"),
            ServerFailed,
            f"{REQUEST}: the API server failed with 500: webhook down at 10.0.0.1:6443 (from {FROM})",
        ),
        (
            HttpResponse(502, {}, b"<html>Bad Gateway</html>"),
            ServerFailed,
            f"{REQUEST}: the API server failed with 502: status 502 at 10.0.0.1:6443 (from {FROM})",
        ),
        (reply(503, "ServiceUnavailable", "etcd"), ServerFailed, None),
        (reply(504, "Timeout", "slow"), ServerFailed, None),
        (reply(418, "Teapot", "short"), ClusterError, f"{REQUEST}: unexpected status 418: short"),
    ],
)
def test_status_determines_the_error_class(answer: HttpResponse, kind: type[ClusterError], message: str | None) -> None:
    error = from_response(answer, WHERE, ORIGIN)
    assert type(error) is kind
    assert message in (None, str(error))
    assert (error.status, error.cluster, error.side, error.verb) == (answer.status, "vc-1", Side.VIRTUAL, "update")
    assert (error.resource, error.key) == (SECRETS, Key("shop", "db"))


@pytest.mark.parametrize(
    "message",
    ["etcdserver: request is too large", "rpc error: trying to send message larger than max (2 vs. 1)"],
)
def test_refusal_of_etcd_by_size_is_one_of_the_api_server(message: str) -> None:
    error = from_response(reply(500, "", message), WHERE, ORIGIN)
    assert (type(error), error.status, str(error)) == (Invalid, 413, TOO_LARGE.format(message))


def test_missing_right_names_the_rule() -> None:
    text = (
        'deployments.apps "web" is forbidden: User "u" cannot patch resource "deployments/status" '
        'in API group "apps" in the namespace "ns"'
    )
    where = FailedRequest("host", Side.HOST, "patch", DEPLOYMENTS, Key("ns", "web"), "status")
    assert str(from_response(reply(403, "Forbidden", text), where)) == (
        "host cluster: patch deployments.apps/status ns/web is forbidden. Missing RBAC rule for u: "
        '{apiGroups: ["apps"], resources: ["deployments/status"], verbs: ["patch"]} in namespace ns.'
    )
    text = 'secrets is forbidden: User "u" cannot list resource "secrets" in API group "" at the cluster scope'
    everywhere = FailedRequest("host", Side.HOST, "list", SECRETS, Key("", ""))
    assert str(from_response(reply(403, "Forbidden", text), everywhere)) == (
        "host cluster: list secrets is forbidden. Missing RBAC rule for u: "
        '{apiGroups: [""], resources: ["secrets"], verbs: ["list"]}.'
    )
    text = (
        'secrets "db" is forbidden: User "u" cannot watch resource "secrets" in API group "" in the namespace "infra"'
    )
    assert str(from_response(reply(403, "Forbidden", text), everywhere)).endswith(
        '{apiGroups: [""], resources: ["secrets"], verbs: ["watch"], resourceNames: ["db"]} in namespace infra.'
    )


def test_missing_right_may_be_another_than_the_request() -> None:
    text = (
        'users "jane" is forbidden: User "u" cannot impersonate resource "users" in API group "" at the cluster scope'
    )
    assert str(from_response(reply(403, "Forbidden", text), WHERE)).endswith(
        '{apiGroups: [""], resources: ["users"], verbs: ["impersonate"]}.'
    )


def test_error_of_a_missing_right_has_the_right() -> None:
    text = 'pods "a" is forbidden: User "u" cannot patch resource "pods/status" in API group "" in the namespace "ns"'
    error = from_response(reply(403, "Forbidden", text), WHERE)
    assert isinstance(error, Forbidden)
    assert error.right == MissingRight("patch", "", "pods/status", "ns")


def test_exceeded_quota_error_has_the_requested_amounts() -> None:
    text = (
        'secrets "db" is forbidden: exceeded quota: small, requested: count/secrets=1,requests.cpu=500m, '
        "used: count/secrets=3,requests.cpu=1, limited: count/secrets=3,requests.cpu=1"
    )
    error = from_response(reply(403, "Forbidden", text), WHERE)
    assert isinstance(error, QuotaExceeded)
    assert (error.quota, error.requested) == ("small", {"count/secrets": "1", "requests.cpu": "500m"})
    assert str(error) == f"{REQUEST} is forbidden. {text}"
    short = from_response(reply(403, "Forbidden", "exceeded quota: q"), WHERE)
    assert isinstance(short, QuotaExceeded)
    assert (short.quota, short.requested) == ("q", {})


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (403, 'secrets "db" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false'),
        (403, 'secrets "db" is forbidden: failed quota: q: must specify limits.cpu'),
        (403, 'admission webhook "policy.example.org" denied the request: no'),
        (400, 'admission webhook "policy.example.org" denied the request: no'),
        (409, 'admission webhook "policy.example.org" denied the request: no'),
        (422, "secrets \"db\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"),
    ],
)
def test_refusal_by_admission_is_no_missing_right(code: int, text: str) -> None:
    error = from_response(reply(code, "Forbidden", text), WHERE)
    assert type(error) is Denied
    assert text in str(error)


def test_namespace_that_is_being_deleted_is_a_passing_trouble() -> None:
    text = 'secrets "db" is forbidden: unable to create new content in namespace ns because it is being terminated'
    assert type(from_response(reply(403, "Forbidden", text), WHERE)) is NamespaceTerminating


def test_webhook_that_does_not_answer_is_a_passing_trouble() -> None:
    text = 'Internal error occurred: failed calling webhook "policy.example.org": connection refused'
    error = from_response(reply(500, "InternalError", text), WHERE)
    assert isinstance(error, WebhookFailed)
    assert isinstance(error, Unreachable)
    assert error.webhook == "policy.example.org"


def test_server_that_failed_is_one_that_can_not_be_reached() -> None:
    assert issubclass(ServerFailed, Unreachable)


def test_forbidden_without_a_known_reason_is_an_unnamed_missing_right() -> None:
    error = from_response(reply(403, "Forbidden", "go away"), WHERE)
    assert isinstance(error, Forbidden)
    assert error.right is None


def test_invalid_fields_are_named_and_their_values_are_not() -> None:
    causes = [
        {"field": "data.pw", "reason": "FieldValueInvalid", "message": 'Invalid value: "hunter2: x": must be base64'},
        {"field": "type", "reason": "FieldValueRequired", "message": "Required value"},
        *({"field": f"f{n}", "message": "Forbidden: no"} for n in range(9)),
    ]
    text = 'Secret "db" is invalid: data.pw: Invalid value: "hunter2: x": must be base64'
    error = from_response(reply(422, "Invalid", text, details={"causes": causes, "name": "db"}), WHERE)
    assert isinstance(error, Invalid)
    assert str(error) == (
        f"{REQUEST} is not accepted: data.pw: Invalid value: must be base64; type: Required value; "
        "f0: Forbidden: no; f1: Forbidden: no; f2: Forbidden: no; and 6 more"
    )
    assert "hunter2" not in f"{error} {error.details}"
    assert error.details == {"name": "db", "causes": [{"field": each["field"]} for each in causes]}


@pytest.mark.parametrize(
    ("field", "message", "kept"),
    [
        ("<nil>", "Invalid value: the name is too long", "Invalid value: the name is too long"),
        (
            "spec.mode",
            'Unsupported value: "medium": supported values: "fast", "slow"',
            'Unsupported value: supported values: "fast", "slow"',
        ),
        (
            "spec.replicas",
            'Invalid value: "string": spec.replicas in body must be of type integer: "string"',
            "Invalid value: spec.replicas in body must be of type integer",
        ),
    ],
)
def test_reason_of_a_refusal_is_whole(field: str, message: str, kept: str) -> None:
    causes = [{"field": field, "message": message}]
    error = from_response(reply(422, "Invalid", "no", details={"causes": causes}), WHERE)
    assert str(error) == f"{REQUEST} is not accepted: {field}: {kept}"


@pytest.mark.parametrize("code", [400, 403, 422, 500, 600])
def test_value_in_a_message_without_causes_is_not_shown_either(code: int) -> None:
    text = 'Secret "db" is forbidden: data.pw: Invalid value: "hunter2: x": must be base64'
    assert str(from_response(reply(code, "", text), WHERE)).count("data.pw: Invalid value: must be base64") == 1


def test_value_that_is_longer_than_a_message_is_left_out_too() -> None:
    causes = [{"field": "data.pw", "message": f'Invalid value: "{"hunter2: " * 1000}": must be base64'}]
    error = from_response(reply(422, "Invalid", "no", details={"causes": causes}), WHERE)
    assert str(error) == f"{REQUEST} is not accepted: data.pw: Invalid value: must be base64"


@pytest.mark.parametrize("code", [400, 403, 404, 410, 422, 429, 500, 600])
def test_error_is_small_for_any_size_of_the_servers_message(code: int) -> None:
    """An error is kept as long as what it is about isn't in step."""
    large = "x" * 100_000
    cause = dict.fromkeys(("field", "message", "reason", "more"), large)
    details = {**dict.fromkeys(("name", "kind", "group", "uid", "more"), large), "causes": [cause] * 1000}
    error = from_status({"code": code, "reason": large, "message": large, "details": details}, WHERE)
    assert len(f"{error} {error.reason} {error.details}") < 70_000
    assert len(str(error)) < 10_000


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (reply(429, headers={"retry-after": "7"}), 7),
        (reply(429), 1),
        (reply(429, details={"retryAfterSeconds": 3}), 3),
        (reply(503, headers={"retry-after": "2"}), 2),
        (reply(429, headers={"retry-after": "86400"}), 60),
        (reply(429, headers={"retry-after": "-5"}), 0),
        (reply(429, headers={"retry-after": "soon"}), 1),
        (
            reply(
                429,
                headers={
                    "retry-after": "Wed, 21 Oct 2026 07:28:09 GMT",
                    "date": "Wed, 21 Oct 2026 07:28:00 GMT",
                },
            ),
            9,
        ),
        (HttpResponse(429, {"retry-after": "5"}, b"Too many requests, please try again later.\n"), 5),
    ],
)
def test_wait_that_a_server_requests_is_in_seconds(answer: HttpResponse, seconds: float) -> None:
    error = from_response(answer, WHERE)
    assert isinstance(error, TooMany)
    assert error.retry_after == seconds
    assert str(error) == f"{REQUEST}: the API server asks to come back in {seconds:g} s"


def test_error_event_of_a_watch_is_read_like_a_reply() -> None:
    where = FailedRequest("host", Side.HOST, "watch", SECRETS, Key("", ""))
    error = from_status({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}, where)
    assert isinstance(error, Expired)
    assert str(error) == "host cluster: watch secrets: the requested version is too old"


def test_error_without_a_response_names_address_side_and_file() -> None:
    error = from_failure(ConnectionFailed("no reply in time"), WHERE, ORIGIN)
    assert isinstance(error, Unreachable)
    assert str(error) == f"{REQUEST}: no reply in time at 10.0.0.1:6443 (from {FROM})"
    named = from_failure(ConnectionFailed("no connection to 10.0.0.1:6443: refused"), WHERE, ORIGIN)
    assert str(named) == f"{REQUEST}: no connection to 10.0.0.1:6443: refused (from {FROM})"


def test_known_fault_of_the_credentials_is_in_the_message() -> None:
    origin = ClusterOrigin(
        "h:1", "f", lambda: "f (client certificate from c)", lambda: "the client certificate (c) expired"
    )
    refused = from_response(reply(401, "Unauthorized"), WHERE, origin)
    assert str(refused) == (
        "virtual cluster vc-1 answers 401: the credentials from f (client certificate from c) are not accepted; "
        "the client certificate (c) expired. Renew them."
    )
    lost = from_failure(ConnectionFailed("connection lost"), WHERE, origin)
    assert str(lost) == f"{REQUEST}: connection lost at h:1 (from f); the client certificate (c) expired"
    none = from_failure(CredentialsFailed("exec plugin x failed"), WHERE, ORIGIN)
    assert isinstance(none, Unauthorized)
    assert str(none) == (f"virtual cluster vc-1: there are no usable credentials in {FROM}: exec plugin x failed")


def test_cluster_named_like_its_side_is_named_once() -> None:
    assert FailedRequest("host", Side.HOST, "get", SECRETS, Key("a", "b")).title == "host cluster"
    assert FailedRequest("", Side.HOST, "get", SECRETS, Key("a", "b")).title == "host cluster"


@pytest.mark.parametrize(
    "lie",
    [
        {"code": "404"},
        {"code": [1]},
        {"code": True},
        {"reason": {}},
        {"message": 1},
        {"details": "x"},
        {"details": {"causes": "x", "retryAfterSeconds": "soon"}},
        {"details": {"causes": [1, None, {"field": 1}]}},
        {"details": {"retryAfterSeconds": 10**400}},
    ],
    ids=lambda lie: str(lie)[:60],
)
@pytest.mark.parametrize("code", [400, 403, 404, 409, 422, 429, 500])
def test_status_of_a_lying_server_is_an_error_of_its_cluster(code: int, lie: Obj) -> None:
    assert isinstance(from_status({"kind": "Status", "code": code, **lie}, WHERE), ClusterError)
