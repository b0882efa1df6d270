"""References as data: found, counted, waited for, and translated to the other side."""

import copy
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncer.api import (
    Context,
    Key,
    Mirror,
    Obj,
    Outcome,
    Pair,
    Reference,
    ReferencePaths,
    References,
    Referred,
    Refers,
    Refused,
    Resource,
    Rewritten,
    Selects,
    Settings,
    Shown,
    Side,
    Source,
    resources_of,
)
from syncer.names import PerNamespace, SingleNamespace
from syncer.resources.secrets import SecretSyncer
from syncer.rights.rbac import sources
from syncer.testing.objects import build, host_copy, secret
from syncer.testing.world import World

WIDGETS = Resource("example.org/v1", "Widget", "widgets")
POOLS = Resource("example.org/v1", "Pool", "pools", namespaced=False)
CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps")
SECRETS = Resource("v1", "Secret", "secrets")
PODS = Resource("v1", "Pod", "pods")
ISSUERS = Resource("cert-manager.io/v1", "Issuer", "issuers")
CLUSTER_ISSUERS = Resource("cert-manager.io/v1", "ClusterIssuer", "clusterissuers", namespaced=False)

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.text(max_size=3) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "name", "kind"]), inner),
    max_leaves=12,
)


class Public:
    """Shows the ClusterIssuers of the host that are called public."""

    source = Source(Side.HOST, CLUSTER_ISSUERS)

    def host_key(self, settings: Settings, key: Key) -> Key:
        return key

    def virtual_namespace(self, host: str) -> str:
        return host

    def does_show(self, ctx: Context, key: Key) -> bool:
        return key.name == "public"


PUBLIC = Public()
#: A reference with all that can stand beside a name.
FULL = Reference((ISSUERS, Shown(CLUSTER_ISSUERS, PUBLIC)), kind="kind", group="group", namespace="namespace")


def widget(spec: Any = None, namespace: str = "shop", **metadata: Any) -> Obj:
    return build(WIDGETS, "w", namespace=namespace, spec=spec or {}, metadata={"uid": "u-1", **metadata})


class Widgets(Mirror):
    """Something that names other things; the test says what and where."""

    name = "widgets"
    resource = WIDGETS
    down = ("spec",)
    up = ("status",)


def naming(references: References, **attributes: Any) -> type[Mirror]:
    return type("Naming", (Widgets,), {"references": references, **attributes})


def context(*, translator: Any = SingleNamespace, **objects: list[Obj]) -> Context:
    made: Context = World([Widgets], translator=translator).given(**objects).context(Widgets)
    return made


def names(references: References, spec: Any, **options: Any) -> list[tuple[Resource, Key]]:
    return [(one.resource, one.key) for one in ReferencePaths(references).named(widget(spec, **options))]


def down(references: References, spec: Any, ctx: Context | None = None) -> Any:
    virtual = widget(spec)
    before = copy.deepcopy(virtual)
    result = ReferencePaths(references).to_host(ctx or context(), virtual, virtual)
    assert virtual == before, "what is given must not be changed"
    return result["spec"]


# -- where they are --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "spec", "renamed"),
    [
        ("spec.to", {"to": "a", "more": 1}, {"to": "a-x-shop-x-vc", "more": 1}),
        ("spec.to[]", {"to": ["a", "", None, "b"]}, {"to": ["a-x-shop-x-vc", "", None, "b-x-shop-x-vc"]}),
        ("spec.some[].to", {"some": [{"to": "a"}, {}, "x"]}, {"some": [{"to": "a-x-shop-x-vc"}, {}, "x"]}),
        ("spec.a[][].name", {"a": [[{"name": "x"}], []]}, {"a": [[{"name": "x-x-shop-x-vc"}], []]}),
        ("/spec/a.b/c", {"a.b": {"c": "x"}}, {"a.b": {"c": "x-x-shop-x-vc"}}),
    ],
)
def test_names_are_renamed_where_the_path_leads(path: str, spec: Any, renamed: Any) -> None:
    assert down({path: SECRETS}, spec) == renamed


@given(ANYTHING)
def test_value_of_another_shape_than_the_path_is_left_alone(value: Any) -> None:
    paths = ("spec.a", "spec.a.b", "spec.a[].name", "spec.name")
    obj = {**widget(), "spec": value}
    for referred in (SECRETS, FULL):
        for one in ReferencePaths(dict.fromkeys(paths, referred)).named(obj):
            assert one.key.name
    none = ReferencePaths({"spec.zz.a": SECRETS, "spec.zz[].name": FULL})
    assert none.to_host(context(), obj, obj) is obj


def test_unchanged_parts_are_shared() -> None:
    virtual = widget({"to": "a", "more": {"x": 1}})
    host = ReferencePaths({"spec.to": SECRETS}).to_host(context(), virtual, virtual)
    assert host["spec"]["more"] is virtual["spec"]["more"]


def test_references_in_labels_and_annotations_are_renamed() -> None:
    references: References = {
        "/metadata/labels/kubernetes.io~1service-name": Resource("v1", "Service", "services"),
        "/metadata/annotations/example.org~1auth": Reference(SECRETS, form="key"),
    }
    labels, notes = {"kubernetes.io/service-name": "web"}, {"example.org/auth": "blog/login"}
    virtual = widget(labels=labels, annotations=notes)
    syncer = naming(references)()
    metadata = syncer.translate(context(), virtual)["metadata"]
    assert metadata["labels"]["kubernetes.io/service-name"] == "web-x-shop-x-vc"
    assert metadata["annotations"]["example.org/auth"] == "vc-ns/login-x-blog-x-vc"
    assert (SECRETS, Key("blog", "login")) in list(syncer.refers(virtual))


@pytest.mark.parametrize(("text", "key"), [("login", Key("shop", "login")), ("blog/login", Key("blog", "login"))])
def test_text_may_be_namespace_and_name(text: str, key: Key) -> None:
    references = {"spec.auth": Reference(SECRETS, form="key")}
    assert names(references, {"auth": text}) == [(SECRETS, key)]
    translated = f"login-x-{key.namespace}-x-vc"
    assert down(references, {"auth": text}) == {"auth": f"vc-ns/{translated}" if "/" in text else translated}


# -- what they are ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("beside", "meant"),
    [
        ({"kind": "Issuer"}, (ISSUERS, Key("shop", "x"))),
        ({"kind": "ClusterIssuer"}, (CLUSTER_ISSUERS, Key("", "x"))),
        ({"group": "cert-manager.io"}, (ISSUERS, Key("shop", "x"))),
        ({"namespace": "blog"}, (ISSUERS, Key("blog", "x"))),
        ({"kind": "ClusterIssuer", "namespace": "blog"}, (CLUSTER_ISSUERS, Key("", "x"))),
        ({"kind": "", "group": None}, (ISSUERS, Key("shop", "x"))),
        ({"kind": "Other"}, None),
        ({"group": "example.org"}, None),
        ({"kind": "Issuer", "group": "example.org"}, None),
    ],
)
def test_fields_beside_a_name_decide(beside: dict[str, Any], meant: Any) -> None:
    assert names({"spec.ref.name": FULL}, {"ref": {"name": "x", **beside}}) == ([meant] if meant else [])


def test_api_version_names_the_group() -> None:
    references = {"spec.ref.name": Reference((SECRETS, ISSUERS), kind="kind", group="apiVersion")}
    ref = {"name": "x", "kind": "Issuer", "apiVersion": "cert-manager.io/v1"}
    assert names(references, {"ref": ref}) == [(ISSUERS, Key("shop", "x"))]
    assert names(references, {"ref": {**ref, "apiVersion": "v1"}}) == []
    assert names(references, {"ref": {**ref, "apiVersion": "v1", "kind": "Secret"}}) == [(SECRETS, Key("shop", "x"))]


def test_fields_that_are_not_declared_mean_nothing() -> None:
    spec = {"ref": {"name": "x", "kind": "Other", "namespace": "blog"}}
    assert names({"spec.ref.name": SECRETS}, spec) == [(SECRETS, Key("shop", "x"))]


def test_name_of_no_known_kind_never_goes_to_the_host() -> None:
    with pytest.raises(Refused, match=r"spec\.ref\.name: names a Other, and no such kind is synced from there"):
        down({"spec.ref.name": FULL}, {"ref": {"name": "x", "kind": "Other"}})
    with pytest.raises(Refused, match=r"names a Issuer of example\.org, and"):
        down({"spec.ref.name": FULL}, {"ref": {"name": "x", "group": "example.org"}})


@pytest.mark.parametrize("referred", [SECRETS, Reference(SECRETS, namespace="namespace")])
def test_name_without_any_namespace_is_unknown(referred: Referred) -> None:
    references, pool = {"spec.ref.name": referred}, build(POOLS, "p", spec={"ref": {"name": "x"}})
    assert ReferencePaths(references).keys(pool) == []
    with pytest.raises(Refused, match="names the Secret x without a namespace, and has none itself"):
        ReferencePaths(references).to_host(context(), pool, pool)


@pytest.mark.parametrize(
    "referred", [SECRETS, Reference(SECRETS, namespace="namespace"), Reference(SECRETS, form="key")]
)
def test_name_with_an_ending_of_ours_is_refused_and_never_counted(referred: Referred) -> None:
    references = {"spec.ref.name": referred}
    assert names(references, {"ref": {"name": "admin.pod-tokens"}}) == []
    with pytest.raises(Refused, match=r"spec\.ref\.name: no Secret may have a name that ends in \.pod-tokens"):
        down(references, {"ref": {"name": "admin.pod-tokens"}})
    other = {"spec.ref.name": CONFIG_MAPS}
    assert down(other, {"ref": {"name": "a.pod-tokens"}}) == {"ref": {"name": "a.pod-tokens-x-shop-x-vc"}}


def test_namespace_beside_a_name_is_translated_with_it() -> None:
    references = {"spec.ref.name": Reference(SECRETS, namespace="namespace")}
    world = World([Widgets, SecretSyncer], translator=PerNamespace)
    forced = {"annotations": {"vsyncer.dev/force-sync": "true"}}
    for namespace in ("shop", "blog"):
        world.given(virtual=[secret("x", namespace=namespace, metadata=forced)])
        world.settle(SecretSyncer, f"{namespace}/x")
    ctx: Context = world.context(Widgets)
    renamed = down(references, {"ref": {"name": "x", "namespace": "blog"}}, ctx)["ref"]
    host_key = ctx.names.to_host(SECRETS, Key("blog", "x"))
    assert (renamed["namespace"], renamed["name"]) == host_key
    assert "namespace" not in down(references, {"ref": {"name": "x"}}, ctx)["ref"]


def test_reference_with_fields_beside_it_can_not_end_in_a_list() -> None:
    with pytest.raises(ValueError, match=r"spec\.to\[\] ends in a list"):
        ReferencePaths({"spec.to[]": Reference(SECRETS, kind="kind")})


# -- what follows from them ------------------------------------------------------------------------


def test_used_reference_counts_and_one_that_is_only_named_does_not() -> None:
    references: References = {
        "spec.used": SECRETS,
        "spec.named": Reference(CONFIG_MAPS, use="named"),
        "spec.made": Reference(SECRETS, use="made"),
        "spec.shown": Reference(Shown(CLUSTER_ISSUERS, PUBLIC)),
    }
    syncer = naming(references)()
    virtual = widget({"used": "a", "named": "b", "made": "c", "shown": "public"})
    assert list(syncer.refers(virtual)) == [(SECRETS, Key("shop", "a"))]
    assert list(syncer.made_on_host(virtual)) == [(SECRETS, Key("shop", "c"))]
    assert syncer.refers_to == resources_of(references) == (SECRETS,)
    assert syncer.translate(context(), virtual)["spec"] == {
        "used": "a-x-shop-x-vc",
        "named": "b-x-shop-x-vc",
        "made": "c-x-shop-x-vc",
        "shown": "public",
    }


@pytest.mark.parametrize(
    ("path", "is_below"),
    [
        ("spec.a", True),
        ("spec.list[].b", True),
        ("/spec/a.b/c", True),
        ("status.c", False),
        ("specials.d", False),
    ],
)
def test_references_are_chosen_by_the_field_above_them(path: str, is_below: bool) -> None:
    paths = ReferencePaths({path: SECRETS}).below(("spec",))
    assert paths.is_empty is not is_below


def test_class_may_choose_the_references_that_count() -> None:
    assert naming({"spec.a": SECRETS}, refers_to=())().refers_to == ()
    assert naming({})().refers_to == ()


def test_references_that_go_down_are_used_and_those_that_come_up_translated_back() -> None:
    syncer = naming({"spec.a": SECRETS, "status.a": SECRETS})()
    virtual = {**widget({"a": "x"}), "status": {"a": "old"}}
    assert list(syncer.refers(virtual)) == [(SECRETS, Key("shop", "x"))]
    host = {**host_copy(virtual), "spec": {"a": "x-x-shop-x-vc"}, "status": {"a": "x-x-shop-x-vc"}}
    assert syncer.reflect(context(), Pair(virtual, host)) == {
        "apiVersion": WIDGETS.api_version,
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "shop", "uid": "u-1"},
        "status": {"a": "x"},
    }


@pytest.mark.parametrize(
    ("there", "here"),
    [
        ("x-x-shop-x-vc", "x"),
        ("the-hosts-own", "the-hosts-own"),
        ("x-x-blog-x-vc", "x-x-blog-x-vc"),  # a name alone can't say that it is in another namespace
        ("", ""),
    ],
)
def test_name_comes_up_where_a_virtual_object_stands_for_it(there: str, here: str) -> None:
    host = {**host_copy(widget()), "status": {"a": there}}
    paths = ReferencePaths({"status.a": SECRETS})
    assert paths.to_virtual(context(), host, {"status": {"a": there}}, known=())["status"]["a"] == here


def test_hashed_name_comes_up_by_names_in_the_virtual_object() -> None:
    long, paths = "long" * 63, ReferencePaths({"spec.a": SECRETS})
    virtual = widget({"a": long})
    host = {**host_copy(virtual), "spec": down({"spec.a": SECRETS}, {"a": long})}
    assert paths.to_virtual(context(), host, {"spec": host["spec"]}, known=paths.named(virtual))["spec"]["a"] == long
    unknown = paths.to_virtual(context(), host, {"spec": host["spec"]}, known=())
    assert unknown["spec"] == host["spec"]


# -- what has to be there --------------------------------------------------------------------------

REQUIRED: References = {"spec.ref.name": Reference(SECRETS, required=True)}


def test_required_copy_is_waited_for_until_it_is_there() -> None:
    widgets = naming(REQUIRED)
    world = World([widgets]).given(virtual=[widget({"ref": {"name": "db"}})])
    decision = world.decide(widgets, "shop/w")
    assert (decision.outcome, decision.writes) == (Outcome.PENDING, ())
    assert decision.reason == "it names the Secret shop/db, which has no copy on the host yet"
    [reference] = decision.on
    assert (reference.side, reference.resource, reference.key) == (Side.HOST, SECRETS, Key("vc-ns", "db-x-shop-x-vc"))
    world.given(host=[secret("db-x-shop-x-vc", namespace="vc-ns")])
    assert world.decide(widgets, "shop/w").outcome is Outcome.PENDING, "what stands there isn't ours"
    world.given(host=[host_copy(secret("db"))])
    assert world.settle(widgets, "shop/w")
    world.gone(host=[host_copy(secret("db"))])
    assert world.decide(widgets, "shop/w").outcome is Outcome.IN_STEP, "once it is made, it goes on"


def test_optional_reference_is_not_waited_for() -> None:
    widgets = naming(REQUIRED)
    world = World([widgets]).given(virtual=[widget({"ref": {"name": "db", "optional": True}})])
    assert world.settle(widgets, "shop/w")


def test_references_that_are_required_or_shown_are_read() -> None:
    read = sources(naming({**REQUIRED, "spec.by.name": FULL})())
    assert {Source(Side.HOST, SECRETS, marked=True), PUBLIC.source} <= read
    assert not any(source.resource == SECRETS for source in sources(naming({"spec.a": SECRETS})()))


def test_source_of_several_references_is_there_once() -> None:
    required = Reference(SECRETS, required=True)
    references: References = {
        "spec.a.name": FULL,
        "spec.b.name": FULL,
        "spec.c.name": required,
        "spec.d.name": required,
    }
    copies = [Source(Side.HOST, resource, marked=True) for resource in (ISSUERS, SECRETS)]
    paths = ReferencePaths(references)
    assert paths.sources == (PUBLIC.source, copies[1])
    assert paths.host_copies == tuple(copies)


@pytest.mark.parametrize(("name", "outcome"), [("public", Outcome.IN_STEP), ("hidden", Outcome.PENDING)])
def test_host_object_that_is_named_must_be_shown(name: str, outcome: Outcome) -> None:
    widgets = naming({"spec.by.name": FULL})
    virtual = widget({"by": {"kind": "ClusterIssuer", "name": name}})
    world = World([widgets]).given(virtual=[virtual])
    decision = world.decide(widgets, "shop/w")
    assert decision.outcome is outcome
    if decision.writes:
        assert decision.writes[0].obj["spec"] == virtual["spec"]
    world.given(host=[{**host_copy(virtual), "spec": virtual["spec"]}])
    assert world.decide(widgets, "shop/w").outcome is outcome, "also once it is made"


# -- selectors and other texts ---------------------------------------------------------------------

OURS = {"vsyncer.dev/cluster": "vc.vc-ns", "vsyncer.dev/namespace": "shop"}


@pytest.mark.parametrize(
    ("form", "value", "narrowed"),
    [
        ("map", {"app": "web"}, {"app": "web", **OURS}),
        ("map", {"vsyncer.dev/cluster": "other"}, OURS),
        ("map", {}, OURS),
        ("selector", {}, {"matchLabels": OURS}),
        ("selector", {"matchLabels": {"a": "b"}}, {"matchLabels": {"a": "b", **OURS}}),
    ],
)
def test_selector_selects_only_the_tenants_own(form: Any, value: Any, narrowed: Any) -> None:
    references: References = {"spec.selector": Selects(PODS, form)}
    assert down(references, {"selector": value}) == {"selector": narrowed}
    host = {**host_copy(widget()), "spec": {"selector": narrowed}}
    up = ReferencePaths(references).to_virtual(context(), host, {"spec": host["spec"]}, known=())
    assert up["spec"]["selector"] == ({} if narrowed == OURS else value)


def test_empty_labels_stay_empty_only_where_they_select_nothing() -> None:
    references: References = {"spec.selector": Selects(PODS, "map", empty_selects_nothing=True)}
    assert down(references, {"selector": {}}) == {"selector": {}}
    assert down(references, {"selector": {"a": "b"}}) == {"selector": {"a": "b", **OURS}}


def test_kind_without_namespaces_is_narrowed_to_the_cluster_alone() -> None:
    assert down({"spec.s": Selects(POOLS, "map")}, {"s": {"a": "b"}})["s"] == {
        "a": "b",
        "vsyncer.dev/cluster": "vc.vc-ns",
    }


@pytest.mark.parametrize("value", ["text", {"matchLabels": {}, "other": 1}, {"app": "web"}])
def test_invalid_selector_is_refused(value: Any) -> None:
    with pytest.raises(Refused, match=r"spec\.s: is no label selector"):
        down({"spec.s": Selects(PODS)}, {"s": value})


@pytest.mark.parametrize("value", [5, 0, True, False, 1.5, ["a"], [], {"name": "a"}], ids=repr)
@pytest.mark.parametrize(
    ("path", "referred"),
    [
        ("spec.a", SECRETS),
        ("spec.a", FULL),
        ("spec.a", Reference(SECRETS, required=True)),
        ("spec.a", Reference(SECRETS, form="key")),
        ("spec.a", Rewritten(lambda ctx, text: text)),
        ("spec.l[]", SECRETS),
        ("spec.l[]", Reference(SECRETS, form="key")),
    ],
)
def test_name_that_is_no_text_is_refused(path: str, referred: Referred, value: Any) -> None:
    """A schema may accept any value there, and a controller may read a number as a name."""
    with pytest.raises(Refused, match="is no text") as refused:
        down({path: referred}, {"a": value, "l": ["b", value]})
    assert refused.value.path == path


@pytest.mark.parametrize("beside", ["kind", "group", "namespace"])
def test_field_beside_a_name_that_is_no_text_is_refused(beside: str) -> None:
    with pytest.raises(Refused, match=f"^spec.ref.name: the {beside} beside it is no text"):
        down({"spec.ref.name": FULL}, {"ref": {"name": "a", beside: 5}})
    assert down({"spec.ref.name": FULL}, {"ref": {"name": "a", beside: None}})


def test_text_is_rewritten_both_ways() -> None:
    shout = Rewritten(lambda ctx, text: f"{ctx.cluster}:{text}", lambda ctx, text: text.removeprefix(f"{ctx.cluster}:"))
    assert down({"spec.t": shout}, {"t": "x", "u": "y"}) == {"t": "vc:x", "u": "y"}
    host = {**host_copy(widget()), "spec": {"t": "vc:x"}}
    assert ReferencePaths({"spec.t": shout}).to_virtual(context(), host, host, known=())["spec"] == {"t": "x"}


# -- classes that say it by a method ---------------------------------------------------------------


def test_method_of_the_old_name_still_gives_references() -> None:
    def references(self: Any, virtual: Obj) -> list[tuple[Resource, Key]]:
        return [(SECRETS, Key("shop", virtual["spec"]["a"]))]

    with pytest.warns(DeprecationWarning, match=r"a method that gives what an object names is called `refers`"):
        old = type("Old", (Widgets, Refers), {"references": references, "refers_to": (SECRETS,)})
    assert list(old().refers(widget({"a": "x"}))) == [(SECRETS, Key("shop", "x"))]
    assert old().translate(context(), widget({"a": "x"}))["spec"] == {"a": "x"}


class Twice(Widgets):
    """Names two things at one place."""

    references: ClassVar[References] = {"spec.to.name": FULL, "spec.to.secretName": SECRETS}


def test_references_may_share_a_mapping() -> None:
    virtual = widget({"to": {"name": "ca", "secretName": "db", "namespace": "blog"}})
    assert set(Twice().refers(virtual)) == {(ISSUERS, Key("blog", "ca")), (SECRETS, Key("shop", "db"))}
    assert Twice().translate(context(), virtual)["spec"]["to"] == {
        "name": "ca-x-blog-x-vc",
        "secretName": "db-x-shop-x-vc",
        "namespace": "vc-ns",
    }
