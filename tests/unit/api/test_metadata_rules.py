"""The labels and annotations that are copied, by their keys."""

import copy
import re
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from syncer.api import KeyRules, Marks, MetadataRules
from syncer.api.metadata_defaults import COMING_UP, GOING_DOWN
from syncer.api.metadata_rules import KEY_LIMIT, LAST_APPLIED, MetadataFilter, matcher, without_keys

KEYS = ("app", "example.org/team", "example.org/size", "helm.sh/chart", "helm.sh/Chart")
HELM: dict[str, Any] = {"deny": ["helm.sh/*"]}


def crossing(kind: dict[str, Any], section: dict[str, Any], host_owned: tuple[str, ...] = ()) -> set[str]:
    """Return the keys of labels that cross, with these rules for labels."""
    rules = [MetadataRules(labels=KeyRules.model_validate(each)) for each in (kind, section)]
    found = MetadataFilter(rules[0], rules[1], host_owned).kept("labels", dict.fromkeys(KEYS, "x"))
    assert set(found.values()) <= {"x"}
    return set(found)


@pytest.mark.parametrize(
    ("kind", "section", "left"),
    [
        ({}, {}, set()),
        ({}, HELM, {"helm.sh/chart", "helm.sh/Chart"}),
        ({}, {"deny": ["helm.sh/chart"]}, {"helm.sh/chart"}),
        ({}, {"deny": ["?pp"]}, {"app"}),
        ({}, {"deny": ["ap"]}, set()),
        ({}, {"deny": ["helm?sh*"]}, {"helm.sh/chart", "helm.sh/Chart"}),
        ({}, {"allow": ["example.org/*"]}, {"app", "helm.sh/chart", "helm.sh/Chart"}),
        ({}, {"allow": ["*"], "deny": ["*/*"]}, set(KEYS) - {"app"}),
        ({}, {"allow": ["app"], "deny": ["app"]}, set(KEYS)),
        (HELM, {}, {"helm.sh/chart", "helm.sh/Chart"}),
        (HELM, {"deny": ["app"]}, {"app", "helm.sh/chart", "helm.sh/Chart"}),
        (HELM, {"allow": ["*"]}, {"helm.sh/chart", "helm.sh/Chart"}),
        (HELM, {"allow": ["*", "helm.sh/chart"]}, {"helm.sh/Chart"}),
        (HELM, {"allow": ["*", "helm.sh/char?"]}, {"helm.sh/Chart"}),
        (HELM, {"allow": ["*", "helm.sh/c*"]}, {"helm.sh/Chart"}),
        (HELM, {"allow": ["*", "helm.sh/*"]}, {"helm.sh/chart", "helm.sh/Chart"}),
        (HELM, {"allow": ["*", "helm.sh/?hart"]}, {"helm.sh/chart", "helm.sh/Chart"}),
        (HELM, {"allow": ["*", "*/chart"]}, {"helm.sh/chart", "helm.sh/Chart"}),
        (HELM, {"allow": ["helm.sh/chart"]}, set(KEYS) - {"helm.sh/chart"}),
        (HELM, {"allow": ["helm.sh/chart"], "deny": ["*chart"]}, set(KEYS)),
        ({"allow": ["app"]}, {}, set(KEYS) - {"app"}),
        ({"allow": ["app"]}, {"allow": ["*"]}, set(KEYS) - {"app"}),
        ({"allow": ["app"]}, {"allow": ["*", "helm.sh/chart"]}, set(KEYS) - {"app", "helm.sh/chart"}),
        ({"allow": ["app"]}, {"allow": ["*", "example.org/*"]}, {"helm.sh/chart", "helm.sh/Chart"}),
        ({"allow": ["app"]}, {"allow": ["example.org/*"]}, {"app", "helm.sh/chart", "helm.sh/Chart"}),
        ({"allow": ["app"]}, {"allow": ["*.sh/*", "?????????????"]}, set(KEYS)),
        (
            {"allow": ["app"]},
            {"allow": ["*", "example.org/*"], "deny": ["*/size"]},
            set(KEYS) - {"app", "example.org/team"},
        ),
    ],
)
def test_keys_that_are_denied_stay_behind(kind: dict[str, Any], section: dict[str, Any], left: set[str]) -> None:
    assert crossing(kind, section) == set(KEYS) - left


def test_key_that_the_host_owns_never_goes_down() -> None:
    owned = ("/metadata/labels/example.org~1team", "/metadata/annotations/app", "status")
    assert crossing({}, {"allow": ["*", "example.org/team"]}, owned) == set(KEYS) - {"example.org/team"}


def test_labels_and_annotations_have_rules_of_their_own() -> None:
    rules = MetadataFilter(MetadataRules(), MetadataRules(annotations=KeyRules(deny=("a",))))
    assert rules.crosses("labels", "a")
    assert not rules.crosses("annotations", "a")


def test_reserved_key_never_crosses_whatever_is_allowed() -> None:
    keys = ["my.dev/cluster", "public", LAST_APPLIED, "kubernetes.io/metadata.name", "my.device/x"]
    everything = MetadataRules(annotations=KeyRules(allow=("*", *keys)))
    rules = MetadataFilter(MetadataRules(), everything, prefix="my.dev", reserved=["public"])
    assert rules.kept("annotations", dict.fromkeys(keys, "x")) == {"my.device/x": "x"}
    assert rules.denied("annotations", keys) == [], "nobody is told of them"


def test_denied_keys_are_named_for_the_owner() -> None:
    rules = MetadataFilter(MetadataRules(), MetadataRules(labels=KeyRules(deny=("a*",))))
    assert rules.denied("labels", ["ab", "b", "a"]) == ["ab", "a"]


EVERY = MetadataRules(annotations=KeyRules(deny=("helm.sh/*",)))


@pytest.mark.parametrize(
    ("kind", "section", "crosses"),
    [
        (KeyRules(), KeyRules(), False),
        (KeyRules(), KeyRules(allow=("*",)), False),
        (KeyRules(), KeyRules(allow=("helm.sh/c*",)), True),
        (KeyRules(allow=("helm.sh/chart",)), KeyRules(), True),
        (KeyRules(allow=("helm.sh/chart",)), KeyRules(allow=("app",)), False),
        (KeyRules(allow=("helm.sh/chart",)), KeyRules(deny=("helm.sh/chart",)), False),
        (KeyRules(allow=("helm.sh/chart",), deny=("*chart",)), KeyRules(), False),
        (KeyRules(allow=("app",)), KeyRules(allow=("helm.sh/*",)), False),
    ],
)
def test_key_denied_for_every_kind_crosses_where_a_list_has_it(
    kind: KeyRules, section: KeyRules, crosses: bool
) -> None:
    rules = MetadataFilter(MetadataRules(annotations=kind), MetadataRules(annotations=section), every=EVERY)
    assert rules.crosses("annotations", "helm.sh/chart") is crosses


def test_filter_with_other_annotation_rules_keeps_the_labels_and_the_section() -> None:
    section = MetadataRules(labels=KeyRules(deny=("a",)), annotations=KeyRules(allow=("*", "b")))
    rules = MetadataFilter(MetadataRules(), section)
    other = rules.with_annotation_rules(KeyRules(allow=("c",)))
    keys = dict.fromkeys("abcd", "x")
    assert set(other.kept("labels", keys)) == {"b", "c", "d"}
    assert set(other.kept("annotations", keys)) == {"b", "c"}
    assert set(rules.kept("annotations", keys)) == set("abcd"), "it is another filter"
    assert rules.with_annotation_rules(KeyRules(allow=("c",))) is other, "it is compiled once"


def test_answers_for_keys_are_remembered_within_bounds() -> None:
    rules = MetadataFilter(MetadataRules(), MetadataRules())
    for number in range(20_000):
        rules.crosses("labels", f"k{number}")
    rules.crosses("labels", "x" * 1_000_000)
    known = rules._parts["labels"]
    assert "k19999" in known
    assert len(known) <= 2048
    assert max(map(len, known)) <= KEY_LIMIT


_GLOBS = st.lists(st.text("ab/*?", min_size=1, max_size=7), max_size=3).map(tuple)


@given(_GLOBS, st.text("ab/\n", max_size=8))
def test_patterns_match_as_those_of_file_names(globs: tuple[str, ...], key: str) -> None:
    assert matcher(globs)(key) is any(fnmatchcase(key, glob) for glob in globs)


@pytest.mark.parametrize("rules", [GOING_DOWN, COMING_UP])
def test_patterns_of_every_kind_need_no_regular_expression(
    rules: MetadataRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Theirs takes a second for the labels that a single object can have."""
    monkeypatch.setattr(re, "compile", None)
    for deny in (rules.labels.deny, rules.annotations.deny):
        assert not matcher.__wrapped__(deny)("ingress/" * 50)


ODD: list[Any] = [None, [], "x", 1, {}, {"labels": "x"}, {"labels": ["vsyncer.dev/a"]}, {"annotations": None}]
ODD += [{"matchLabels": {"kubernetes.io/metadata.name": "a"}}, {"vsyncer.dev/a": None}, "vsyncer.dev/a"]


@pytest.mark.parametrize("value", ODD)
def test_value_without_reserved_keys_is_left_as_it_is(value: Any) -> None:
    assert without_keys(value, is_reserved, Marks().is_mark) is value


RESERVED = MetadataFilter(MetadataRules(), MetadataRules(), reserved=["public"])


def is_reserved(_: str, key: str) -> bool:
    return RESERVED.is_reserved(key)


def test_reserved_keys_are_taken_out_of_templates_at_any_depth() -> None:
    forged = {"vsyncer.dev/cluster": "vc", "public": "true"}
    deep = {"metadata": {"labels": {**forged, "app": "web"}, "annotations": dict(forged)}}
    spec = {"a": 1, "items": [1, {"template": deep}, [{"secretTemplate": {"labels": {"nested": {"labels": forged}}}}]]}
    before = copy.deepcopy(spec)
    assert without_keys(spec, is_reserved, Marks().is_mark) == {
        "a": 1,
        "items": [
            1,
            {"template": {"metadata": {"labels": {"app": "web"}, "annotations": {}}}},
            [{"secretTemplate": {"labels": {"nested": {"labels": {}}}}}],
        ],
    }
    assert spec == before


@pytest.mark.parametrize("glob", ["", "a b", "[ab]", "a,b", "a!"])
def test_pattern_that_no_key_matches_is_refused(glob: str) -> None:
    with pytest.raises(ValidationError, match=r"expected the key of a label or annotation, such as example.org/team"):
        KeyRules.model_validate({"deny": [glob]})


#: As the documentation of each of these programs has them.
ACTED_ON = (
    "cdi.k8s.io/vendor.com_device",
    "cpu-quota.crio.io",
    "run.oci.handler",
    "network.nri.containerd.io/x",
    "scheduling.volcano.sh/queue-name",
    "scheduling.k8s.io/group-name",
    "koordinator.sh/qosClass",
    "quota.scheduling.koordinator.sh/name",
    "kai.scheduler/queue",
    "descheduler.kubernetes.io/evict",
    "kube-router.io/service.advertise.loadbalancer",
    "beta.cloud.google.com/backend-config",
    "openservicemesh.io/sidecar-injection",
    "secrets.doppler.com/reload",
    "sigs.k8s.io/multicluster-runtime-kubeconfig",
    "cluster.x-k8s.io/cluster-name",
    "cluster.open-cluster-management.io/clusterset",
    "image-policy.k8s.io/break-glass",
    "alpha.image-policy.k8s.io/break-glass",
    "admission.stackrox.io/break-glass",
    "io.kubernetes.pod.namespace",
    "ipam.antrea.io/ippools",
    "ovn.kubernetes.io/ip_address",
    "net1.default.ovn.kubernetes.io/logical_switch",
    "microsoft.containerinstance.virtualnode.identity",
    "service.antrea.io/external-ip-pool",
    "multicluster.kubernetes.io/service-imported-from",
)


@pytest.mark.parametrize("key", ACTED_ON)
def test_key_that_a_program_of_the_host_acts_on_does_not_go_down(key: str) -> None:
    down = MetadataFilter(GOING_DOWN, MetadataRules())
    assert not down.crosses("labels", key)
    assert not down.crosses("annotations", key)
