"""References by name, by selector and by owner; who is notified, and the answer while they are unknown."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncer.api import Config, Key, Mirror, Obj, Refers, Resource, Selector, Side, Source, selectors
from syncer.engine.stores import fan_out
from syncer.engine.stores.fan_out import FanOut
from syncer.engine.stores.informers import Informers
from syncer.engine.stores.references import References
from syncer.resources.kinds import CONFIG_MAPS, SECRETS
from syncer.testing.objects import secret

CLAIMS = Resource("example.org/v1", "Claim", "claims")
DB = Key("shop", "db")


class Claims(Mirror[Config], Refers):
    """Names a Secret, selects ConfigMaps, owns Secrets."""

    name = "claims"
    resource = CLAIMS
    down = ("spec",)
    refers_to = (SECRETS, CONFIG_MAPS)
    owns = (SECRETS,)
    follows = True

    def refers(self, virtual: Obj) -> Iterable[tuple[Resource, Key]]:
        return [(SECRETS, Key("shop", name)) for name in virtual.get("names", ())]

    def selects(self, virtual: Obj) -> Iterable[tuple[Resource, Obj]]:
        return [(CONFIG_MAPS, virtual["selector"])] if "selector" in virtual else []


#: Claims that are labelled so aren't synced.
SELECTED = Selector.model_validate({"matchExpressions": [{"key": "out", "operator": "DoesNotExist"}]})


class Known:
    """The references of claims, and who was told what."""

    def __init__(self, *, claims: bool = True) -> None:
        self.informers, self.version = Informers(clock=lambda: 0.0), 0
        for resource in (CLAIMS, SECRETS, CONFIG_MAPS):
            self.informers.want(Source(Side.VIRTUAL, resource), owner="test").synced = True
        self.fan_out = FanOut()
        self.woken: list[tuple[str, str]] = []
        self.asked: list[str] = []
        self.references = References(
            self.informers,
            self.fan_out,
            used_or_not=lambda resource, keys: self.woken.extend((resource.plural, key.name) for key in keys),
            ask=lambda syncer, key: self.asked.append(key.name),
        )
        if claims:
            self.begin()

    def begin(self) -> None:
        claims = Claims()
        self.references.add(claims, claims, SELECTED)
        self.references.tie()

    def put(self, resource: Resource, name: str, *, namespace: str = "shop", **parts: Any) -> Obj:
        self.version += 1
        metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": str(self.version)}
        obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **parts}
        obj["metadata"] |= parts.get("metadata", {}) | metadata
        self.informers.store(Side.VIRTUAL, resource).seen_live(obj)
        return obj

    def notified(self) -> set[tuple[str, str]]:
        notified, self.woken[:] = set(self.woken), []
        return notified


@pytest.fixture
def known() -> Known:
    return Known()


def test_named_object_is_used_while_it_is_named(known: Known) -> None:
    assert known.references.of(SECRETS, secret("db")) is False
    known.put(CLAIMS, "c", names=["db", "other"])
    assert known.notified() == {("secrets", "db"), ("secrets", "other")}
    assert known.references.of(SECRETS, secret("db")) is True
    known.put(CLAIMS, "c", names=["other"])
    assert known.notified() == {("secrets", "db")}
    assert known.references.of(SECRETS, secret("db")) is False


def test_object_that_two_name_is_used_until_both_have_ceased(known: Known) -> None:
    known.put(CLAIMS, "c", names=["db"])
    known.put(CLAIMS, "d", names=["db"])
    known.informers.store(Side.VIRTUAL, CLAIMS).gone_live(Key("shop", "c"))
    assert known.references.of(SECRETS, secret("db")) is True
    known.informers.store(Side.VIRTUAL, CLAIMS).gone_live(Key("shop", "d"))
    assert known.references.of(SECRETS, secret("db")) is False


def test_object_is_asked_about_when_its_first_user_comes_and_when_its_last_one_goes(known: Known) -> None:
    known.put(CLAIMS, "c", names=["db"])
    assert known.notified() == {("secrets", "db")}
    known.put(CLAIMS, "d", names=["db", "other"])
    assert known.notified() == {("secrets", "other")}
    known.informers.store(Side.VIRTUAL, CLAIMS).gone_live(Key("shop", "c"))
    assert known.notified() == set()
    known.put(CLAIMS, "d", names=["other"])
    assert known.notified() == {("secrets", "db")}


def test_selected_object_is_used_in_the_namespace_of_its_selector(known: Known) -> None:
    known.put(CONFIG_MAPS, "m", metadata={"labels": {"app": "web"}})
    known.put(CLAIMS, "c", selector={"matchLabels": {"app": "web"}})
    assert known.notified() == {("configmaps", "m")}
    chosen = {"metadata": {"name": "m", "namespace": "shop", "labels": {"app": "web"}}}
    assert known.references.of(CONFIG_MAPS, chosen) is True
    assert known.references.of(CONFIG_MAPS, {"metadata": {**chosen["metadata"], "namespace": "other"}}) is False
    assert known.references.of(CONFIG_MAPS, {"metadata": {**chosen["metadata"], "labels": {}}}) is False


def test_selectors_are_looked_up_by_the_labels_that_they_want(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Obj] = []

    def matches(selector: Obj, labels: Mapping[str, str], matches: Any = selectors.matches) -> bool:
        tried.append(selector)
        return bool(matches(selector, labels))

    monkeypatch.setattr(selectors, "matches", matches)
    in_use = {"key": "off", "operator": "DoesNotExist"}
    for number in range(50):
        wanted = {"matchLabels": {"app": "web", "of": f"c{number}"}, "matchExpressions": [in_use]}
        known.put(CLAIMS, f"c{number}", namespace=f"n{number % 2}", selector=wanted)
    known.put(CLAIMS, "all", namespace="n1", selector={"matchLabels": {"app": "api"}})
    tried.clear()
    config = known.put(CONFIG_MAPS, "config", namespace="n1", metadata={"labels": {"app": "web", "of": "c7"}})
    off = known.put(CONFIG_MAPS, "off", namespace="n1", metadata={"labels": {"app": "web", "of": "c7", "off": ""}})
    other = known.put(CONFIG_MAPS, "config", namespace="n0", metadata={"labels": {"app": "web", "of": "c7"}})
    assert [known.references.of(CONFIG_MAPS, obj) for obj in (config, off, other)] == [True, False, False]
    assert tried == [{"matchExpressions": [in_use]}] * 2


def test_selector_wakes_the_objects_with_the_labels_that_it_wants(known: Known) -> None:
    for number in range(50):
        known.put(CONFIG_MAPS, f"m{number}", metadata={"labels": {"app": "web", "of": f"c{number}"}})
    crowded = {"app": "web", "of": "c7", **{f"label-{number}": "" for number in range(40)}}
    known.put(CONFIG_MAPS, "crowded", metadata={"labels": crowded})
    known.put(CLAIMS, "c7", selector={"matchLabels": {"app": "web", "of": "c7"}})
    assert known.notified() == {("configmaps", "m7"), ("configmaps", "crowded")}
    one = {"matchExpressions": [{"key": "of", "operator": "In", "values": ["c8"]}]}
    known.put(CLAIMS, "c7", selector=one)
    assert known.notified() == {("configmaps", name) for name in ("m7", "m8", "crowded")}
    known.put(CLAIMS, "c7", selector={"matchExpressions": [{"key": "of", "operator": "Exists"}]})
    assert len(known.notified()) == 51


def test_selector_wakes_objects_with_unindexed_labels() -> None:
    known = Known(claims=False)
    for number in range(150):
        known.put(CONFIG_MAPS, f"m{number}", metadata={"labels": {"app": "web"}})
    known.begin()
    known.put(CLAIMS, "c", selector={"matchLabels": {"app": "web"}})
    assert len(known.notified()) == 150


def test_selector_wakes_only_objects_with_all_labels_that_it_wants(known: Known) -> None:
    known.put(CONFIG_MAPS, "both", metadata={"labels": {"app": "web", "of": "c7"}})
    known.put(CONFIG_MAPS, "one", metadata={"labels": {"app": "web", "of": "c8"}})
    known.put(CONFIG_MAPS, "other", metadata={"labels": {"app": "api", "of": "c7"}})
    known.put(CLAIMS, "c7", selector={"matchLabels": {"app": "web", "of": "c7"}})
    assert known.notified() == {("configmaps", "both")}


def test_owner_wakes_objects_with_unindexed_owners() -> None:
    known = Known(claims=False)
    for number in range(150):
        known.put(SECRETS, f"own{number}", metadata={"ownerReferences": [{"uid": "uid-c"}]})
    known.begin()
    known.put(CLAIMS, "c")
    assert len(known.notified()) == 150


_LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"))
_EXPRESSIONS = st.builds(
    lambda key, operator, values: {"key": key, "operator": operator, "values": values if "In" in operator else []},
    st.sampled_from("abc"),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Unknown"]),
    st.lists(st.sampled_from("xy"), min_size=1, max_size=2, unique=True),
)
_SELECTORS = st.fixed_dictionaries(
    {}, optional={"matchLabels": _LABELS, "matchExpressions": st.lists(_EXPRESSIONS, max_size=3)}
)


@given(
    changes=st.lists(st.tuples(st.sampled_from(["c", "d", "e"]), st.none() | _SELECTORS), max_size=6),
    objects=st.lists(_LABELS, min_size=1, max_size=4),
)
def test_objects_found_and_woken_are_those_of_the_selectors(changes: list[Any], objects: list[Any]) -> None:
    known = Known()
    living: dict[str, Obj] = {}
    maps = [known.put(CONFIG_MAPS, f"m{at}", metadata={"labels": labels}) for at, labels in enumerate(objects)]
    for name, selector in changes:
        before = [any(selectors.matches(each, labels) for each in living.values()) for labels in objects]
        living = {**living, name: selector} if selector is not None else {k: v for k, v in living.items() if k != name}
        known.put(CLAIMS, name, **({"selector": selector} if selector is not None else {}))
        found = [any(selectors.matches(each, labels) for each in living.values()) for labels in objects]
        assert [known.references.of(CONFIG_MAPS, obj) for obj in maps] == found
        differ = [at for at, (was, now) in enumerate(zip(before, found, strict=True)) if was != now]
        assert {("configmaps", f"m{at}") for at in differ} <= known.notified()


def test_owned_object_is_used_while_its_owner_exists(known: Known) -> None:
    owned = known.put(SECRETS, "own", metadata={"ownerReferences": [{"uid": "uid-c"}]})
    assert known.references.of(SECRETS, owned) is False
    known.put(CLAIMS, "c")
    assert known.notified() == {("secrets", "own")}
    assert known.references.of(SECRETS, owned) is True
    known.informers.store(Side.VIRTUAL, CLAIMS).gone_live(Key("shop", "c"))
    assert known.notified() == {("secrets", "own")}
    assert known.references.of(SECRETS, owned) is False


def test_referrer_is_reconciled_when_its_target_changes(known: Known) -> None:
    known.put(CLAIMS, "c", names=["db"])
    known.put(SECRETS, "db")
    known.put(SECRETS, "other")
    assert known.asked == ["c"]


def test_target_that_many_name_has_them_reconciled_once_and_in_steps(known: Known) -> None:
    for number in range(300):
        known.put(CLAIMS, f"c{number}", names=["db"])

    async def scene() -> int:
        telling = asyncio.create_task(known.fan_out.run())
        await asyncio.sleep(0)
        for _ in range(50):
            known.put(SECRETS, "db")
        at_once = len(known.asked)
        while known.fan_out:  # noqa: ASYNC110 — nothing else says so
            await asyncio.sleep(0)
        telling.cancel()
        return at_once

    assert asyncio.run(scene()) == 0
    assert sorted(known.asked) == sorted(f"c{number}" for number in range(300))


def test_target_of_a_referrer_that_has_left_asks_nothing(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[object] = []
    monkeypatch.setattr(fan_out.log, "exception", lambda *message, **fields: raised.append(message))
    for number in range(300):
        known.put(CLAIMS, f"c{number}", names=["db"])

    async def scene() -> None:
        telling = asyncio.create_task(known.fan_out.run())
        await asyncio.sleep(0)
        known.put(SECRETS, "db")
        known.references.remove("claims")
        known.informers.leave("claims")
        while known.fan_out:  # noqa: ASYNC110 — nothing else says so
            await asyncio.sleep(0)
        telling.cancel()

    asyncio.run(scene())
    assert (known.asked, raised) == ([], [])


def test_selector_of_a_second_object_wakes_nothing(known: Known) -> None:
    known.put(CONFIG_MAPS, "m", metadata={"labels": {"app": "web"}})
    known.put(CLAIMS, "c", selector={"matchLabels": {"app": "web"}})
    known.notified()
    known.put(CLAIMS, "d", selector={"matchLabels": {"app": "web"}})
    assert known.notified() == set()


def test_object_is_not_unused_while_referrers_are_unknown(known: Known) -> None:
    known.informers.store(Side.VIRTUAL, CLAIMS).synced = False
    assert known.references.of(SECRETS, secret("db")) is None
    known.put(CLAIMS, "c", names=["db"])
    assert known.references.of(SECRETS, secret("db")) is True


def test_syncer_that_has_left_refers_to_nothing(known: Known) -> None:
    known.put(CLAIMS, "c", names=["db"])
    known.references.remove("claims")
    known.informers.leave("claims")
    assert known.references.of(SECRETS, secret("db")) is False
    known.put(SECRETS, "db")
    assert known.asked == []


@pytest.mark.parametrize(
    "parts", [{"names": ["db"]}, {"selector": {"matchLabels": {}}}, {}], ids=["names", "selects", "owns"]
)
def test_unsynced_object_uses_nothing(known: Known, parts: dict[str, Any]) -> None:
    for resource in (SECRETS, CONFIG_MAPS):
        known.put(resource, "db", metadata={"ownerReferences": [{"uid": "uid-c"}]})
    known.put(CLAIMS, "c", metadata={"labels": {"out": "1"}}, **parts)
    assert known.notified() == set()
    known.put(CLAIMS, "c", **parts)
    assert known.notified() != set()
    known.put(CLAIMS, "c", metadata={"labels": {"out": "1"}}, **parts)
    assert known.notified() != set()
    owned = {"metadata": {"name": "db", "namespace": "shop", "ownerReferences": [{"uid": "uid-c"}]}}
    assert known.references.of(SECRETS, owned) is False
    assert known.references.of(CONFIG_MAPS, owned) is False
