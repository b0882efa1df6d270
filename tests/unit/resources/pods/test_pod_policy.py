"""The operator's policy for Pods: refusals, and fields that each Pod gets."""

from typing import Any

import pytest

from syncer.api import Obj, Refused, Side, TooLarge
from syncer.names import Unchanged
from syncer.resources.pods.tolerations import MOST_TOLERATIONS, left_out
from syncer.testing import World
from syncer.testing.objects import pod, serviceaccount


def decided(spec: Obj, **options: Any) -> Obj:
    """Return the spec of the host pod."""
    config = {"sync": {"toHost": {"pods": options}}, "networking": {"dns": {"service": ""}}}
    world = World(config=config).given(virtual=[pod("web", spec=spec), serviceaccount("default")])
    world.settle("serviceaccounts", "shop/default")
    [write] = world.decide("pods", "shop/web").writes
    found: Obj = write.obj["spec"]
    return found


def volume(**source: Any) -> Obj:
    return {"volumes": [{"name": "v", **source}]}


PLAIN = ("configMap", "downwardAPI", "emptyDir", "image", "projected", "secret")


@pytest.mark.parametrize("kind", PLAIN)
def test_volume_of_a_plain_type_goes_to_the_host(kind: str) -> None:
    assert kind in decided(volume(**{kind: {}}))["volumes"][0]


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        (volume(csi={"driver": "secrets-store.csi.k8s.io"}), "csi"),
        (volume(glusterfs={"endpoints": "hosts-own"}), "glusterfs"),
        (volume(nfs={"server": "10.0.0.1"}), "nfs"),
        (volume(ofTheFuture={}), "ofTheFuture"),
        (volume(projected={"sources": [{"podCertificate": {}}]}), "projected.podCertificate"),
        (
            volume(projected={"sources": [{"secret": {"name": "a"}}, {"clusterTrustBundle": {}}]}),
            "projected.clusterTrustBundle",
        ),
        (volume(projected={"sources": [{"ofTheFuture": {}}]}), "projected.ofTheFuture"),
    ],
)
def test_volume_of_another_type_is_refused_unless_it_is_allowed(spec: Obj, kind: str) -> None:
    with pytest.raises(Refused, match=f"^spec.volumes: these types of volumes are not allowed here: {kind}$"):
        decided(spec)
    with pytest.raises(Refused):
        decided(spec, allowVolumes=[kind[:1]])
    assert decided(spec, allowVolumes=[kind])["volumes"]


def test_servers_of_a_glusterfs_volume_are_never_the_hosts_own() -> None:
    volumes = volume(glusterfs={"endpoints": "servers", "path": "data"})
    [found] = decided(volumes, allowVolumes=["glusterfs"])["volumes"]
    assert found["glusterfs"] == {"endpoints": "servers-x-shop-x-vc", "path": "data"}


def test_glusterfs_volume_is_refused_where_names_are_the_same_on_the_host() -> None:
    options = {"pods": {"allowVolumes": ["glusterfs"]}, "serviceAccounts": {"enabled": False}}
    config = {"sync": {"toHost": options}, "networking": {"dns": {"service": ""}}}
    world = World(config=config, translator=Unchanged)
    world.given(virtual=[pod("web", spec=volume(glusterfs={"endpoints": "servers"}))])
    with pytest.raises(Refused, match="no Endpoints is synced: the host's own would be meant"):
        world.decide("pods", "shop/web")


@pytest.mark.parametrize(("minor", "lifted"), [(36, True), (35, True), (34, False), (0, False)])
def test_pod_with_users_of_its_own_may_be_root_in_it_only_where_the_host_keeps_them_apart(
    world: World, minor: int, lifted: bool
) -> None:
    """An older host may drop `hostUsers`, and run the Pod as root of the node."""
    world.configure({"sync": {"toHost": {"pods": {"podSecurity": "baseline"}}}})
    container = {"name": "main", "image": "i", "securityContext": {"procMount": "Unmasked"}}
    world.minor_versions[Side.HOST] = minor
    world.given(virtual=[pod("web", spec={"hostUsers": False, "containers": [container]}), serviceaccount("default")])
    world.settle("serviceaccounts", "shop/default")
    if lifted:
        [write] = world.decide("pods", "shop/web").writes
        assert write.obj["spec"]["hostUsers"] is False
    else:
        with pytest.raises(Refused, match="container main has the procMount Unmasked"):
            world.decide("pods", "shop/web")


def test_node_name_of_the_tenant_is_refused_unless_it_is_allowed() -> None:
    with pytest.raises(Refused, match=r"^spec.nodeName: the host's scheduler chooses the node"):
        decided({"nodeName": "control-plane-1"})
    assert decided({"nodeName": "n1"}, allowNodeName=True)["nodeName"] == "n1"


def test_pod_security_level_is_baseline_by_default() -> None:
    root = {"hostPID": True, "hostIPC": True, "hostNetwork": True}
    with pytest.raises(Refused, match=r"level baseline, which holds here: spec.hostNetwork is true; spec.hostPID is"):
        decided(root)
    assert decided(root, podSecurity="privileged")["hostPID"]
    with pytest.raises(Refused, match="level restricted, which holds here: container "):
        decided({}, podSecurity="restricted")


def test_message_about_many_faults_is_short() -> None:
    containers = [{"name": f"c{number}", "securityContext": {"privileged": True}} for number in range(1000)]
    with pytest.raises(Refused) as refused:
        decided({"containers": containers})
    assert str(refused.value).endswith("container c9 is privileged and 990 more")


def test_no_toleration_of_an_enforced_taint_crosses_but_what_the_operator_gives() -> None:
    own = [
        {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"},
        {"key": "dedicated", "value": "others", "effect": "NoSchedule"},
        {"key": "team", "operator": "Exists"},
    ]
    spec = {"tolerations": own}
    enforced = ["node-role.kubernetes.io/*", "dedicated"]
    assert decided(spec)["tolerations"] == own
    assert decided(spec, enforcedTaints=enforced)["tolerations"] == own[2:]
    given = {"key": "dedicated", "value": "tenants"}
    found = decided(spec, enforcedTaints=enforced, tolerations=[given])
    assert found["tolerations"] == [own[2], given]
    assert left_out(own, enforced) == [
        "spec.tolerations[node-role.kubernetes.io/control-plane]",
        "spec.tolerations[dedicated]",
    ]
    assert left_out(own, []) == []


@pytest.mark.parametrize("effect", ["", "NoExecute", "NoSchedule"])
def test_toleration_of_all_taints_becomes_those_of_the_states_of_a_node(effect: str) -> None:
    everything = {"operator": "Exists", **({"effect": effect} if effect else {})}
    found = decided({"tolerations": [everything, everything]}, enforcedTaints=["dedicated"])["tolerations"]
    assert {one["key"].partition("/")[0] for one in found} == {"node.kubernetes.io"}
    assert len(found) == len({one["key"] for one in found}) > 5
    assert {one.get("effect", "") for one in found} == {effect}
    assert left_out([everything], ["dedicated"]) == ["spec.tolerations[*]"]
    assert decided({"tolerations": [everything]}, enforcedTaints=["*"])["tolerations"] == []


def test_tolerations_of_a_new_pod_are_bounded() -> None:
    most = [{"key": f"k{number}", "operator": "Exists"} for number in range(MOST_TOLERATIONS)]
    assert len(decided({"tolerations": most})["tolerations"]) == MOST_TOLERATIONS
    with pytest.raises(TooLarge, match=f"has {MOST_TOLERATIONS + 1} tolerations") as refused:
        decided({"tolerations": [*most, {"operator": "Exists"}]})
    assert refused.value.path == "spec.tolerations"


def test_operator_chooses_the_nodes_of_pods() -> None:
    own = {
        "nodeSelector": {"pool": "control-plane", "disk": "ssd"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
    }
    options = {
        "nodeSelector": {"pool": "tenants"},
        "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "tenant", "value": "x", "effect": "NoSchedule"}],
        "runtimeClassName": "gvisor",
    }
    found = decided({**own, "runtimeClassName": "runc"}, **options)
    assert found["nodeSelector"] == {"pool": "tenants", "disk": "ssd"}
    assert found["tolerations"] == [
        {"key": "a", "operator": "Exists"},
        {"key": "tenant", "value": "x", "effect": "NoSchedule"},
    ]
    assert found["runtimeClassName"] == "gvisor"
    assert decided({**own, "runtimeClassName": "runc"})["runtimeClassName"] == "runc"


@pytest.mark.parametrize(
    ("own", "longest", "on_host"),
    [(10**9, "5m", 300), (10**9, "1500ms", 2), (30, "5m", 30), (0, "5m", 0), (10**9, "0s", 10**9), (None, "5m", None)],
)
def test_grace_period_is_cut_to_the_longest_that_is_allowed(own: int | None, longest: str, on_host: int | None) -> None:
    spec = {} if own is None else {"terminationGracePeriodSeconds": own}
    found = decided(spec, maxTerminationGracePeriod=longest)
    assert found.get("terminationGracePeriodSeconds") == on_host


def test_references_to_workloads_of_the_host_stay_behind() -> None:
    assert (
        not {"workloadRef", "schedulingGroup"} & decided({"workloadRef": {"name": "w"}, "schedulingGroup": {}}).keys()
    )
