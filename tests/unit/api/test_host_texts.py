"""Texts of the host have virtual names for tenants, and nothing of the host's own."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncer.api import HostNames, Key, NameTranslator, Settings
from syncer.api.host_texts import MOST_TEXT, MOST_WORDS
from syncer.api.texts import LONGEST_MESSAGE
from syncer.names import PerNamespace, SingleNamespace, Unchanged, VclusterCompat
from syncer.resources.kinds import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PODS, SECRETS

SINGLE = SingleNamespace(cluster="vc", namespace="home")
APART = PerNamespace(cluster="vc", namespace="home")
SAME = Unchanged(cluster="vc", namespace="home")
COMPAT = VclusterCompat(cluster="vc", namespace="home")


def names_for(names: NameTranslator, **parts: Any) -> HostNames:
    return HostNames(Settings(cluster="vc", host_namespace="home", names=names), resource=PODS, **parts)


def translated(names: NameTranslator, message: str, known: Mapping[str, str] | None = None, **parts: Any) -> str:
    return names_for(names, known=lambda: known or {}, **parts).virtual(message)


@pytest.mark.parametrize(
    ("names", "message", "says"),
    [
        (SINGLE, 'pods "web-x-shop-x-vc" is bad', 'pods "web" is bad'),
        (SINGLE, "create pods home/web-x-shop-x-vc: no", "create pods shop/web: no"),
        (SINGLE, "it is used by home/db-x-bank-x-vc.", "it is used by bank/db."),
        (SINGLE, "gold-x-vc-x-home is no such class", "gold is no such class"),
        (SINGLE, 'persistentvolumeclaim "data-x-shop-x-vc" not found', 'persistentvolumeclaim "data" not found'),
        (SINGLE, "waiting for pod web-0-x-shop-x-vc to be scheduled", "waiting for pod web-0 to be scheduled"),
        (SINGLE, 'in namespace "home"', 'in namespace "<host>"'),
        (SINGLE, 'object "home"/"db-x-shop-x-vc"', 'object "<host>"/"db"'),
        (SINGLE, "pod web-x-shop-x-vc_home(uid)", "pod web_<host>(uid)"),
        (SINGLE, "home/alien has it", "<host> has it"),
        (
            SINGLE,
            'host "a.example" is defined in ingress home/web-x-shop-x-other',
            'host "a.example" is defined in ingress <host>',
        ),
        (SINGLE, "spec.home and homes, web-x-shop-x-other", "spec.home and homes, web-x-shop-x-other"),
        (SINGLE, "apps/v1, 10.0.0.1, a/b/c, http://home/x", "apps/v1, 10.0.0.1, a/b/c, http://home/x"),
        (
            SINGLE,
            'Post "https://hook-x-shop-x-vc.home.svc:443/home?timeout=1s": no',
            'Post "https://hook.shop.svc:443/<host>?timeout=1s": no',
        ),
        (SINGLE, "db-0.db-x-shop-x-vc.home.svc.cluster.local", "db-0.db.shop.svc.cluster.local"),
        (SINGLE, "theirs.home.svc", "theirs.<host>.svc"),
        (SINGLE, "GET /api/v1/namespaces/home/pods/web-x-shop-x-vc/log", "GET /api/v1/namespaces/<host>/pods/web/log"),
        (SINGLE, 'Failed to pull image "home/app:1"', 'Failed to pull image "home/app:1"'),
        (
            SINGLE,
            "Web-x-shop-x-vc is no name, nor is web-x-shop-x-vc-",
            "Web-x-shop-x-vc is no name, nor is web-x-shop-x-vc-",
        ),
        (APART, "create pods shop-x-vc-x-home/web: no", "create pods shop/web: no"),
        (APART, "in namespace shop-x-vc-x-home", "in namespace shop"),
        (APART, "in namespace home", "in namespace <host>"),
        (APART, "web.shop-x-vc-x-home.svc", "web.shop.svc"),
        (APART, "shop-x-vc-x-home/default-x-vc", "shop/default-x-vc"),
        (SAME, "create pods shop/web: no", "create pods shop/web: no"),
        (COMPAT, 'secret "db-x-shop-x-vc" not found in home', 'secret "db" not found in <host>'),
    ],
)
def test_names_are_as_the_tenant_knows_them(names: NameTranslator, message: str, says: str) -> None:
    assert translated(names, message) == says


def test_host_namespace_alone_is_the_namespace_of_the_object() -> None:
    message = 'object "home"/"db-x-shop-x-vc" in namespace home'
    assert translated(SINGLE, message, namespace="shop") == 'object "shop"/"db" in namespace shop'


def test_name_that_only_the_caller_can_tell_is_replaced_too() -> None:
    host = SINGLE.to_host(CONFIG_MAPS, Key("shop", "x" * 250))
    known = {str(host): "shop/long", host.name: "long", "plain": "own"}
    assert (
        translated(SINGLE, f"{host} is bad, {host.name}, plain, plainer", known)
        == "shop/long is bad, long, own, plainer"
    )


def test_hashed_name_is_explained_by_its_copy() -> None:
    key = Key("shop", "x" * 250)
    for names in (SINGLE, COMPAT):
        host = names.to_host(PERSISTENT_VOLUME_CLAIMS, key)
        says = translated(names, f"{host} and {host.name}", original={host: key}.get)
        assert says == f"{key} and {key.name}"


def test_nothing_is_looked_up_for_a_status_without_messages() -> None:
    def known() -> Mapping[str, str]:
        raise AssertionError("there is no text")

    status = {"conditions": [{"type": "Ready"}, {"reason": "x"}], "message": 1}
    assert names_for(SINGLE, known=known).in_messages(status) is status


def test_messages_of_a_status_are_translated_at_any_depth_and_nothing_else() -> None:
    text = "web-x-shop-x-vc is bad"
    own = {"exitCode": 1, "message": text}
    status = {"message": text, "name": text, "parts": [{"waiting": {"lastError": text}, "terminated": own}, text, 1]}
    assert names_for(SINGLE).in_messages(status) == {
        "message": "web is bad",
        "name": text,
        "parts": [{"waiting": {"lastError": "web is bad"}, "terminated": own}, text, 1],
    }


# -- bounds ------------------------------------------------------------------------------------------------


def test_long_message_is_cut_after_a_word_before_it_is_searched() -> None:
    says = translated(SINGLE, 2000 * "web-x-shop-x-vc ")
    assert set(says.split()) == {"web", "web…"}, "no half of a host name"
    assert len(says) <= LONGEST_MESSAGE
    assert translated(SINGLE, "x" * 10_000_000) == "x" * LONGEST_MESSAGE + "…"


@pytest.mark.parametrize("separator", [" ", "/", " home/", ".home.svc "])
def test_many_different_words_are_not_looked_up(separator: str) -> None:
    asked: list[Key] = []

    def original(host_key: Key) -> None:
        asked.append(host_key)

    def words(row: int) -> str:
        return separator.join(f"w-{row}-{number}" for number in range(200))

    status = [{"message": words(row)} for row in range(100)]
    [first, *_, last] = names_for(SINGLE, original=original).in_messages(status)
    assert len(asked) <= 3 * MOST_WORDS
    assert (first["message"] != "…", last) == (True, {"message": "…"})


@pytest.mark.parametrize(
    ("names", "text", "says"),
    [
        (SINGLE, "web-x-shop-x-vc", "web"),
        (SINGLE, "home/web-x-shop-x-vc", "shop/web"),
        (SINGLE, "hook-x-shop-x-vc.home.svc", "hook.shop.svc"),
        (APART, "shop-x-vc-x-home/web", "shop/web"),
    ],
)
def test_word_of_many_messages_is_looked_up_once(names: NameTranslator, text: str, says: str) -> None:
    numbers = range(2 * MOST_WORDS)
    found = names_for(names).in_messages([{"message": f"{number}: {text}"} for number in numbers])
    assert found == [{"message": f"{number}: {says}"} for number in numbers]


def test_further_text_of_an_object_is_left_out() -> None:
    status = [{"message": f"{number} " + "x" * (LONGEST_MESSAGE - 100)} for number in range(200)]
    found = names_for(SINGLE).in_messages(status)
    kept = [each["message"] for each in found if each["message"] != "…"]
    assert 0 < sum(map(len, kept)) <= MOST_TEXT
    assert len(kept) < len(found)


# -- law ---------------------------------------------------------------------------------------------------

LABELS = st.from_regex(r"[a-wyz]([-a-wyz0-9]{0,61}[a-wyz0-9])?", fullmatch=True)
TEXTS = [
    '{kind} "{name}" not found',
    'object "{namespace}"/"{name}" not registered',
    "MountVolume.SetUp failed for {namespace}/{name}: no such volume.",
    '{kind} "{name}" is forbidden: in the namespace "{namespace}"',
    'Get "https://10.0.0.1:443/api/v1/namespaces/{namespace}/{kind}/{name}": EOF',
    "pod {name}_{namespace}(0-1-2)",
    "{name}.{namespace}.svc: no such host",
]


@given(
    LABELS,
    LABELS,
    st.sampled_from([SINGLE, APART, SAME, COMPAT]),
    st.sampled_from([PODS, SECRETS, PERSISTENT_VOLUME_CLAIMS]),
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4),
)
def test_text_has_no_name_of_the_host(
    name: str, namespace: str, names: NameTranslator, resource: Any, forms: list[str]
) -> None:
    """Hashed names are those of copies that the cache has."""
    key = Key(namespace, name)
    host_key = names.to_host(resource, key)
    form = "; ".join(forms)
    text = form.format(kind=resource.plural, name=host_key.name, namespace=host_key.namespace)
    wanted = form.format(kind=resource.plural, name=key.name, namespace=key.namespace)
    assert translated(names, text, namespace=namespace, original={host_key: key}.get) == wanted
