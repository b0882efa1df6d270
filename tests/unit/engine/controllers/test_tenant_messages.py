"""Messages of errors for tenants: nothing of the host but names, which are translated later."""

from functools import partial
from typing import Any

import pytest

from syncer.api import (
    Denied,
    Forbidden,
    Invalid,
    NamespaceTerminating,
    QuotaExceeded,
    Refused,
    Side,
    Unauthorized,
    Unreachable,
    WebhookFailed,
)
from syncer.engine.controllers.tenant_messages import for_tenant
from syncer.resources.kinds import PODS

SECRET = "host cluster: create pods home/web is forbidden. Missing RBAC rule for system:serviceaccount:home:vsyncer"


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (Forbidden, "the syncer has no right to create pods on the host cluster; its operator has to grant it"),
        (Unauthorized, "the host cluster rejects the syncer's credentials; its operator has to renew them"),
        (Unreachable, "the host cluster accepts no requests at the moment; retrying"),
    ],
)
def test_message_about_an_operators_problem_has_no_details(kind: Any, says: str) -> None:
    error = kind(SECRET, side=Side.HOST, verb="create", resource=PODS)
    assert for_tenant(error, str(error)) == says


@pytest.mark.parametrize("kind", [Invalid, Denied, QuotaExceeded, Refused])
def test_error_about_the_object_is_reported_as_it_is(kind: Any) -> None:
    assert for_tenant(kind("why"), "why") == "why"


def test_text_of_an_unexpected_exception_is_left_out_as_it_may_quote_a_host_object() -> None:
    says = "the syncer failed on this object with ValueError; the syncer's log gives its operator the reason"
    assert for_tenant(ValueError(SECRET), f"ValueError: {SECRET}") == says


def test_refusal_has_a_sentence_for_the_tenant_besides_that_for_the_operator() -> None:
    error = Refused("rename it", path="metadata.name", for_operator="home/alien has the name")
    assert str(error) == "metadata.name: home/alien has the name"
    assert for_tenant(error, str(error)) == "metadata.name: rename it"


def test_webhook_of_the_tenant_that_does_not_answer_is_named() -> None:
    text = 'the API server failed with 500: Internal error occurred: failed calling webhook "a.example.org": EOF'
    says = (
        "the webhook a.example.org of this cluster does not answer, and its failurePolicy requires an answer: "
        "repair the webhook, or remove its configuration; retrying"
    )
    silent = partial(WebhookFailed, text, webhook="a.example.org")
    assert for_tenant(silent(side=Side.VIRTUAL), text) == says
    assert "webhook" not in for_tenant(silent(side=Side.HOST), text), "that is the operator's"


def test_host_namespace_that_is_being_deleted_is_not_named() -> None:
    text = "create configmaps vc/x is forbidden. unable to create new content in namespace vc: it is being terminated"
    error = NamespaceTerminating(text, side=Side.HOST)
    assert for_tenant(error, text) == "the namespace of its copy on the host is being deleted; retrying"


def test_annotations_that_are_too_long_with_our_marks_are_explained() -> None:
    text = "create configmaps home/x is not accepted: metadata.annotations: Too long: may not be more than 262144 bytes"
    assert for_tenant(Invalid(text, side=Side.HOST), text) == (
        f"{text}. The annotations of a copy include our marks, which name each of its labels and annotations: "
        "make those of this object smaller"
    )
    assert for_tenant(Invalid(text, side=Side.VIRTUAL), text) == text
