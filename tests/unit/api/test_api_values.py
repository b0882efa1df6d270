"""Objects, resources, requests, decisions and errors: the plain values of the API."""

import pytest

from syncer.api import (
    ConfigError,
    Decision,
    Key,
    Outcome,
    Problem,
    Refused,
    Resource,
    Side,
    SyncRequest,
    Verb,
    annotations_of,
    apply,
    bind,
    delete,
    dig,
    is_deleting,
    key_of,
    labels_of,
    reasons,
    retry,
    set_conditions,
    skip,
    uid_of,
    wait,
)

PODS = Resource("v1", "Pod", "pods")
INGRESSES = Resource("networking.k8s.io/v1", "Ingress", "ingresses")
NODES = Resource("v1", "Node", "nodes", namespaced=False)
POD = {"metadata": {"name": "web", "namespace": "shop", "uid": "u-1"}}


@pytest.mark.parametrize("text", ["shop/db", "node-1"])
def test_keys_are_written_as_they_are_read(text: str) -> None:
    assert str(Key.parse(text)) == text


def test_keys_of_objects() -> None:
    assert key_of(POD) == Key("shop", "web")
    assert key_of({"metadata": {"name": "n1"}}) == Key("", "n1")


def test_paths_of_resources() -> None:
    assert PODS.path(Key("shop", "web"), "status") == "/api/v1/namespaces/shop/pods/web/status"
    assert NODES.path(Key("", "n1")) == "/api/v1/nodes/n1"
    assert INGRESSES.collection() == "/apis/networking.k8s.io/v1/ingresses"
    assert INGRESSES.collection("shop") == "/apis/networking.k8s.io/v1/namespaces/shop/ingresses"


def test_groups_and_versions() -> None:
    assert (PODS.group, PODS.version, str(PODS)) == ("", "v1", "pods")
    assert (INGRESSES.group, INGRESSES.version) == ("networking.k8s.io", "v1")
    assert str(INGRESSES) == "ingresses.networking.k8s.io"


def test_equal_resources_and_requests_are_one_key_of_a_mapping() -> None:
    assert {PODS: 1}[Resource("v1", "Pod", "pods")] == 1
    assert Resource("v1", "Pod", "pods", namespaced=False) != PODS
    one, same = (SyncRequest("vc", "pods", Key("shop", "web")) for _ in range(2))
    assert len({one, same, SyncRequest("vc", "pods", Key("shop", "web"), Key("vc-ns", "x"))}) == 2


def test_side_has_another_side() -> None:
    assert [side.other for side in Side] == list(reversed(Side))


def test_metadata_fields_may_be_absent_or_null() -> None:
    for metadata in ({}, {"labels": None, "annotations": None}):
        obj = {"metadata": metadata}
        assert labels_of(obj) == annotations_of(obj) == {}
        assert uid_of(obj) == ""
        assert not is_deleting(obj)
    assert is_deleting({"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z"}})


def test_digging_ends_where_the_path_ends() -> None:
    pod = {"spec": {"nodeName": "n1", "hostname": None}}
    assert dig(pod, "spec.nodeName") == "n1"
    assert dig(pod, "spec.nodeName.deeper", "no") == "no"
    assert dig(pod, "status.phase", "Pending") == "Pending"
    assert dig(pod, "spec.hostname", "default") is None


def test_apply_writes_the_host_first() -> None:
    host, virtual = apply(virtual=POD, host=POD, reason="because").writes
    assert (host.side, virtual.side) == (Side.HOST, Side.VIRTUAL)
    assert host.verb is Verb.APPLY
    assert apply().writes == ()


def test_other_decisions() -> None:
    [write] = delete(virtual=POD, reason="over", grace=0).writes
    assert (write.side, write.verb, write.grace) == (Side.VIRTUAL, Verb.DELETE, 0)
    [write] = bind(virtual=POD, node="n1").writes
    assert (write.side, write.verb, write.node) == (Side.VIRTUAL, Verb.BIND, "n1")
    [write] = set_conditions(host=POD).writes
    assert (write.side, write.verb) == (Side.HOST, Verb.CONDITIONS)
    assert skip("no").outcome is Outcome.SKIPPED
    assert (wait("for it").outcome, wait("for it").after) == (Outcome.PENDING, None)
    assert (retry(3, "soon").outcome, retry(3, "soon").after) == (Outcome.PENDING, 3)


def test_decision_followed_by_another() -> None:
    both = apply(host=POD, reason="one").look_again(30).then(retry(5, "two"))
    assert (both.reason, both.after, both.outcome) == ("two", 5, Outcome.PENDING)
    assert len(both.then(apply(virtual=POD)).writes) == 2
    assert apply(host=POD).then(skip("nothing more")).outcome is Outcome.IN_STEP
    assert Decision().then(Decision()).after is None
    assert retry(5, "two").then(apply(host=POD).look_again(30)).after == 5
    assert Decision(after=5.0).then(Decision()).after == 5
    assert Decision().then(Decision(after=5.0)).after == 5


@pytest.mark.parametrize(
    ("one", "two", "both"), [("one", "two", "one; two"), ("one", "", "one"), ("", "two", "two"), ("", "", "")]
)
def test_reasons_of_two_decisions_are_joined(one: str, two: str, both: str) -> None:
    assert apply(host=POD, reason=one).then(apply(virtual=POD, reason=two)).reason == both


def test_reason_of_a_decision_that_skips_is_a_text_where_another_one_writes() -> None:
    skipped = skip(reasons.NO_OBJECT())
    found = apply(host=POD).then(skipped).reason
    assert (type(found), found) == (str, skipped.reason)


def test_problem_names_path_fault_and_remedy() -> None:
    problem = Problem("no such option.", path="sync.x", line=3, file="a.yaml", hint="Did you mean y?")
    assert str(problem) == "a.yaml:3: sync.x: no such option. Did you mean y?"
    assert str(Problem("is empty.")) == "is empty."
    assert str(ConfigError(problem, Problem("is empty."))) == f"{problem}\nis empty."


def test_refusal_names_the_field() -> None:
    assert str(Refused("is too long", path="metadata.name")) == "metadata.name: is too long"
    assert str(Refused("no")) == "no"


def test_long_refusal_is_cut_after_a_word() -> None:
    refused = Refused(f"names a {'x' * 1_000_000}, which is no kind", path="spec.ref")
    assert (refused.why, str(refused)) == ("names a…", "spec.ref: names a…")
