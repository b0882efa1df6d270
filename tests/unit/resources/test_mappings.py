"""Which objects of the host appear where in a virtual cluster."""

import pytest
from pydantic import ValidationError

from syncer.api import Key
from syncer.resources.mappings import Mappings

ENTRIES = Mappings.model_validate(
    {"byName": {"infra/a": "shop/x", "shared/*": "common", "shared/b": "shop/b", "other/*": "rest/*"}}
)


@pytest.mark.parametrize(
    ("host", "virtual"),
    [
        ("infra/a", "shop/x"),
        ("shared/c", "common/c"),
        ("shared/b", "shop/b"),
        ("other/c", "rest/c"),
    ],
)
def test_each_listed_object_has_one_place_that_leads_back(host: str, virtual: str) -> None:
    assert ENTRIES.virtual_key(Key.parse(host)) == Key.parse(virtual)
    assert ENTRIES.host_key(Key.parse(virtual)) == Key.parse(host)


@pytest.mark.parametrize("host", ["infra/b", "shop/x", "common/c"])
def test_object_that_is_not_listed_has_no_place(host: str) -> None:
    assert ENTRIES.virtual_key(Key.parse(host)) is None


@pytest.mark.parametrize("virtual", ["shop/a", "infra/a", "common/b"])
def test_place_without_an_entry_leads_nowhere(virtual: str) -> None:
    assert ENTRIES.host_key(Key.parse(virtual)) is None


def test_object_listed_by_name_goes_before_another_of_that_name() -> None:
    both = Mappings.model_validate({"byName": {"infra/a": "common/c", "shared/*": "common"}})
    assert both.host_key(Key("common", "c")) == Key("infra", "a")
    assert both.virtual_key(Key("shared", "c")) is None


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"infra": "shop/a"}, "expected a namespace and a name, such as infra/settings"),
        ({"/a": "shop/a"}, "expected a namespace and a name"),
        ({"Infra/a": "shop/a"}, "found 'Infra/a'"),
        ({"infra/a": "shop"}, "byName: infra/a has a place of another form; give it as infra/settings: shop/settings"),
        ({"infra/*": "shop/a"}, "byName: infra/* has a place of another form; give it as infra/*: shop"),
        ({"infra/a": "shop/a", "other/b": "shop/a"}, "byName puts both infra/a and other/b at shop/a"),
        ({"infra/*": "shop", "other/*": "shop/*"}, "byName puts both infra/* and other/* at shop/*"),
    ],
)
def test_faulty_entry_is_refused_with_the_right_form(entries: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Mappings.model_validate({"byName": entries})
    assert message in str(caught.value)
