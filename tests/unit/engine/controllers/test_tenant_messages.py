"""Messages for tenants: virtual names, and nothing of the host."""

from typing import Any

import pytest

from syncer.api import (
    Denied,
    Forbidden,
    Invalid,
    Key,
    NameTranslator,
    QuotaExceeded,
    Refused,
    Settings,
    Side,
    Unauthorized,
    Unreachable,
)
from syncer.api.texts import LONGEST_MESSAGE
from syncer.engine.controllers.tenant_messages import for_tenant, translated
from syncer.names import PerNamespace, SingleNamespace, Unchanged
from syncer.resources.kinds import CONFIG_MAPS, PODS

SINGLE = SingleNamespace(cluster="vc", namespace="home")
APART = PerNamespace(cluster="vc", namespace="home")
SAME = Unchanged(cluster="vc", namespace="home")
SECRET = "host cluster: create pods home/web is forbidden. Missing RBAC rule for system:serviceaccount:home:vsyncer"


def told(names: NameTranslator, message: str, **known: str) -> str:
    settings = Settings(cluster="vc", host_namespace="home", names=names)
    return translated(settings, message, resources=(PODS,), known=known)


@pytest.mark.parametrize(
    ("names", "message", "says"),
    [
        (SINGLE, 'pods "web-x-shop-x-vc" is bad', 'pods "web" is bad'),
        (SINGLE, "create pods home/web-x-shop-x-vc: no", "create pods shop/web: no"),
        (SINGLE, "it is used by home/db-x-bank-x-vc.", "it is used by bank/db."),
        (SINGLE, "gold-x-vc-x-home is no such class", "gold is no such class"),
        (SINGLE, 'in namespace "home"', 'in namespace "<host>"'),
        (SINGLE, "home/alien has it", "<host>/alien has it"),
        (SINGLE, "spec.home and homes, web-x-shop-x-other", "spec.home and homes, web-x-shop-x-other"),
        (SINGLE, "apps/v1, 10.0.0.1, a/b/c, http://home/x", "apps/v1, 10.0.0.1, a/b/c, http://home/x"),
        (APART, "create pods shop-x-vc-x-home/web: no", "create pods shop/web: no"),
        (APART, "in namespace shop-x-vc-x-home", "in namespace shop"),
        (APART, "in namespace home", "in namespace <host>"),
        (SAME, "create pods shop/web: no", "create pods shop/web: no"),
    ],
)
def test_names_are_as_the_tenant_knows_them(names: NameTranslator, message: str, says: str) -> None:
    assert told(names, message) == says


def test_long_message_is_cut_after_a_word_before_it_is_searched() -> None:
    said = told(SINGLE, 2000 * "web-x-shop-x-vc ")
    assert set(said.split()) == {"web", "web…"}, "no half of a host name"
    assert len(said) <= LONGEST_MESSAGE
    assert told(SINGLE, "x" * 10_000_000) == "x" * LONGEST_MESSAGE + "…"


def test_name_that_only_the_caller_can_tell_is_told_too() -> None:
    host = SINGLE.to_host(CONFIG_MAPS, Key("shop", "x" * 250))
    assert told(SINGLE, f"{host} is bad", **{str(host): "shop/long"}) == "shop/long is bad"


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (Forbidden, "the syncer has no right to create pods on the host cluster; its operator has to grant it"),
        (Unauthorized, "the syncer is not let into the host cluster; its operator has to renew its credentials"),
        (Unreachable, "the host cluster does not do what it is asked at the moment; it is tried again"),
    ],
)
def test_message_about_an_operators_problem_has_no_details(kind: Any, says: str) -> None:
    error = kind(SECRET, side=Side.HOST, verb="create", resource=PODS)
    assert for_tenant(error, str(error)) == says


@pytest.mark.parametrize("kind", [Invalid, Denied, QuotaExceeded, Refused])
def test_error_about_the_object_is_reported_as_it_is(kind: Any) -> None:
    assert for_tenant(kind("why"), "why") == "why"


def test_text_of_an_unexpected_exception_is_not_told_as_it_may_quote_a_host_object() -> None:
    says = "the syncer fails on it with ValueError; its operator finds the reason in its log"
    assert for_tenant(ValueError(SECRET), f"ValueError: {SECRET}") == says
