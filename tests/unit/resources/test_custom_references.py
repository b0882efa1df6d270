"""Names of other objects in a custom object: where they are found, and that nothing else is changed."""

from dataclasses import replace
from typing import Any

import pytest
from custom_kinds import CLUSTER_ISSUERS, ISSUERS
from hypothesis import given
from hypothesis import strategies as st

from syncer.api import Context, Key, Refused, Settings, Side, Source
from syncer.resources.custom.references import Reference, References, Target
from syncer.resources.kinds import SECRETS

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.text(max_size=3) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "name", "kind"]), inner),
    max_leaves=12,
)


def secrets_at(*paths: str) -> References:
    return References({path: [Target(SECRETS)] for path in paths})


def louder(reference: Reference) -> Reference:
    return replace(reference, name=reference.name.upper())


@pytest.mark.parametrize(
    ("path", "obj", "changed"),
    [
        ("spec.to", {"spec": {"to": "a", "more": 1}}, {"spec": {"to": "A", "more": 1}}),
        ("spec.to[]", {"spec": {"to": ["a", "", None, "b"]}}, {"spec": {"to": ["A", "", None, "B"]}}),
        ("spec[].to", {"spec": [{"to": "a"}, {}, "x"]}, {"spec": [{"to": "A"}, {}, "x"]}),
        ("a[][].name", {"a": [[{"name": "x"}], []]}, {"a": [[{"name": "X"}], []]}),
    ],
)
def test_names_are_changed_where_the_path_leads(path: str, obj: dict[str, Any], changed: dict[str, Any]) -> None:
    before = repr(obj)
    assert secrets_at(path).changed(obj, louder) == changed
    assert repr(obj) == before


@given(ANYTHING)
def test_what_is_not_as_the_path_says_is_left_alone(value: Any) -> None:
    paths = secrets_at("spec.a", "spec.a.b", "spec.a[].name", "spec.name")
    obj = {"spec": value}
    assert paths.changed(obj, lambda reference: reference) is obj
    assert all(isinstance(found.name, str) and found.name for found in paths.found(obj))


def test_what_is_not_changed_is_shared() -> None:
    obj = {"spec": {"to": "a", "more": {"x": 1}}}
    changed = secrets_at("spec.to").changed(obj, louder)
    assert changed["spec"]["more"] is obj["spec"]["more"]


class Public:
    """Shows all ClusterIssuers of the host."""

    source = Source(Side.HOST, CLUSTER_ISSUERS)

    def host_key(self, settings: Settings, key: Key) -> Key:
        return key

    def virtual_namespace(self, host: str) -> str:
        return host

    def does_show(self, ctx: Context, key: Key) -> bool:
        return True


PUBLIC = Public()
BOTH = References({"ref.name": [Target(ISSUERS), Target(CLUSTER_ISSUERS, PUBLIC)]})


@pytest.mark.parametrize(
    ("kind", "meant"),
    [("Issuer", ISSUERS), ("ClusterIssuer", CLUSTER_ISSUERS), (None, ISSUERS), ("", ISSUERS), ("Other", None)],
)
def test_the_kind_beside_a_name_decides(kind: str | None, meant: object) -> None:
    ref = {"name": "x"} if kind is None else {"name": "x", "kind": kind}
    assert [found.target.resource for found in BOTH.found({"ref": ref})] == ([] if meant is None else [meant])


def test_a_kind_beside_what_is_no_name_means_nothing() -> None:
    [found] = secrets_at("spec.secretName").found({"spec": {"secretName": "x", "kind": "Other", "namespace": "y"}})
    assert (found.name, found.namespace) == ("x", "")


@pytest.mark.parametrize(
    ("reference", "key"),
    [
        (Reference(Target(SECRETS), "p", "db"), Key("shop", "db")),
        (Reference(Target(SECRETS), "p", "db", "other"), Key("other", "db")),
        (Reference(Target(CLUSTER_ISSUERS), "p", "db", "other"), Key("", "db")),
    ],
)
def test_what_is_named_is_in_the_namespace_of_who_names_it(reference: Reference, key: Key) -> None:
    assert reference.key("shop") == key


def test_without_any_namespace_it_is_not_known_what_is_named() -> None:
    with pytest.raises(Refused, match="p: names the Secret db without a namespace"):
        Reference(Target(SECRETS), "p", "db").key("")
    nowhere = {"metadata": {"name": "x"}, "spec": {"to": "db"}}
    assert list(secrets_at("spec.to").keys(nowhere)) == []


def test_only_renamed_kinds_are_synced_with_what_names_them() -> None:
    obj = {"metadata": {"name": "x", "namespace": "shop"}, "ref": {"name": "public", "kind": "ClusterIssuer"}}
    assert (list(BOTH.keys(obj)), list(BOTH.named(obj))) == ([], [(PUBLIC, Key("", "public"))])
    assert (BOTH.resources(), BOTH.shown()) == ((ISSUERS,), (PUBLIC.source,))
    own = {"metadata": {"name": "x", "namespace": "shop"}, "ref": {"name": "ca", "kind": "Issuer"}}
    assert (list(BOTH.keys(own)), list(BOTH.named(own))) == ([(ISSUERS, Key("shop", "ca"))], [])


def test_what_several_paths_may_name_is_looked_at_once() -> None:
    twice = References({path: [Target(CLUSTER_ISSUERS, Public())] for path in ("a.name", "b.name")})
    assert twice.shown() == (PUBLIC.source,)


def test_paths_can_be_picked_by_what_is_above_them() -> None:
    picked = secrets_at("spec.a", "spec.list[].b", "status.c", "specials.d").below(("spec",))
    assert list(picked.targets) == ["spec.a", "spec.list[].b"]
