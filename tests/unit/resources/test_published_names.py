"""Under which names Services of a tenant appear on the host."""

import pytest
from pydantic import ValidationError

from syncer.api import Key
from syncer.resources.published_services import PublishedNames, PublishedServiceConfig

ENTRIES = PublishedNames.model_validate(
    {
        "byName": {
            "shop/web": "infra/front",
            "shop/*": "infra/shop-*",
            "team/*": "other/shop-*",
            "blog/a": "infra/shop-x",
        }
    }
)


@pytest.mark.parametrize(
    ("virtual", "host"),
    [
        ("shop/web", "infra/front"),
        ("shop/db", "infra/shop-db"),
        ("team/db", "other/shop-db"),
        ("blog/a", "infra/shop-x"),
        ("shop/front", "infra/shop-front"),
    ],
)
def test_each_listed_service_has_a_place_of_the_operators(virtual: str, host: str) -> None:
    assert ENTRIES.host_key(Key.parse(virtual)) == Key.parse(host)


@pytest.mark.parametrize("virtual", ["blog/b", "infra/front", "shop/x"])
def test_other_services_have_none(virtual: str) -> None:
    """Neither has one whose name another that is listed by its name has."""
    assert ENTRIES.host_key(Key.parse(virtual)) is None


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"shop": "infra/a"}, "expected a namespace and a Service, such as shop/web"),
        ({"/a": "infra/a"}, "expected a namespace and a Service"),
        ({"shop/Web": "infra/a"}, "found 'shop/Web'"),
        ({"shop/web": "infra"}, "shop/web: expected a host namespace and a Service, such as infra/shop-web"),
        ({"shop/web": "infra/1a"}, "found 'infra/1a'"),
        ({"shop/web": "infra/a-*"}, "found 'infra/a-*'"),
        ({"shop/*": "infra"}, "shop/*: expected a host namespace and the beginning of names, such as infra/shop-*"),
        ({"shop/*": "infra/*"}, "found 'infra/*'"),
        ({"shop/*": "infra/shop*"}, "found 'infra/shop*'"),
        ({"shop/a": "infra/x", "shop/b": "infra/x"}, "byName puts both shop/a and shop/b at infra/x"),
        ({"shop/*": "infra/a-*", "team/*": "infra/a-*"}, "byName puts both shop/* and team/* at infra/a-*"),
        (
            {"shop/*": "infra/a-*", "team/*": "infra/a-b-*"},
            "the names of team/* would be among those of shop/*; let a-b- not begin with a-",
        ),
    ],
)
def test_faulty_entry_is_refused_with_what_to_write(entries: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        PublishedNames.model_validate({"byName": entries})
    assert message in str(caught.value)


def test_beginnings_may_be_alike_in_different_namespaces() -> None:
    PublishedNames.model_validate({"byName": {"shop/*": "infra/a-*", "team/*": "other/a-b-*"}})


def test_place_in_a_namespace_that_is_not_listed_is_refused() -> None:
    given = {"namespaces": ["infra"], "mappings": {"byName": {"shop/web": "team/web"}}}
    with pytest.raises(ValidationError, match="the host namespace team isn't listed in namespaces: add it there"):
        PublishedServiceConfig.model_validate(given)


def test_namespace_of_another_form_is_refused() -> None:
    with pytest.raises(ValidationError, match="expected a DNS label"):
        PublishedServiceConfig.model_validate({"namespaces": ["Infra"]})
