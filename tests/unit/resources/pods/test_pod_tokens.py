"""Tokens of the virtual API server, in a Secret on the host."""

from datetime import timedelta

import pytest

from syncer.api import Key, Obj, ObjectRef, Outcome, Refused, Side, Token, TooLarge
from syncer.resources.kinds import NODES, SERVICE_ACCOUNTS
from syncer.resources.pods.tokens import MOST_TOKENS
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import node, pod, serviceaccount

SECRET = "vc-ns/web.pod-tokens-x-shop-x-vc"
SOURCES = [
    {"configMap": {"name": "kube-root-ca.crt"}},
    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
    {"serviceAccountToken": {"path": "vault", "expirationSeconds": 7200, "audience": "vault"}},
]
MOUNTING = {
    "serviceAccountName": "robot",
    "volumes": [{"name": "empty", "emptyDir": {}}, {"name": "api", "projected": {"sources": SOURCES}}],
}


@pytest.fixture
def given(world: World) -> World:
    mounting = pod("web", spec=MOUNTING, metadata={"labels": {"app": "web"}, "annotations": {"note": "mine"}})
    return world.given(virtual=[mounting, serviceaccount("robot")])


def renewed(world: World) -> bool:
    return any(write.tokens for write in world.decide("pod-tokens", "shop/web").writes)


def change(world: World, part: Obj) -> None:
    world.given(virtual=[merged(world.virtual("Pod", "shop/web") or {}, part)])


def test_token_has_the_lifetime_and_audience_that_the_pod_asks_for(given: World) -> None:
    [write] = given.decide("pod-tokens", "shop/web").writes
    uid = (given.virtual("Pod", "shop/web") or {})["metadata"]["uid"]
    bound = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "uid": uid}}
    assert write.tokens == (
        Token("api.1", "robot", "shop", 3600, (), bound),
        Token("api.2", "robot", "shop", 7200, ("vault",), bound),
    )


def test_tokens_are_in_a_secret_with_our_marks_and_nothing_of_the_tenants(given: World) -> None:
    given.settle("pod-tokens", "shop/web")
    made = given.host("Secret", SECRET) or {}
    assert made["data"].keys() == {"api.1", "api.2"}
    assert made["metadata"]["labels"] == {"vsyncer.dev/cluster": "vc.vc-ns", "vsyncer.dev/namespace": "shop"}
    assert all(key.startswith("vsyncer.dev/") for key in made["metadata"]["annotations"])


def test_tokens_are_renewed_when_a_fifth_of_the_first_ones_life_is_left(given: World) -> None:
    given.settle("pod-tokens", "shop/web")
    decision = given.decide("pod-tokens", "shop/web")
    assert (decision.writes, decision.after) == ((), 2880)
    given.now += timedelta(seconds=2879)
    assert not renewed(given)
    given.now += timedelta(seconds=1)
    assert renewed(given)
    before = given.host("Secret", SECRET) or {}
    sent = given.settle("pod-tokens", "shop/web")
    assert [str(one) for one in sent][-1] == f"patch host secrets {SECRET}"
    after = given.host("Secret", SECRET) or {}
    assert after["metadata"]["annotations"] != before["metadata"]["annotations"]
    assert given.decide("pod-tokens", "shop/web").after == 2880


@pytest.mark.reason("NoServiceAccount")
def test_token_waits_for_its_service_account(world: World) -> None:
    world.given(virtual=[pod("web", spec=MOUNTING)])
    decision = world.decide("pod-tokens", "shop/web")
    assert (decision.writes, decision.outcome) == ((), Outcome.PENDING)
    assert decision.on == (ObjectRef(Side.VIRTUAL, SERVICE_ACCOUNTS, Key("shop", "robot")),)


@pytest.mark.reason("ServiceAccountNotFound")
def test_deleted_service_account_of_a_running_pod_is_reported_when_its_token_ends(given: World) -> None:
    given.settle("pod-tokens", "shop/web")
    given.gone(virtual=[serviceaccount("robot")])
    assert given.decide("pod-tokens", "shop/web").after == 2880
    given.now += timedelta(seconds=2880)
    with pytest.raises(Refused, match="its ServiceAccount robot is not there") as refused:
        given.decide("pod-tokens", "shop/web")
    assert refused.value.reason == "ServiceAccountNotFound"


def test_life_that_was_granted_counts_and_renewal_is_never_a_storm(given: World) -> None:
    given.settle("pod-tokens", "shop/web")
    made = given.host("Secret", SECRET) or {}
    short = {"metadata": {"annotations": {"vsyncer.dev/token-expires": "2026-01-01T12:10:00Z"}}}
    given.given(host=[merged(made, short)])
    assert given.decide("pod-tokens", "shop/web").after == 480
    over = {"metadata": {"annotations": {"vsyncer.dev/token-expires": "2026-01-01T11:00:00Z"}}}
    given.given(host=[merged(made, over)])
    assert given.decide("pod-tokens", "shop/web").after == 60


@pytest.mark.parametrize(
    "damage",
    [
        {"metadata": {"annotations": {"vsyncer.dev/token-expires": None}}},
        {"metadata": {"annotations": {"vsyncer.dev/tokens-asked": "yesterday"}}},
        {"data": {"api.2": None}},
    ],
)
def test_secret_that_was_damaged_is_renewed(given: World, damage: Obj) -> None:
    given.settle("pod-tokens", "shop/web")
    given.given(host=[merged(given.host("Secret", SECRET) or {}, damage)])
    assert renewed(given)


@pytest.mark.parametrize(
    "part",
    [
        {"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z"}},
        {"status": {"phase": "Succeeded"}},
        {"status": {"phase": "Running", "startTime": "2026-01-01T12:00:00Z"}},
        {"spec": {"schedulingGates": [{"name": "a"}]}},
        {"spec": {"volumes": [{"name": "empty", "emptyDir": {}}]}},
    ],
)
def test_pod_that_does_not_run_or_mounts_none_gets_none(given: World, part: Obj) -> None:
    change(given, part)
    assert not renewed(given)


def test_running_pod_that_has_lost_them_gets_them_again(given: World) -> None:
    for syncer, key in (("serviceaccounts", "shop/robot"), ("pod-tokens", "shop/web"), ("pods", "shop/web")):
        given.settle(syncer, key)
    change(given, {"status": {"phase": "Running", "startTime": "2026-01-01T12:00:00Z"}})
    given.gone(host=[given.host("Secret", SECRET) or {}])
    assert renewed(given)


@pytest.mark.reason("PodOver")
def test_tokens_stay_while_the_pod_ends_and_go_when_it_is_gone(given: World) -> None:
    given.settle("pod-tokens", "shop/web")
    change(given, {"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z"}})
    given.now += timedelta(days=1)
    assert given.settle("pod-tokens", "shop/web") == []
    given.gone(virtual=[given.virtual("Pod", "shop/web") or {}])
    assert [str(one) for one in given.settle("pod-tokens", "shop/web")] == [f"delete host secrets {SECRET}"]


@pytest.mark.parametrize("number", [MOST_TOKENS, MOST_TOKENS + 1])
@pytest.mark.parametrize("has_secret", [False, True])
def test_tokens_beyond_a_bound_are_not_asked_for(given: World, number: int, has_secret: bool) -> None:
    if has_secret:
        given.settle("pod-tokens", "shop/web")
    sources = [{"serviceAccountToken": {"path": f"t{each}"}} for each in range(number - 1)]
    volumes = [{"name": name, "projected": {"sources": part}} for name, part in (("a", sources), ("b", sources[:1]))]
    change(given, {"spec": {"volumes": volumes}})
    if number <= MOST_TOKENS:
        [write] = given.decide("pod-tokens", "shop/web").writes
        assert len(write.tokens) == number
        return
    given.sent.clear()
    with pytest.raises(TooLarge, match=r"it mounts 51 tokens of its ServiceAccount, and 50 are accepted") as refused:
        given.settle("pod-tokens", "shop/web")
    assert refused.value.path == "spec.volumes"
    assert given.sent == []


# -- the node that tokens name ---------------------------------------------------------------------

NAMING = {"sync": {"toHost": {"podTokens": {"nameNode": True}}}}


def test_tokens_are_requested_once_more_when_their_node_is_known(given: World) -> None:
    given.configure(NAMING).settle("pod-tokens", "shop/web")
    assert not renewed(given)
    given.given(virtual=[node("n1")])
    change(given, {"spec": {"nodeName": "n1"}})
    assert renewed(given)
    given.settle("pod-tokens", "shop/web")
    decision = given.decide("pod-tokens", "shop/web")
    assert (decision.writes, decision.after) == ((), 2880)
    given.now += timedelta(seconds=2880)
    assert renewed(given), "as the others, a fifth of the life before their end"


@pytest.mark.reason("TokenWithoutNode")
def test_tokens_wait_for_their_node_and_are_renewed_without_it_in_time(given: World) -> None:
    given.configure(NAMING).settle("pod-tokens", "shop/web")
    change(given, {"spec": {"nodeName": "n1"}})
    decision = given.decide("pod-tokens", "shop/web")
    assert (decision.writes, decision.after) == ((), 2880)
    assert decision.on == (ObjectRef(Side.VIRTUAL, NODES, Key("", "n1")),)
    given.now += timedelta(seconds=2880)
    assert renewed(given)


def test_tokens_name_no_node_unless_they_are_to(given: World) -> None:
    given.given(virtual=[node("n1")]).settle("pod-tokens", "shop/web")
    change(given, {"spec": {"nodeName": "n1"}})
    assert not renewed(given)
