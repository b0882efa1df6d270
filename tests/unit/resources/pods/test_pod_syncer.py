"""The life of a Pod on both sides."""

from typing import Any

import pytest

from syncer.api import Context, Decision, Key, Obj, Outcome, Refused, Resource, TooLarge, Verb
from syncer.cache.parts import MOST_KEYS
from syncer.resources.pods.env import COPY_SECONDS
from syncer.resources.pods.tolerations import MOST_TOLERATIONS
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import node, pod, secret, service, serviceaccount

COPY = "vc-ns/web-x-shop-x-vc"
STARTED = {"startTime": "2026-01-01T12:00:00Z", "phase": "Running"}
OURS = {"metadata": {"labels": {"vsyncer.dev/cluster": "vc.vc-ns"}}}
DELETING = {"deletionTimestamp": "2026-01-01T12:00:00Z"}


@pytest.fixture
def ready(world: World) -> World:
    """Everything is on the host that a Pod waits for."""
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    return world


@pytest.fixture
def copied(ready: World) -> World:
    """The Pod is on the host."""
    ready.given(virtual=[pod("web")]).settle("pods", "shop/web")
    return host(ready, {"status": {"phase": "Pending"}})


def host(world: World, change: Obj) -> World:
    return world.given(host=[merged(world.host("Pod", COPY) or {}, change)])


def virtual(world: World, change: Obj) -> World:
    return world.given(virtual=[merged(world.virtual("Pod", "shop/web") or {}, change)])


def decided(world: World) -> Decision:
    return world.decide("pods", "shop/web")


def calls(world: World) -> list[str]:
    return [str(sent) for sent in world.settle("pods", "shop/web")]


# -- before it is on the host ----------------------------------------------------------------------


@pytest.mark.reason("AccountNotOnHost", "NoDnsAddress")
def test_pod_waits_for_its_service_account_its_token_and_its_dns(world: World) -> None:
    volume = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    dns = service("kube-dns", (53,), namespace="kube-system")
    world.given(virtual=[pod("web", spec={"volumes": [volume]}), serviceaccount("default"), dns])
    waited = []
    for syncer, key in (
        ("serviceaccounts", "shop/default"),
        ("pod-tokens", "shop/web"),
        ("services", "kube-system/kube-dns"),
    ):
        decision = decided(world)
        assert (decision.outcome, decision.writes) == (Outcome.PENDING, ())
        waited += [(observed.resource.plural, observed.key.name) for observed in decision.on]
        world.settle(syncer, key)
    copy = world.host("Service", "vc-ns/kube-dns-x-kube-system-x-vc") or {}
    world.given(host=[merged(copy, {"spec": {"clusterIP": "10.1.0.10"}})])
    assert [write.verb for write in decided(world).writes] == [Verb.APPLY]
    assert waited == [
        ("serviceaccounts", "default-x-shop-x-vc"),
        ("secrets", "web.pod-tokens-x-shop-x-vc"),
        ("services", "kube-dns-x-kube-system-x-vc"),
    ]


def created(obj: Obj, at: str) -> Obj:
    return merged(obj, {"metadata": {"creationTimestamp": at}})


@pytest.mark.reason("ServiceNotOnHost")
def test_pod_waits_for_the_copy_of_a_service_that_was_created_just_before(ready: World) -> None:
    ready.given(virtual=[service("db"), pod("web")])
    decision = decided(ready)
    assert (decision.outcome, decision.writes, decision.after) == (Outcome.PENDING, (), COPY_SECONDS)
    assert [str(observed.key) for observed in decision.on] == ["vc-ns/db-x-shop-x-vc"]
    ready.settle("services", "shop/db")
    copy = ready.host("Service", "vc-ns/db-x-shop-x-vc") or {}
    ready.given(host=[merged(copy, {"spec": {"clusterIP": "10.1.0.9"}})])
    [write] = decided(ready).writes
    names = [variable["name"] for variable in write.obj["spec"]["containers"][0]["env"]]
    assert "DB_SERVICE_HOST" in names


@pytest.mark.parametrize(
    ("at_service", "at_pod"),
    [
        ("2026-01-01T11:59:55Z", "2026-01-01T12:00:00Z"),
        ("2026-01-01T12:00:00Z", "2026-01-01T11:59:59Z"),
        ("2026-01-01T12:00:01Z", "2026-01-01T12:00:01Z"),
        ("yesterday", "2026-01-01T12:00:00Z"),
        ("2026-01-01T12:00:00Z", ""),
    ],
    ids=["old service", "later service", "clock ahead", "no time", "no time of the pod"],
)
def test_pod_waits_for_no_copy_that_may_never_come(ready: World, at_service: str, at_pod: str) -> None:
    ready.given(virtual=[created(service("db"), at_service), created(pod("web"), at_pod)])
    assert [write.verb for write in decided(ready).writes] == [Verb.APPLY]


def test_services_without_a_copy_are_not_read_for_a_pod(ready: World, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Key] = []
    virtual = Context.virtual

    def noted(ctx: Context, resource: Resource, key: Key) -> Obj | None:
        read.append(key)
        return virtual(ctx, resource, key)

    monkeypatch.setattr(Context, "virtual", noted)
    ready.given(virtual=[service("db"), pod("web")])
    assert decided(ready).outcome is Outcome.PENDING
    assert Key("shop", "db") not in read


def test_pod_without_service_variables_waits_for_no_service(ready: World) -> None:
    ready.given(virtual=[service("db"), pod("web", spec={"enableServiceLinks": False})])
    assert [write.verb for write in decided(ready).writes] == [Verb.APPLY]


def test_pod_does_not_wait_for_the_service_of_the_api_server(ready: World) -> None:
    ready.given(virtual=[service("kubernetes", namespace="default"), serviceaccount("default", namespace="default")])
    ready.settle("serviceaccounts", "default/default")
    ready.given(virtual=[pod("web", namespace="default")])
    assert [write.verb for write in ready.decide("pods", "default/web").writes] == [Verb.APPLY]


def test_pod_with_the_hosts_dns_for_lack_of_a_dns_service_is_warned_of(ready: World) -> None:
    ready.given(virtual=[pod("web"), pod("own", spec={"dnsPolicy": "Default"})])
    warning = decided(ready).warning
    assert warning is not None
    assert (warning.reason, "no Service kube-system/kube-dns" in warning.message) == ("MissingClusterDNS", True)
    assert ready.decide("pods", "shop/own").warning is None
    ready.configure({"networking": {"dns": {"service": ""}}})
    assert decided(ready).warning is None


def test_pod_with_the_dns_of_its_cluster_has_no_warning(ready: World) -> None:
    ready.given(virtual=[service("kube-dns", (53,), namespace="kube-system"), pod("web")])
    ready.settle("services", "kube-system/kube-dns")
    copy = ready.host("Service", "vc-ns/kube-dns-x-kube-system-x-vc") or {}
    ready.given(host=[merged(copy, {"spec": {"clusterIP": "10.1.0.10"}})])
    assert decided(ready).writes
    assert decided(ready).warning is None


def test_pod_with_a_headless_dns_service_is_warned_of(ready: World) -> None:
    headless = service("kube-dns", (53,), namespace="kube-system", spec={"clusterIP": "None"})
    ready.given(virtual=[headless, pod("web")]).settle("services", "kube-system/kube-dns")
    [write] = decided(ready).writes
    assert "dnsConfig" not in write.obj["spec"]
    warning = decided(ready).warning
    assert warning is not None
    assert warning.reason == "MissingClusterDNS"


@pytest.mark.reason("TokenNotOnHost")
def test_token_of_an_earlier_pod_of_this_name_is_not_taken(ready: World) -> None:
    volume = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    ready.given(virtual=[pod("web", spec={"volumes": [volume]})]).settle("pod-tokens", "shop/web")
    virtual(ready, {"metadata": {"uid": "the next one"}})
    assert decided(ready).outcome is Outcome.PENDING


def test_pod_with_scheduling_gates_is_not_sent_yet(ready: World) -> None:
    ready.given(virtual=[pod("web", spec={"schedulingGates": [{"name": "example.org/hold"}]})])
    assert (decided(ready).outcome, decided(ready).writes) == (Outcome.SKIPPED, ())


@pytest.mark.parametrize("status", [STARTED, {"phase": "Running"}, {**STARTED, "phase": "Succeeded"}])
def test_pod_that_had_started_is_never_started_again(ready: World, status: Obj) -> None:
    ready.given(virtual=[pod("web", status=status, spec={"nodeName": "n1"})])
    [write] = decided(ready).writes
    assert (write.verb, write.grace, write.side.value) == (Verb.DELETE, 0, "virtual")


def test_pod_that_never_started_is_created_again_on_its_node(ready: World) -> None:
    ready.configure({"sync": {"toHost": {"pods": {"allowNodeName": True}}}})
    ready.given(virtual=[pod("web", spec={"nodeName": "n1"})])
    [write] = decided(ready).writes
    assert (write.verb, write.obj["spec"]["nodeName"]) == (Verb.APPLY, "n1")


@pytest.mark.parametrize(
    ("spec", "is_step"),
    [
        pytest.param({}, False, id="nothing more follows"),
        pytest.param({"ephemeralContainers": [{"name": "debug", "image": "x"}]}, True, id="it gets a container"),
    ],
)
def test_new_copy_is_decided_again_only_where_more_follows(ready: World, spec: Obj, is_step: bool) -> None:
    ready.given(virtual=[pod("web", spec=spec)])
    decision = decided(ready)
    assert ([write.verb for write in decision.writes], decision.is_step) == ([Verb.APPLY], is_step)


def test_new_copy_is_decided_again_where_it_waits_for_its_node() -> None:
    to_host = {name: {"enabled": False} for name in ("serviceAccounts", "podTokens")}
    from_host = {name: {"enabled": True} for name in ("nodes", "storageClasses")}
    sync = {"toHost": {**to_host, "pods": {"scheduler": "virtual"}}, "fromHost": from_host}
    world = World(config={"networking": {"dns": {"service": ""}}, "sync": sync})
    world.given(virtual=[node("n1", **OURS), pod("web", spec={"nodeName": "n1"})], host=[node("n1")])
    decision = decided(world)
    assert ([write.verb for write in decision.writes], decision.is_step) == ([Verb.APPLY], True)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@pytest.mark.reason("Finished")
def test_pod_that_ended_before_it_started_is_left(ready: World, phase: str) -> None:
    ready.given(virtual=[pod("web", status={"phase": phase})])
    assert not decided(ready).writes


@pytest.mark.parametrize("state", [{"status": STARTED}, {"metadata": DELETING}, {}])
@pytest.mark.reason("OwnNode")
def test_pod_on_a_node_of_the_virtual_cluster_itself_is_left_to_it(ready: World, state: Any) -> None:
    ready.given(virtual=[node("metal"), merged(pod("web", spec={"nodeName": "metal"}), state)])
    assert not decided(ready).writes


def test_pod_on_a_stand_in_is_ours(ready: World) -> None:
    ready.given(virtual=[node("n1", **OURS), pod("web", spec={"nodeName": "n1"}, status=STARTED)])
    assert [write.verb for write in decided(ready).writes] == [Verb.DELETE]


@pytest.mark.reason("StaticPod")
def test_mirror_of_a_static_pod_is_left_alone(ready: World) -> None:
    mirror = {"annotations": {"kubernetes.io/config.mirror": "1"}}
    ready.given(virtual=[pod("web", metadata=mirror, status=STARTED)])
    assert not decided(ready).writes


# -- on both sides ---------------------------------------------------------------------------------


@pytest.mark.reason("NodeMissing")
def test_pod_is_bound_to_the_hosts_node_as_soon_as_it_is_known(copied: World) -> None:
    host(copied, {"spec": {"nodeName": "n1"}, "status": {**STARTED, "podIP": "10.0.0.3"}})
    decision = decided(copied)
    assert decision.outcome is Outcome.PENDING
    assert [str(observed) for observed in decision.on] == ["the virtual Node n1"]
    copied.settle("nodes", "n1")
    assert calls(copied) == ["create virtual pods/binding shop/web", "patch virtual pods/status shop/web"]
    found = copied.virtual("Pod", "shop/web") or {}
    assert (found["spec"]["nodeName"], found["status"]["podIP"]) == ("n1", "10.0.0.3")


@pytest.mark.reason("BoundElsewhere")
def test_pod_that_is_bound_to_another_node_than_its_copy_is_refused(copied: World) -> None:
    host(copied, {"spec": {"nodeName": "n2"}, "status": {**STARTED, "podIP": "10.0.0.3"}})
    virtual(copied, {"spec": {"nodeName": "n1"}})
    with pytest.raises(Refused, match=r"^spec\.nodeName: the host runs it on n2, and here it is bound to n1") as found:
        decided(copied)
    assert found.value.reason == "BoundElsewhere"


@pytest.mark.parametrize("side", ["virtual", "host"])
def test_pod_that_is_bound_to_another_node_than_its_copy_can_be_deleted(copied: World, side: str) -> None:
    ending: dict[str, Any] = {"metadata": DELETING}
    placed: dict[str, Any] = {"spec": {"nodeName": "n2"}, "status": {**STARTED, "podIP": "10.0.0.3"}}
    host(copied, merged(placed, ending) if side == "host" else placed)
    virtual(copied, merged({"spec": {"nodeName": "n1"}}, ending if side == "virtual" else {}))
    [write] = decided(copied).writes
    assert (write.verb, write.side.value) == (Verb.DELETE, "host" if side == "virtual" else "virtual")


def test_unschedulable_condition_comes_up_before_the_pod_is_bound(copied: World) -> None:
    unschedulable = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    host(copied, {"status": {"conditions": unschedulable}})
    assert calls(copied) == ["patch virtual pods/status shop/web"]


def test_hosts_status_is_never_written_but_for_gates(copied: World) -> None:
    host(copied, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    virtual(copied, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    assert calls(copied) == ["patch virtual pods/status shop/web"]
    assert (copied.host("Pod", COPY) or {})["status"]["conditions"] == [{"type": "Ready", "status": "True"}]


def test_gates_condition_goes_down_beside_the_kubelets(ready: World) -> None:
    gates = {"readinessGates": [{"conditionType": "example.org/lb"}]}
    ready.given(virtual=[pod("web", spec=gates)]).settle("pods", "shop/web")
    host(ready, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    virtual(ready, {"status": {"conditions": [{"type": "example.org/lb", "status": "True"}]}})
    sent = ready.settle("pods", "shop/web")
    [down] = [one for one in sent if one.side.value == "host"]
    assert (down.subresource, down.body["status"]) == (
        "status",
        {"conditions": [{"type": "example.org/lb", "status": "True"}]},
    )
    kinds = [one["type"] for one in (ready.host("Pod", COPY) or {})["status"]["conditions"]]
    assert kinds == ["Ready", "example.org/lb"]


def test_edit_touches_nothing_that_the_host_has_added(copied: World) -> None:
    injected = {
        "metadata": {"labels": {"mesh": "on"}, "annotations": {"mesh": "on"}},
        "spec": {
            "containers": [{"name": "app", "image": "mirror/app:1"}, {"name": "sidecar", "image": "mesh:1"}],
            "tolerations": [{"key": "host", "operator": "Exists"}],
            "schedulingGates": [{"name": "kueue"}],
            "volumes": [{"name": "mesh"}],
        },
    }
    host(copied, injected)
    assert calls(copied) == [], "the image that the host has put in its place stays"
    change = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": "app", "image": "app:2"}],
            "tolerations": [{"key": "mine", "operator": "Exists"}],
            "activeDeadlineSeconds": 60,
        },
    }
    virtual(copied, change)
    assert calls(copied) == [f"patch host pods {COPY}"]
    found = copied.host("Pod", COPY) or {}
    assert found["metadata"]["labels"].items() >= {"mesh": "on", "app": "web"}.items()
    assert [one["image"] for one in found["spec"]["containers"]] == ["app:2", "mesh:1"]
    assert [one["key"] for one in found["spec"]["tolerations"]] == ["host", "mine"]
    assert found["spec"]["schedulingGates"] == [{"name": "kueue"}]
    assert (found["spec"]["volumes"], found["spec"]["activeDeadlineSeconds"]) == ([{"name": "mesh"}], 60)


def test_image_of_an_init_container_can_be_changed_too(ready: World) -> None:
    first = {"initContainers": [{"name": "init", "image": "init:1"}]}
    ready.given(virtual=[pod("web", spec=first)]).settle("pods", "shop/web")
    virtual(ready, {"spec": {"initContainers": [{"name": "init", "image": "init:2"}]}})
    ready.settle("pods", "shop/web")
    assert (ready.host("Pod", COPY) or {})["spec"]["initContainers"] == [{"name": "init", "image": "init:2"}]


def test_image_has_the_hosts_name_only_once_the_tenant_changes_it(copied: World) -> None:
    """A new mapping restarts no container, and the host's own replacement stays as without one."""
    for mapping in ({"*": "mirror.example.com/"}, {"*": "other.example.com/"}):
        copied.configure({"sync": {"toHost": {"pods": {"images": mapping}}}})
        assert calls(copied) == []
    virtual(copied, {"metadata": {"generation": 2}, "spec": {"containers": [{"name": "app", "image": "app:2"}]}})
    assert calls(copied) == [f"patch host pods {COPY}"]
    [container] = (copied.host("Pod", COPY) or {})["spec"]["containers"]
    assert container["image"] == "other.example.com/docker.io/library/app:2"
    assert calls(copied) == []
    host(copied, {"spec": {"containers": [{"name": "app", "image": "local/app:2"}]}})
    assert calls(copied) == []


def test_lists_are_changed_only_over_the_observed_version(copied: World) -> None:
    virtual(copied, {"spec": {"containers": [{"name": "app", "image": "app:2"}]}})
    version = (copied.host("Pod", COPY) or {})["metadata"]["resourceVersion"]
    [down, _] = decided(copied).writes
    assert down.obj["metadata"]["resourceVersion"] == version


@pytest.mark.parametrize(("wanted", "actual", "sent"), [(60, None, True), (60, 90, True), (90, 60, False)])
def test_deadline_is_only_ever_lowered(copied: World, wanted: int, actual: int | None, sent: bool) -> None:
    virtual(copied, {"spec": {"activeDeadlineSeconds": wanted}})
    host(copied, {"spec": {"activeDeadlineSeconds": actual}})
    assert bool(calls(copied)) is sent


def test_toleration_that_lasts_longer_replaces_the_shorter(copied: World) -> None:
    shorter = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    host(copied, {"spec": {"tolerations": [shorter]}})
    virtual(copied, {"spec": {"tolerations": [{**shorter, "tolerationSeconds": 9}]}})
    calls(copied)
    assert (copied.host("Pod", COPY) or {})["spec"]["tolerations"] == [{**shorter, "tolerationSeconds": 9}]


@pytest.mark.reason("TooLarge")
def test_tolerations_of_a_running_pod_are_bounded(copied: World) -> None:
    many = [{"key": f"k{number}", "operator": "Exists"} for number in range(MOST_TOLERATIONS + 1)]
    virtual(copied, {"spec": {"tolerations": many[1:]}})
    calls(copied)
    assert (copied.host("Pod", COPY) or {})["spec"]["tolerations"] == many[1:]
    virtual(copied, {"spec": {"tolerations": many}})
    with pytest.raises(TooLarge, match=f"has {MOST_TOLERATIONS + 1} tolerations"):
        decided(copied)


def test_toleration_that_the_host_wrote_otherwise_is_not_sent_again(copied: World) -> None:
    host(copied, {"spec": {"tolerations": [{"operator": "Exists"}, {"key": "a", "operator": "Equal", "value": ""}]}})
    virtual(copied, {"spec": {"tolerations": [{"key": "a"}]}})
    assert calls(copied) == []


# -- the end ---------------------------------------------------------------------------------------


@pytest.fixture
def running(copied: World) -> World:
    """The Pod runs, with this status on both sides."""
    host(copied, {"spec": {"nodeName": "n1"}, "status": STARTED}).settle("nodes", "n1")
    copied.settle("pods", "shop/web")
    return copied


def test_deletion_by_the_tenant_goes_down_with_its_grace_and_ends_when_the_host_has_ended(running: World) -> None:
    virtual(running, {"metadata": {**DELETING, "deletionGracePeriodSeconds": 9}})
    [sent] = running.settle("pods", "shop/web")
    assert (str(sent), sent.body["gracePeriodSeconds"]) == (f"delete host pods {COPY}", 9)
    stopping = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    host(running, stopping)
    assert calls(running) == ["patch virtual pods/status shop/web"]
    ended = {"status": {"phase": "Failed"}}
    host(running, ended)
    assert calls(running) == ["patch virtual pods/status shop/web"]
    running.gone(host=[running.host("Pod", COPY) or {}])
    [sent] = running.settle("pods", "shop/web")
    assert (str(sent), sent.body["gracePeriodSeconds"]) == ("delete virtual pods shop/web", 0)


@pytest.mark.reason("BothEnd")
def test_deletion_that_the_tenant_hurries_is_hurried_on_the_host(running: World) -> None:
    virtual(running, {"metadata": {**DELETING, "deletionGracePeriodSeconds": 30}})
    running.settle("pods", "shop/web")
    virtual(running, {"metadata": {"deletionGracePeriodSeconds": 1}})
    [sent] = running.settle("pods", "shop/web")
    assert (str(sent), sent.body["gracePeriodSeconds"]) == (f"delete host pods {COPY}", 1)


def test_deletion_with_a_grace_above_the_longest_is_cut_on_the_host_alone_and_sent_once() -> None:
    world = World(config={"sync": {"toHost": {"pods": {"maxTerminationGracePeriod": "5m"}}}})
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    world.given(virtual=[pod("web", spec={"terminationGracePeriodSeconds": 10**9})]).settle("pods", "shop/web")
    host(world, {"spec": {"nodeName": "n1"}, "status": STARTED}).settle("nodes", "n1")
    world.settle("pods", "shop/web")
    virtual(world, {"metadata": {**DELETING, "deletionGracePeriodSeconds": 10**9}})
    [sent] = world.settle("pods", "shop/web")
    assert (str(sent), sent.body["gracePeriodSeconds"]) == (f"delete host pods {COPY}", 300)
    assert calls(world) == []
    original = world.virtual("Pod", "shop/web") or {}
    assert original["spec"]["terminationGracePeriodSeconds"] == 10**9


HAS_FINALIZER = {"finalizers": ["batch.kubernetes.io/job-tracking"]}
ENDING = {**DELETING, "deletionGracePeriodSeconds": 0}


@pytest.mark.reason("WaitsForFinalizers")
def test_pod_that_waits_for_its_finalizers_fails_and_is_deleted_only_once(running: World) -> None:
    running.gone(host=[running.host("Pod", COPY) or {}])
    virtual(running, {"metadata": {**ENDING, **HAS_FINALIZER}})
    assert calls(running) == ["patch virtual pods/status shop/web"]
    assert (running.virtual("Pod", "shop/web") or {})["status"]["phase"] == "Failed"
    assert calls(running) == []
    assert decided(running).reason == "it is being deleted and waits for its finalizers"


@pytest.mark.reason("NoObject")
def test_deletion_that_an_api_server_left_half_done_is_finished(running: World) -> None:
    running.gone(host=[running.host("Pod", COPY) or {}])
    virtual(running, {"metadata": ENDING, "status": {"phase": "Failed"}})
    assert calls(running) == ["delete virtual pods shop/web"]


def test_pod_that_the_host_has_lost_fails_before_it_is_deleted(running: World) -> None:
    running.gone(host=[running.host("Pod", COPY) or {}])
    decision = decided(running)
    assert decision.warning
    assert decision.warning.reason == "HostCopyDeleted"
    patch, deletion = running.settle("pods", "shop/web")
    assert (str(patch), str(deletion)) == ("patch virtual pods/status shop/web", "delete virtual pods shop/web")
    assert patch.body["status"]["phase"] == "Failed"
    [disrupted] = [one for one in patch.body["status"]["conditions"] if one["type"] == "DisruptionTarget"]
    assert (disrupted["status"], disrupted["reason"]) == ("True", "DeletionByPodGC")


def test_failed_status_is_only_for_the_observed_version_of_the_pod(running: World) -> None:
    running.gone(host=[running.host("Pod", COPY) or {}])
    observed = (running.virtual("Pod", "shop/web") or {})["metadata"]
    patch, _ = running.settle("pods", "shop/web")
    assert patch.body["metadata"] == {"uid": observed["uid"], "resourceVersion": observed["resourceVersion"]}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@pytest.mark.parametrize("metadata", [{}, ENDING], ids=["alive", "deleted"])
def test_terminal_status_that_the_host_reported_is_never_overwritten(running: World, phase: str, metadata: Obj) -> None:
    host(running, {"status": {"phase": phase}})
    running.settle("pods", "shop/web")
    running.gone(host=[running.host("Pod", COPY) or {}])
    virtual(running, {"metadata": metadata})
    assert [write.final_status for write in decided(running).writes] == [None]
    assert calls(running) == ["delete virtual pods shop/web"]


def test_status_of_a_pod_that_can_not_be_read_is_not_overwritten(running: World) -> None:
    host(running, {"status": {"phase": "Succeeded"}})
    running.settle("pods", "shop/web")
    running.gone(host=[running.host("Pod", COPY) or {}])
    many = {f"example.org/k{number}": "" for number in range(MOST_KEYS + 1)}
    virtual(running, {"metadata": {**ENDING, **HAS_FINALIZER, "labels": many}})
    assert calls(running) == []
    assert (running.virtual("Pod", "shop/web") or {})["status"]["phase"] == "Succeeded"
    virtual(running, {"metadata": {"finalizers": None}})
    assert calls(running) == ["delete virtual pods shop/web"]


def test_pod_that_never_had_a_node_fails_when_its_deletion_waits_for_finalizers(ready: World) -> None:
    ready.given(virtual=[pod("web", status={"phase": "Pending"}, metadata={**ENDING, **HAS_FINALIZER})])
    assert calls(ready) == ["patch virtual pods/status shop/web"]
    ended = (ready.virtual("Pod", "shop/web") or {})["status"]
    assert (ended["phase"], ended.get("conditions") or []) == ("Failed", [])


def test_pod_that_waits_at_its_gates_or_was_never_started_does_not_fail(ready: World) -> None:
    ready.given(virtual=[pod("web", status={"phase": "Pending"}, metadata=HAS_FINALIZER)])
    assert calls(ready) == [f"create host pods {COPY}"]


def test_deletion_on_the_host_goes_up_with_its_grace(running: World) -> None:
    host(running, {"metadata": {**DELETING, "deletionGracePeriodSeconds": 5}, "status": {"reason": "Evicted"}})
    warning = decided(running).warning
    assert warning
    assert warning.reason == "HostCopyDeleted"
    sent = running.settle("pods", "shop/web")
    assert [str(one) for one in sent] == ["patch virtual pods/status shop/web", "delete virtual pods shop/web"]
    assert sent[1].body["gracePeriodSeconds"] == 5


def test_secret_is_not_a_pod_of_the_same_name(running: World) -> None:
    running.given(virtual=[secret("web")])
    assert calls(running) == []
