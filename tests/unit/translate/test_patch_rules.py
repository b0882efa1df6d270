"""The patches ``rename`` and ``labels``: down and back up again."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patch_fakes import CLASSES, MARKS, SECRETS, SETTINGS, context, down, host_copy, made, patcher, up, widget

from syncer.api import Key, Obj, Refused, Resource, apply

REF = {"path": "spec.ref", "rename": "Secret"}
STATUS_REF = {"path": "status.ref", "rename": "Secret"}
HASHED = SETTINGS.names.to_host(SECRETS, Key("shop", "a-x-b")).name


def secret_copy(name: str, namespace: str) -> Obj:
    """Our copy of a virtual Secret, at the place where it belongs."""
    key = Key(namespace, name)
    host_key = SETTINGS.names.to_host(SECRETS, key)
    virtual = {"metadata": {"name": name, "namespace": namespace, "uid": "2"}}
    marks = SETTINGS.marks
    metadata = {
        "name": host_key.name,
        "namespace": host_key.namespace,
        "labels": marks.labels(SETTINGS.identity, key),
        "annotations": marks.annotations(SECRETS, virtual, host_key),
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ("db", "db-x-shop-x-vc"),
        ({"name": "db", "key": "k"}, {"name": "db-x-shop-x-vc", "key": "k"}),
        ({"name": "db", "namespace": ""}, {"name": "db-x-shop-x-vc", "namespace": ""}),
        ({"name": "db", "namespace": "other"}, {"name": "db-x-other-x-vc", "namespace": "vc-ns"}),
        ("", ""),
        ({"name": ""}, {"name": ""}),
        (None, None),
    ],
)
def test_name_goes_down_as_that_of_the_copy(ref: Any, expected: Any) -> None:
    assert down(REF, spec={"ref": ref})["spec"]["ref"] == expected


def test_reference_that_is_not_there_stays_away() -> None:
    assert down(REF, spec={"a": 1})["spec"] == {"a": 1}


def test_resource_may_be_named_by_plural_and_group_and_have_no_namespace() -> None:
    patch = {"path": "spec.class", "rename": "widgetclasses.example.org"}
    assert down(patch, spec={"class": "gold"})["spec"]["class"] == "gold-x-vc-x-vc-ns"


def test_names_in_a_list_are_all_translated() -> None:
    patch = {"path": "spec.secrets[].name", "rename": "Secret"}
    spec = {"secrets": [{"name": "a"}, {"other": 1}, {"name": "b"}]}
    assert down(patch, spec=spec)["spec"]["secrets"] == [
        {"name": "a-x-shop-x-vc"},
        {"other": 1},
        {"name": "b-x-shop-x-vc"},
    ]


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ("db-x-shop-x-vc", "db"),
        ({"name": "db-x-other-x-vc", "namespace": "vc-ns"}, {"name": "db", "namespace": "other"}),
    ],
)
def test_name_comes_back_up(ref: Any, expected: Any) -> None:
    assert up(STATUS_REF, status={"ref": ref})["status"]["ref"] == expected


def test_hashed_name_comes_back_by_virtual_object_or_marks() -> None:
    assert SETTINGS.names.to_virtual(SECRETS, Key("vc-ns", HASHED)) is None
    original = widget(status={"ref": "a-x-b"})
    assert up(STATUS_REF, status={"ref": HASHED}, virtual=original)["status"]["ref"] == "a-x-b"
    copies = context(secret_copy("a-x-b", "shop"))
    assert up(STATUS_REF, status={"ref": HASHED}, ctx=copies)["status"]["ref"] == "a-x-b"


@pytest.mark.parametrize("ref", ["the-hosts-own", "db-x-other-x-vc", HASHED, {"name": "x", "namespace": "elsewhere"}])
def test_name_of_no_virtual_object_beside_it_is_refused(ref: Any) -> None:
    theirs = secret_copy("a-x-b", "shop")
    theirs["metadata"]["labels"] = {"vsyncer.dev/cluster": "another"}
    with pytest.raises(Refused, match="not that of the host copy of a virtual Secret"):
        up(STATUS_REF, status={"ref": ref}, ctx=context(theirs))


@pytest.mark.parametrize("ref", [3, ["db"], {"key": "db"}, {"name": 3}])
def test_invalid_name_is_refused(ref: Any) -> None:
    with pytest.raises(Refused, match="neither a name nor a mapping with one"):
        down(REF, spec={"ref": ref})


def test_kind_that_is_not_served_is_refused() -> None:
    with pytest.raises(Refused, match=r"\(rename spec.ref\): no issuers.cert-manager.io is known on either side"):
        down({"path": "spec.ref", "rename": "issuers.cert-manager.io"}, spec={"ref": "a"})


def test_name_without_a_host_key_is_refused_with_the_patchs_path() -> None:
    class Full:
        def to_host(self, resource: Resource, key: Key) -> Key:
            raise Refused("there is no room for it")

    names: Any = Full()
    ctx = replace(context(), settings=replace(SETTINGS, names=names))
    with pytest.raises(Refused) as caught:
        patcher(down=[REF]).apply(
            apply(host=host_copy(widget({"ref": "db"}))), ctx=ctx, virtual=widget({"ref": "db"}), host=None
        )
    assert str(caught.value) == "sync.toHost.widgets.patches.down[0] (rename spec.ref): there is no room for it"


def test_object_without_a_namespace_names_one_with_the_name() -> None:
    virtual = {"apiVersion": "v1", "kind": "WidgetClass", "metadata": {"name": "gold", "uid": "1"}, "spec": {}}
    ctx = context(resource=CLASSES)

    def renamed(ref: Any) -> Any:
        host = {**ctx.host_copy(virtual), "spec": {"ref": ref}}
        [write] = made(patcher(down=[REF]), apply(host=host), virtual=virtual, ctx=ctx).writes
        return write.obj["spec"]["ref"]

    assert renamed({"name": "db", "namespace": "shop"}) == {"name": "db-x-shop-x-vc", "namespace": "vc-ns"}
    with pytest.raises(Refused, match="the Secret is named without a namespace by an object that has none"):
        renamed("db")


# -- labels and selectors --------------------------------------------------------------------------

FORMS = {"selector": "a label selector", "map": "labels", "text": "a label selector written as text"}


def selects(form: str, path: str = "spec.selector") -> dict[str, Any]:
    return {"path": path, "labels": form}


CLUSTER, NAMESPACE = MARKS.items()
TEXT = ",".join("=".join(mark) for mark in (CLUSTER, NAMESPACE))


@pytest.mark.parametrize(
    ("form", "selector", "expected"),
    [
        ("map", {"app": "web"}, {"app": "web", **MARKS}),
        ("map", {"app": "web", "vsyncer.dev/cluster": "another"}, {"app": "web", **MARKS}),
        ("map", {}, MARKS),
        ("selector", {"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "web", **MARKS}}),
        (
            "selector",
            {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "a", "operator": "Exists"}], "matchLabels": MARKS},
        ),
        ("selector", {"matchLabels": None}, {"matchLabels": MARKS}),
        ("selector", {}, {"matchLabels": MARKS}),
        ("text", "app=web,tier in (a,b)", f"app=web,tier in (a,b),{TEXT}"),
        ("text", "", TEXT),
        *((form, None, None) for form in FORMS),
    ],
)
def test_selector_is_narrowed_to_this_virtual_cluster_and_namespace(form: str, selector: Any, expected: Any) -> None:
    assert down(selects(form), spec={"selector": selector})["spec"]["selector"] == expected


@pytest.mark.parametrize("form", FORMS)
def test_missing_selector_is_not_narrowed(form: str) -> None:
    assert down(selects(form), spec={"a": 1})["spec"] == {"a": 1}


@pytest.mark.parametrize(
    ("form", "selector"),
    [
        *((form, odd) for form in FORMS for odd in (3, ["a"], True, {"app": 1}, {"matchLabels": ["app"]})),
        ("selector", {"app": "web"}),  # the host drops what it doesn't know, and what is left selects everything
        ("selector", {"matchLabels": {"app": "web"}, "more": "x"}),
        ("selector", {"matchExpressions": [], "more": "x"}),
        ("selector", {"matchLabels": None, "more": "x"}),
        ("selector", "app=web"),
        ("map", {"matchLabels": {"app": "web"}}),
        ("map", "app=web"),
        ("text", {"app": "web"}),
    ],
)
def test_selector_of_another_form_is_refused(form: str, selector: Any) -> None:
    with pytest.raises(Refused, match=f"the value there is not {FORMS[form]}"):
        down(selects(form), spec={"selector": selector})


NAMES = st.text("abc", min_size=1, max_size=3)
MAPS = st.dictionaries(NAMES, NAMES, min_size=1, max_size=3)
SELECTORS = st.one_of(
    MAPS.map(lambda labels: ("map", labels)),
    st.fixed_dictionaries({"matchLabels": MAPS}, optional={"matchExpressions": st.just([{"key": "a"}])}).map(
        lambda selector: ("selector", selector)
    ),
    MAPS.map(lambda labels: ("text", ",".join(f"{key}={text}" for key, text in labels.items()))),
)


@given(SELECTORS)
def test_narrowed_selector_comes_up_as_the_original(given: tuple[str, Any]) -> None:
    form, selector = given
    narrowed = down(selects(form), spec={"selector": selector})["spec"]["selector"]
    status = {"selector": narrowed}
    host = {**host_copy(widget()), "status": status}
    assert up(selects(form, "status.selector"), status=status, host=host)["status"]["selector"] == selector
