"""Names by templates: their form, that no two objects share one, and that they can be read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncer.api import Key, NameTranslator, Resource
from syncer.names import PerNamespace, SingleNamespace, Unchanged
from syncer.names.forms import SHORT, form_of
from syncer.names.template import Template
from syncer.names.templated import Templated, fault_of
from syncer.resources.kinds import SECRETS
from syncer.testing.strategies import LABELS, NAMES

CERTIFICATES = Resource("cert-manager.io/v1", "Certificate", "certificates")
CLASSES = Resource("example.org/v1", "Class", "classes", namespaced=False)

SINGLE = SingleNamespace(cluster="vc", namespace="vc-ns")
APART = PerNamespace(cluster="vc", namespace="vc-ns")

TEMPLATES = ["{namespace}-{name}", "{name}.{namespace}", "{name}{namespace}", "x-{name}-{namespace}-{name}"]
KEYS = st.builds(Key, LABELS, NAMES)


def by(template: str, inner: NameTranslator = SINGLE) -> Templated:
    templates = {str(kind): Template(template) for kind in (CERTIFICATES, CLASSES)}
    return Templated(inner, templates, cluster="vc")


@pytest.mark.parametrize(
    ("template", "key", "name"),
    [
        ("{namespace}-{name}", "shop/db", "shop-db"),
        ("{name}.{namespace}.{cluster}", "shop/db-tls", "db-tls.shop.vc"),
        ("{name}.{namespace}", "shop/db.tls", "db.tls.shop"),
        ("tenant-{cluster}-{name}.{namespace}", "shop/db", "tenant-vc-db.shop"),
    ],
)
def test_name_that_can_be_read_in_one_way_is_readable(template: str, key: str, name: str) -> None:
    assert by(template).to_host(CERTIFICATES, Key.parse(key)) == Key("vc-ns", name)


def test_name_that_could_be_read_in_two_ways_is_hashed() -> None:
    one, other = (by("{namespace}-{name}").to_host(CERTIFICATES, Key.parse(key)) for key in ("a/b-c", "a-b/c"))
    assert one != other
    assert one.name.startswith("a-b-c-")
    assert len(one.name) == len("a-b-c-") + 20


def test_object_that_is_called_like_a_hashed_name_does_not_get_it() -> None:
    hashed = by("{name}.{namespace}").to_host(CERTIFICATES, Key("shop", "x" * 63)).name
    forger = by("{name}").to_host(CERTIFICATES, Key("shop", hashed)).name
    assert forger != hashed


def test_name_that_is_too_long_is_hashed_and_fits() -> None:
    name = by("{namespace}-{name}").to_host(CERTIFICATES, Key("shop", "x" * 80)).name
    assert SHORT.fits(name)


@given(st.sampled_from(TEMPLATES), KEYS, KEYS)
def test_objects_never_share_a_host_key_and_names_are_valid(template: str, one: Key, other: Key) -> None:
    names = by(template)
    host_key = names.to_host(CERTIFICATES, one)
    assert form_of(CERTIFICATES).fits(host_key.name)
    assert (host_key == names.to_host(CERTIFICATES, other)) == (one == other)
    assert names.to_virtual(CERTIFICATES, host_key) in (None, one)


@given(KEYS, KEYS)
def test_template_without_the_namespace_is_injective_where_namespaces_are_separate(one: Key, other: Key) -> None:
    names = by("{cluster}-{name}", APART)
    assert (names.to_host(CERTIFICATES, one) == names.to_host(CERTIFICATES, other)) == (one == other)


def test_readable_names_are_read_back() -> None:
    assert by("{name}.{namespace}").to_virtual(CERTIFICATES, Key("vc-ns", "db.tls.shop")) == Key("shop", "db.tls")
    host_key = by("c-{name}", APART).to_host(CERTIFICATES, Key("shop", "db"))
    assert host_key == Key("shop-x-vc-x-vc-ns", "c-db")
    assert by("c-{name}", APART).to_virtual(CERTIFICATES, host_key) == Key("shop", "db")
    assert by("c-{name}").to_virtual(CLASSES, Key("", "c-gold")) == Key("", "gold")


def test_name_that_the_template_does_not_give_is_not_read_back() -> None:
    assert by("c-{name}.{namespace}").to_virtual(CERTIFICATES, Key("vc-ns", "db.shop")) is None
    assert by("c-{name}", APART).to_virtual(CERTIFICATES, Key("elsewhere", "c-db")) is None


def test_other_resources_are_named_as_before() -> None:
    names, key = by("{name}.{namespace}"), Key("shop", "db")
    assert names.to_host(SECRETS, key) == SINGLE.to_host(SECRETS, key)
    assert names.to_virtual(SECRETS, SINGLE.to_host(SECRETS, key)) == key
    assert names.host_namespaces() == ("vc-ns",)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{namespace}", "must have {name}"),
        ("{nmae}", "Did you mean {name}?"),
        ("{namespace}_{name}", "and not '_'"),
        ("{name", "and not '{name'"),
        ("", "must have {name}"),
    ],
)
def test_invalid_template_is_refused(template: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("{", r"\{").replace("?", r"\?")):
        Template(template)


@pytest.mark.parametrize(
    ("template", "inner", "namespaced", "message"),
    [
        ("{name}", SINGLE, True, "must have {namespace}"),
        ("{name}", APART, True, ""),
        ("{name}", Unchanged(cluster="vc", namespace=""), True, ""),
        ("{name}", SINGLE, False, ""),
        ("{namespace}-{name}", SINGLE, True, ""),
        ("{namespace}-{name}", SINGLE, False, "objects of this kind have none"),
    ],
)
def test_template_that_could_join_namespaces_is_refused(
    template: str, inner: NameTranslator, namespaced: bool, message: str
) -> None:
    found = fault_of(Template(template), inner, namespaced=namespaced)
    assert (message in found) if message else (found == "")
