"""A tenant's NetworkPolicies on the host: they follow the tenant's namespaces, and an event names the missing rules."""

from harness import HOME, NAMESPACE, Two, built_in, until
from harness import namespace as bare

from syncer.api import Json, Obj, labels_of
from syncer.resources.kinds import NETWORK_POLICIES
from syncer.testing.merge import merged
from syncer.testing.objects import build, pod

PLURAL = str(NETWORK_POLICIES)
TEAM = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
ON = {"networkPolicies": {"enabled": True}}


def policy(name: str, *peers: Obj) -> Obj:
    return build(
        NETWORK_POLICIES,
        name,
        namespace=NAMESPACE,
        spec={"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [*peers]}]},
    )


def named(two: Two, name: str) -> list[str]:
    """Return the virtual namespaces that the copy lets in."""
    copy = two.copy(PLURAL, name) or {"spec": {}}
    peers = [peer for rule in copy["spec"].get("ingress") or () for peer in rule["from"]]
    found = [each for peer in peers for each in peer["podSelector"].get("matchExpressions") or ()]
    return sorted(value for each in found for value in each["values"])


def labelled(name: str, **labels: str) -> Obj:
    return merged(bare(name), {"metadata": {"labels": labels}})


async def test_copy_follows_the_labels_of_namespaces_and_goes_with_its_policy(two: Two) -> None:
    two.virtual.put(labelled("front", team="a"))
    two.virtual.put(policy("web", TEAM))
    async with two.daemon(built_in("networkpolicies"), options=ON) as daemon:
        await until(lambda: named(two, "web") == ["front"])
        two.virtual.put(labelled("back", team="a"))
        await until(lambda: named(two, "web") == ["back", "front"])
        two.virtual.put(labelled("front", team="b"))
        await until(lambda: named(two, "web") == ["back"])
        two.virtual.put(labelled("back"))
        await until(lambda: two.copy(PLURAL, "web") and not named(two, "web"))
        copy = two.copy(PLURAL, "web") or {}
        assert copy["spec"]["policyTypes"] == ["Ingress"]
        assert not copy["spec"].get("ingress"), "a rule without peers would be for all"
        two.virtual.delete(PLURAL, f"{NAMESPACE}/web")
        await until(lambda: not two.copy(PLURAL, "web"))
        await daemon.settled()
        assert two.host.objects(PLURAL, HOME) == []


async def test_tenant_gets_one_event_about_cut_rules() -> None:
    def cut_events(two: Two) -> list[Obj]:
        return [each for each in two.virtual.objects("events", NAMESPACE) if each["reason"] == "NetworkPolicyCut"]

    two = Two()
    two.virtual.put(policy("web", {"ipBlock": {"cidr": "192.0.2.0/24"}}))
    async with two.daemon(built_in("networkpolicies"), options=ON) as daemon:
        await until(lambda: cut_events(two))
        two.virtual.put(merged(policy("web", {"ipBlock": {"cidr": "192.0.2.0/24"}}), {"metadata": {"labels": {}}}))
        await daemon.settled()
        [event] = cut_events(two)
        assert event["involvedObject"]["name"] == "web"
        assert event["message"].startswith("spec.ingress[0].from[0].ipBlock: where Pods run this is only for Pods")


def marks(two: Two, name: str) -> list[str]:
    """Return the directions in which the copy of a Pod is marked as isolated."""
    found = labels_of(two.copy("pods", name) or {"metadata": {}})
    return sorted(key.rpartition("-")[2] for key in found if key.startswith("vsyncer.dev/isolated-"))


async def test_pods_are_marked_as_isolated_while_a_policy_selects_them() -> None:
    def changed(**spec: Json) -> Obj:
        return merged(policy("walls"), {"spec": {"ingress": None, **spec}})

    two = Two()
    two.virtual.put(pod("web", metadata={"labels": {"app": "web"}}))
    two.virtual.put(pod("db", metadata={"labels": {"app": "db"}}))
    async with two.daemon(built_in("pods", "serviceaccounts", "networkpolicies"), options=ON) as daemon:
        await until(lambda: two.copy("pods", "web") and two.copy("pods", "db"))
        assert (marks(two, "web"), marks(two, "db")) == ([], [])
        two.virtual.put(changed(podSelector={"matchLabels": {"app": "web"}}))
        await until(lambda: marks(two, "web") == ["ingress"])
        two.virtual.put(changed(podSelector={"matchLabels": {"app": "db"}}, policyTypes=["Ingress", "Egress"]))
        await until(lambda: (marks(two, "web"), marks(two, "db")) == ([], ["egress", "ingress"]))
        labelled_pod = two.original("pods", "web") or {}
        two.virtual.put(merged(labelled_pod, {"metadata": {"labels": {"app": "db"}}}))
        await until(lambda: marks(two, "web") == ["egress", "ingress"])
        two.virtual.delete(PLURAL, f"{NAMESPACE}/walls")
        await until(lambda: (marks(two, "web"), marks(two, "db")) == ([], []))
        long = {"podSelector": {"matchLabels": {f"k{number}": "x" * 60 for number in range(500)}}}
        two.virtual.put(changed(podSelector={"matchLabels": {"app": "nobody"}}, egress=[{"to": [long]}]))
        await until(lambda: marks(two, "web") == marks(two, "db") == ["egress", "ingress"])
        two.virtual.put(changed(podSelector={"matchLabels": {"app": "nobody"}}))
        await until(lambda: (marks(two, "web"), marks(two, "db")) == ([], []))
        await daemon.settled()


async def test_policies_with_too_many_expressions_together_isolate_all_pods_with_an_event() -> None:
    def absent(name: str) -> list[Obj]:
        return [{"key": f"{name}-{number}", "operator": "DoesNotExist"} for number in range(520)]

    def events(two: Two) -> list[str]:
        found = two.virtual.objects("events", NAMESPACE)
        return [each["message"] for each in found if each["reason"] == "NamespaceIsolated"]

    two = Two()
    for number in range(10):
        selector = {"matchLabels": {"app": "nobody"}, "matchExpressions": absent(f"k{number}")}
        two.virtual.put(merged(policy(f"p{number}"), {"spec": {"podSelector": selector}}))
    two.virtual.put(pod("web", metadata={"labels": {"app": "web"}}))
    async with two.daemon(built_in("pods", "serviceaccounts", "networkpolicies"), options=ON) as daemon:
        await until(lambda: marks(two, "web") == ["egress", "ingress"])
        await until(lambda: events(two))
        assert "more than 5000 labels, expressions and values together; use fewer" in events(two)[0]
        two.virtual.delete(PLURAL, f"{NAMESPACE}/p0")
        await until(lambda: marks(two, "web") == [])
        await daemon.settled()
        assert len(events(two)) == 1
