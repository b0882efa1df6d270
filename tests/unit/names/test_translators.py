"""Name translators: the names, and that no two objects share a host key."""

import re
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from syncer.api import Key, NameTranslator, Refused, Resource
from syncer.names import PerNamespace, SingleNamespace, Unchanged, VclusterCompat

CONFIGMAP = Resource("v1", "ConfigMap", "configmaps")
SERVICE = Resource("v1", "Service", "services")
ACCOUNT = Resource("v1", "ServiceAccount", "serviceaccounts")
POD = Resource("v1", "Pod", "pods")
ROLE = Resource("rbac.authorization.k8s.io/v1", "Role", "roles")
CERTIFICATE = Resource("cert-manager.io/v1", "Certificate", "certificates")
CRONJOB = Resource("batch/v1", "CronJob", "cronjobs")
NAMESPACE = Resource("v1", "Namespace", "namespaces", namespaced=False)
CLASS = Resource("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)

SNAPSHOT = Resource("snapshot.storage.k8s.io/v1", "VolumeSnapshot", "volumesnapshots")
ROUTE = Resource("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes")

RESOURCES = (CONFIGMAP, SERVICE, ACCOUNT, POD, ROLE, CERTIFICATE, CRONJOB, NAMESPACE, CLASS, SNAPSHOT, ROUTE)
INJECTIVE = (SingleNamespace, PerNamespace, Unchanged)
TRANSLATORS = (*INJECTIVE, VclusterCompat)

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LIMITS = {"services": 63, "pods": 63, "namespaces": 63, "certificates": 63, "cronjobs": 52}
LIMITS |= {"volumesnapshots": 63, "httproutes": 63}

#: Labels made of the pieces that confuse: the separator, halves of it, digits, and enough length to be cut.
LABELS = (
    st.lists(st.sampled_from(["x", "-x-", "-", "a", "db", "0", "9", "vc", "y" * 20]), min_size=1, max_size=6)
    .map("".join)
    .filter(lambda text: len(text) <= 63 and text[0] != "-" and text[-1] != "-")
)
NAMES = st.one_of(
    LABELS,
    st.lists(LABELS, min_size=2, max_size=6).map(".".join).filter(lambda text: len(text) <= 253),
    st.lists(LABELS, min_size=2, max_size=4).map(":".join),
    st.sampled_from(["kube-root-ca.crt", "default", "kubernetes", "system:Node", "a" * 253]),
)


def translator(cls: type, cluster: str = "vc", namespace: str = "vc-ns") -> NameTranslator:
    made = cls(cluster=cluster, namespace=namespace)
    assert isinstance(made, NameTranslator)
    return made


def key(resource: Resource, namespace: str, name: str) -> Key:
    return Key(namespace if resource.namespaced else "", name)


@pytest.mark.parametrize(
    ("cls", "resource", "virtual", "host"),
    [
        (SingleNamespace, CONFIGMAP, "shop/db", "vc-ns/db-x-shop-x-vc"),
        (SingleNamespace, CONFIGMAP, "shop/kube-root-ca.crt", "vc-ns/kube-root-ca.crt-x-shop-x-vc"),
        (SingleNamespace, SERVICE, "default/kubernetes", "vc-ns/kubernetes-x-default-x-vc"),
        (SingleNamespace, CONFIGMAP, "shop/a-x-b", "vc-ns/a-b-shop-vc-67a2bf3c9904f9653e28"),
        (SingleNamespace, SERVICE, "shop/9lives", "vc-ns/n9lives-shop-vc-3148298fa8592383e015"),
        (SingleNamespace, ROLE, "shop/system:Node", "vc-ns/system-node-shop-vc-f3286917fdab9a31e215"),
        (SingleNamespace, CLASS, "gold", "gold-x-vc-x-vc-ns"),
        (PerNamespace, CONFIGMAP, "shop/db", "shop-x-vc-x-vc-ns/db"),
        (PerNamespace, NAMESPACE, "shop", "shop-x-vc-x-vc-ns"),
        (PerNamespace, CONFIGMAP, "shop/kube-root-ca.crt", "shop-x-vc-x-vc-ns/kube-root-ca.crt-x-vc"),
        (PerNamespace, ACCOUNT, "shop/default", "shop-x-vc-x-vc-ns/default-x-vc"),
        (PerNamespace, CONFIGMAP, "shop/default", "shop-x-vc-x-vc-ns/default"),
        (Unchanged, CONFIGMAP, "shop/db", "shop/db"),
        (Unchanged, CLASS, "gold", "gold"),
        (Unchanged, SERVICE, "default/kubernetes", "default/kubernetes-x-vc"),
        (Unchanged, SERVICE, "shop/kubernetes", "shop/kubernetes"),
        (VclusterCompat, CONFIGMAP, "shop/db", "vc-ns/db-x-shop-x-vc"),
        (VclusterCompat, CONFIGMAP, "shop/kube-root-ca.crt", "vc-ns/kube-root-ca.crt-x-shop-x-vc"),
        (VclusterCompat, CLASS, "gold", "vcluster-gold-x-vc-ns-x-vc"),
        (VclusterCompat, SERVICE, "default/kubernetes", "vc-ns/vc"),
    ],
)
def test_translations_are_as_in_the_table(cls: type, resource: Resource, virtual: str, host: str) -> None:
    assert str(translator(cls).to_host(resource, Key.parse(virtual))) == host


def test_vclusters_rule_for_long_names_to_the_letter() -> None:
    # The 52nd character is a dot: vcluster drops it before the dash.
    name = "a" * 51 + "." + "b" * 20
    host = translator(VclusterCompat).to_host(CONFIGMAP, Key("shop", name)).name
    assert host == "a" * 51 + "-" + "7e1e02c853"


def test_vclusters_names_collide_and_ours_do_not() -> None:
    one, other = Key("c", "a-x-b"), Key("b-x-c", "a")
    compat, single = translator(VclusterCompat), translator(SingleNamespace)
    assert compat.to_host(CONFIGMAP, one) == compat.to_host(CONFIGMAP, other)
    assert single.to_host(CONFIGMAP, one) != single.to_host(CONFIGMAP, other)
    assert compat.to_virtual(CONFIGMAP, compat.to_host(CONFIGMAP, one)) is None


@pytest.mark.parametrize("cls", INJECTIVE)
def test_short_keys_never_share_a_host_key(cls: type) -> None:
    """All names and namespaces of up to four of the characters that matter, in clusters that differ as little."""
    labels = [
        text
        for length in range(1, 5)
        for text in map("".join, product("ax-", repeat=length))
        if text[0] != "-" and text[-1] != "-"
    ]
    clusters = ("a", "x", "a-x", "x-a") if cls is SingleNamespace else ("x-a",)
    for resource in (CONFIGMAP, CLASS):
        keys = product(clusters, labels if resource.namespaced else [""], labels)
        made = {cluster: translator(cls, cluster) for cluster in clusters}
        known: dict[Key, tuple[str, ...]] = {}
        for parts in keys:
            host_key = made[parts[0]].to_host(resource, Key(*parts[1:]))
            assert known.setdefault(host_key, parts) == parts


@pytest.mark.parametrize("cls", INJECTIVE)
@given(resource=st.sampled_from(RESOURCES), one=st.tuples(LABELS, NAMES), other=st.tuples(LABELS, NAMES))
@example(resource=CONFIGMAP, one=("shop", "kube-root-ca.crt"), other=("shop", "kube-root-ca.crt-x-vc"))
def test_keys_never_share_a_host_key(
    cls: type, resource: Resource, one: tuple[str, str], other: tuple[str, str]
) -> None:
    keys = key(resource, *one), key(resource, *other)
    assume(keys[0] != keys[1])
    made = translator(cls)
    assert made.to_host(resource, keys[0]) != made.to_host(resource, keys[1])


@pytest.mark.parametrize("resource", [CONFIGMAP, CLASS])
@given(namespace=LABELS, name=NAMES, clusters=st.tuples(LABELS, LABELS), homes=st.tuples(LABELS, LABELS))
def test_virtual_clusters_never_share_a_host_key(
    resource: Resource, namespace: str, name: str, clusters: tuple[str, str], homes: tuple[str, str]
) -> None:
    assume(clusters[0] != clusters[1] or homes[0] != homes[1])
    one, other = (translator(SingleNamespace, cluster, home) for cluster, home in zip(clusters, homes, strict=True))
    virtual = key(resource, namespace, name)
    assert one.to_host(resource, virtual) != other.to_host(resource, virtual)


@given(name=NAMES, text=NAMES)
def test_hashed_name_never_looks_like_a_readable_one(name: str, text: str) -> None:
    host = translator(SingleNamespace).to_host(CONFIGMAP, Key("x", f"{name}-x-{text}")).name
    assert "-x-" not in host
    assert translator(SingleNamespace).to_virtual(CONFIGMAP, Key("vc-ns", host)) is None


def test_name_that_another_name_is_hashed_to_is_not_taken() -> None:
    made = translator(SingleNamespace)
    hashed = made.to_host(CONFIGMAP, Key("shop", "a-x-b"))
    assert made.to_host(CONFIGMAP, Key("shop", hashed.name)) != hashed


@pytest.mark.parametrize("cls", [SingleNamespace, PerNamespace])
@given(resource=st.sampled_from(RESOURCES), namespace=LABELS, name=NAMES, cluster=LABELS, home=LABELS)
def test_host_keys_are_valid(cls: type, resource: Resource, namespace: str, name: str, cluster: str, home: str) -> None:
    assume(cls is SingleNamespace or ":" not in name)
    host_key = translator(cls, cluster, home).to_host(resource, key(resource, namespace, name))
    assert bool(host_key.namespace) == resource.namespaced
    assert len(host_key.namespace) <= 63
    assert "." not in host_key.namespace
    if cls is SingleNamespace:
        assert len(host_key.name) <= LIMITS.get(resource.plural, 253)
        assert SUBDOMAIN.fullmatch(host_key.name)
    if cls is SingleNamespace and resource is SERVICE:
        assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", host_key.name)


@pytest.mark.parametrize("cls", TRANSLATORS)
@given(resource=st.sampled_from(RESOURCES), namespace=LABELS, name=NAMES)
def test_host_name_is_read_back_right_or_not_at_all(cls: type, resource: Resource, namespace: str, name: str) -> None:
    made, virtual = translator(cls), key(resource, namespace, name)
    found = made.to_virtual(resource, made.to_host(resource, virtual))
    assert found in (virtual, None)
    assert found == virtual or cls is not Unchanged


@pytest.mark.parametrize("cls", TRANSLATORS)
@given(resource=st.sampled_from(RESOURCES), namespace=LABELS, name=NAMES)
def test_virtual_key_of_any_host_key_leads_back_to_it(cls: type, resource: Resource, namespace: str, name: str) -> None:
    made, host = translator(cls), key(resource, namespace, name)
    found = made.to_virtual(resource, host)
    assert found is None or made.to_host(resource, found) == host


@pytest.mark.parametrize("cls", [SingleNamespace, PerNamespace])
def test_readable_names_are_read_back(cls: type) -> None:
    made = translator(cls)
    for resource in RESOURCES:
        virtual = key(resource, "shop", "db")
        assert made.to_virtual(resource, made.to_host(resource, virtual)) == virtual


def test_object_without_namespace_that_becomes_one_with() -> None:
    made = translator(SingleNamespace)
    assert made.to_host(CONFIGMAP, Key("", "gold")) == Key("vc-ns", "gold-x-vc")
    assert made.to_virtual(CONFIGMAP, Key("vc-ns", "gold-x-vc")) == Key("", "gold")
    assert made.to_host(CLASS, Key("shop", "gold")) == Key("", "gold-x-shop-x-vc-x-vc-ns")


def test_host_key_of_other_namespace_has_no_virtual_key() -> None:
    assert translator(SingleNamespace).to_virtual(CONFIGMAP, Key("other", "db-x-shop-x-vc")) is None
    assert translator(SingleNamespace).to_virtual(CONFIGMAP, Key("vc-ns", "db-x-shop-x-other")) is None
    assert translator(PerNamespace).to_virtual(CONFIGMAP, Key("shop-x-other-x-vc-ns", "db")) is None
    assert translator(PerNamespace).to_virtual(CONFIGMAP, Key("vc-ns", "db-x-shop-x-vc")) is None
    assert translator(VclusterCompat).to_virtual(CONFIGMAP, Key("other", "db-x-shop-x-vc")) is None


@pytest.mark.parametrize("cls", [PerNamespace, Unchanged])
def test_hosts_own_objects_have_no_virtual_key(cls: type) -> None:
    made = translator(cls)
    namespace = made.to_host(CONFIGMAP, Key("default", "db")).namespace
    assert made.to_virtual(CONFIGMAP, Key(namespace, "kube-root-ca.crt")) is None
    assert made.to_virtual(ACCOUNT, Key(namespace, "default")) is None


@pytest.mark.parametrize("cls", [PerNamespace, Unchanged])
def test_reserved_name_without_room_is_refused(cls: type) -> None:
    full = "kube-root-ca.crt" + "-x-vc" * 47
    assert len(full) == 251
    with pytest.raises(Refused, match=r"metadata\.name: no room for the suffix -x-vc within 253 characters"):
        translator(cls).to_host(CONFIGMAP, Key("shop", full))


def test_host_namespaces_of_copies() -> None:
    assert translator(SingleNamespace).host_namespaces() == ("vc-ns",)
    assert translator(VclusterCompat).host_namespaces() == ("vc-ns",)
    assert translator(PerNamespace).host_namespaces() is None
    assert translator(Unchanged).host_namespaces() is None


@pytest.mark.parametrize("cls", TRANSLATORS)
def test_translations_of_long_texts_are_not_cached(cls: Any) -> None:
    made = cls(cluster="vc", namespace="vc-ns")
    for letter, most in (("a", 316), ("é", 158), ("語", 105), ("\U0001f980", 79)):
        for number, kept in ((most, 1), (most + 1, 0)):
            made._remembered.cache_clear()
            made.to_host(POD, Key("", letter * number))
            assert made._remembered.cache_info().currsize == kept, (letter, number)
