"""Ephemeral containers of a running Pod: which are sent, how, and the events about the others."""

import json
from typing import Any

import pytest

from syncer.api import Decision, Obj, Refused, Right, Side, Verb
from syncer.resources.kinds import PODS
from syncer.resources.pods.record import LARGEST
from syncer.resources.pods.syncer import PodSyncer
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import pod, service, serviceaccount

COPY = "vc-ns/web-x-shop-x-vc"


def debugger(name: str = "debug", **fields: Any) -> Obj:
    return {"name": name, "image": "busybox", **fields}


def running(world: World, *containers: Obj, **config: Any) -> World:
    """Return a world with a Pod on the host, to which these containers are added then."""
    world.configure({"sync": {"toHost": {"pods": config}}})
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    world.given(virtual=[pod("web")]).settle("pods", "shop/web")
    return with_containers(world, *containers)


def with_containers(world: World, *containers: Obj) -> World:
    there = world.virtual("Pod", "shop/web") or {}
    return world.given(virtual=[merged(there, {"spec": {"ephemeralContainers": list(containers)}})])


def decided(world: World) -> Decision:
    return world.decide("pods", "shop/web")


def sent(world: World) -> list[Obj]:
    """Return the ephemeral containers in the requests that a decision takes."""
    requests = world.settle("pods", "shop/web")
    return [
        container
        for one in requests
        if one.subresource == "ephemeralcontainers"
        for container in one.body["spec"]["ephemeralContainers"]
    ]


def warned(world: World) -> str:
    warning = decided(world).warning
    assert warning is not None
    assert warning.reason == "EphemeralContainerRefused"
    return warning.message


def test_ephemeral_container_has_the_image_of_the_host(world: World) -> None:
    running(world, debugger(), images={"busybox": "tools.example.com/busybox"})
    assert [container["image"] for container in sent(world)] == ["tools.example.com/busybox"]
    assert sent(world) == []


def test_ephemeral_container_is_added_through_its_subresource_once(world: World) -> None:
    running(world, debugger(targetContainerName="app"))
    requests = [str(one) for one in world.settle("pods", "shop/web")]
    assert requests == [f"patch host pods/ephemeralcontainers {COPY}", f"patch host pods {COPY}"], "it is recorded"
    [container] = (world.host("Pod", COPY) or {})["spec"]["ephemeralContainers"]
    assert (container["name"], container["targetContainerName"]) == ("debug", "app")
    assert world.settle("pods", "shop/web") == []


def test_ephemeral_container_follows_others(world: World) -> None:
    running(world, debugger("a"))
    sent(world)
    with_containers(world, debugger("b"), debugger("a"))
    assert [one["name"] for one in sent(world)] == ["b"]
    host = (world.host("Pod", COPY) or {})["spec"]["ephemeralContainers"]
    assert {one["name"] for one in host} == {"a", "b"}


def test_ephemeral_container_of_the_hosts_own_stays(world: World) -> None:
    running(world)
    world.given(host=[merged(world.host("Pod", COPY) or {}, {"spec": {"ephemeralContainers": [debugger("theirs")]}})])
    with_containers(world, debugger("mine"))
    assert [one["name"] for one in sent(world)] == ["mine"]


def record(world: World) -> Obj:
    """Return the whole record of what was sent."""
    found: Obj = json.loads((world.host("Pod", COPY) or {})["metadata"]["annotations"]["vsyncer.dev/containers"])
    return found


def recorded(world: World) -> Obj:
    """Return the containers that were sent, by list."""
    return {part: names for part, names in record(world).items() if part.lower().endswith("containers")}


def test_containers_that_were_sent_are_recorded_by_list(world: World) -> None:
    running(world)
    assert recorded(world) == {"containers": ["app"]}
    with_containers(world, debugger("b"), debugger("a"))
    world.settle("pods", "shop/web")
    assert recorded(world) == {"containers": ["app"], "ephemeralContainers": ["b", "a"]}


@pytest.mark.parametrize("part", ["containers", "initContainers", "ephemeralContainers"])
def test_ephemeral_container_with_the_name_of_one_of_the_hosts_is_refused(world: World, part: str) -> None:
    """It would be the tenant's from then on, with the host's secrets in it."""
    running(world)
    copy = world.host("Pod", COPY) or {}
    theirs = [*copy["spec"].get(part, ()), debugger("theirs")]
    status = {f"{part.removesuffix('s')}Statuses": [{"name": "theirs"}, {"name": "app"}], "phase": "Running"}
    world.given(host=[merged(copy, {"spec": {part: theirs}, "status": status})])
    with_containers(world, debugger("theirs"), debugger("mine"))
    assert "theirs: the host has a container of this name in the pod already; choose another name" in warned(world)
    assert [one["name"] for one in sent(world)] == ["mine"]
    assert recorded(world) == {"containers": ["app"], "ephemeralContainers": ["mine"]}
    statuses = [one for one in (world.virtual("Pod", "shop/web") or {})["status"].values() if isinstance(one, list)]
    assert [one["name"] for each in statuses for one in each if one.get("name") == "theirs"] == []


def test_container_of_the_hosts_is_no_target(world: World) -> None:
    running(world)
    copy = world.host("Pod", COPY) or {}
    world.given(host=[merged(copy, {"spec": {"containers": [*copy["spec"]["containers"], debugger("proxy")]}})])
    with_containers(world, debugger("bad", targetContainerName="proxy"), debugger("good", targetContainerName="app"))
    assert "bad: its target proxy is no container of this Pod" in warned(world)
    assert [one["name"] for one in sent(world)] == ["good"]


def with_volumes(world: World, *names: str) -> Obj:
    """Return the copy, to which the host has added volumes."""
    copy = world.host("Pod", COPY) or {}
    volumes = [{"name": name, "emptyDir": {}} for name in names]
    found = merged(copy, {"spec": {"volumes": [*copy["spec"].get("volumes", ()), *volumes]}})
    world.given(host=[found])
    return found


@pytest.mark.parametrize(
    "use",
    [
        {"volumeMounts": [{"name": "token", "mountPath": "/t"}]},
        {"volumeDevices": [{"name": "token", "devicePath": "/t"}]},
        {"env": [{"name": "T", "valueFrom": {"fileKeyRef": {"volumeName": "token", "path": "p", "key": "k"}}}]},
    ],
)
def test_volume_of_the_hosts_is_not_mounted_by_an_ephemeral_container(world: World, use: Obj) -> None:
    """The tenant's own API server may show the volume in the virtual Pod, too."""
    spec = {"volumes": [{"name": "data", "emptyDir": {}}]}
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    world.given(virtual=[pod("web", spec=spec)]).settle("pods", "shop/web")
    with_volumes(world, "token")
    forged = {"volumes": [{"name": "data", "emptyDir": {}}, {"name": "token", "emptyDir": {}}]}
    world.given(virtual=[merged(world.virtual("Pod", "shop/web") or {}, {"spec": forged})])
    own = {"volumeMounts": [{"name": "data", "mountPath": "/d"}]}
    with_containers(world, debugger("bad", **use), debugger("good", **own))
    assert "bad: spec: a container uses the volume token, which is none of this Pod" in warned(world)
    assert [one["name"] for one in sent(world)] == ["good"]


def test_volumes_and_images_that_were_sent_are_recorded(world: World) -> None:
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    spec = {"volumes": [{"name": "data", "emptyDir": {}}, {"name": "more", "emptyDir": {}}]}
    world.given(virtual=[pod("web", spec=spec)]).settle("pods", "shop/web")
    with_volumes(world, "token")
    before = record(world)
    assert before["volumes"] == ["data", "more"]
    assert list(before["images"]) == ["app"]

    with_containers(world, debugger("debug"))
    world.settle("pods", "shop/web")
    after = record(world)
    assert after["volumes"] == ["data", "more"]
    assert list(after["images"]) == ["app", "debug"]

    changed = {"containers": [{"name": "app", "image": "new"}]}
    original = world.virtual("Pod", "shop/web") or {}
    world.given(virtual=[merged(original, {"spec": changed, "metadata": {"generation": 2}})])
    world.settle("pods", "shop/web")
    latest = record(world)
    assert latest["images"]["app"] != after["images"]["app"]
    assert latest["images"]["debug"] == after["images"]["debug"]


def test_copy_without_recorded_volumes_lends_none_of_them(world: World) -> None:
    """An earlier version recorded the containers alone; the next copy has all of it."""
    spec = {"volumes": [{"name": "data", "emptyDir": {}}]}
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    world.given(virtual=[pod("web", spec=spec)]).settle("pods", "shop/web")
    earlier = {"vsyncer.dev/containers": '{"containers":["app"]}'}
    copy = merged(world.host("Pod", COPY) or {}, {"metadata": {"annotations": earlier}})
    world.given(host=[merged(copy, {"spec": {"containers": [{"name": "app", "image": "mirror/i"}]}})])
    mounting = debugger("bad", volumeMounts=[{"name": "data", "mountPath": "/d"}])
    with_containers(world, mounting, debugger("good"))
    assert "bad: spec: a container uses the volume data" in warned(world)
    world.settle("pods", "shop/web")
    [app] = (world.host("Pod", COPY) or {})["spec"]["containers"]
    assert app["image"] == "mirror/i", "the host's choice of the image stays"
    assert record(world)["containers"] == ["app"]
    assert list(record(world)["images"]) == ["app", "good"]
    assert "volumes" not in record(world)


@pytest.mark.parametrize(
    "container",
    [
        {"volumeMounts": [{"name": "token", "mountPath": "/t"}]},
        {"volumeDevices": [{"name": "token", "devicePath": "/t"}]},
        {"resources": {"claims": [{"name": "gpu"}]}},
    ],
)
def test_pod_that_uses_parts_it_does_not_have_is_refused(world: World, container: Obj) -> None:
    """The host's admission could add a volume of that name, with contents of the host."""
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    containers = [{"name": "app", "image": "i"}, {"name": "thief", "image": "i", **container}]
    world.given(virtual=[pod("web", spec={"containers": containers})])
    with pytest.raises(Refused, match="which is none of this Pod"):
        decided(world)


def test_record_of_a_pod_is_bounded(world: World) -> None:
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    volumes = [{"name": f"{number:060}", "emptyDir": {}} for number in range(LARGEST // 60)]
    world.given(virtual=[pod("web", spec={"volumes": volumes})])
    with pytest.raises(Refused, match="give the Pod fewer of them"):
        decided(world)


def test_record_has_no_room_for_an_ephemeral_container(world: World) -> None:
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    volumes = [{"name": f"{number:060}", "emptyDir": {}} for number in range((LARGEST - 200) // 63)]
    world.given(virtual=[pod("web", spec={"volumes": volumes})]).settle("pods", "shop/web")
    names = [f"d{number}" for number in range(10)]
    with_containers(world, *(debugger(name) for name in names))
    assert "d9: spec: the record of its containers and volumes takes" in warned(world)
    assert len(sent(world)) < len(names)
    assert len((world.host("Pod", COPY) or {})["metadata"]["annotations"]["vsyncer.dev/containers"]) <= LARGEST


def test_image_of_a_container_of_the_hosts_stays(world: World) -> None:
    """An API server of the tenant's own may show any container in a running Pod."""
    running(world)
    copy, original = world.host("Pod", COPY) or {}, world.virtual("Pod", "shop/web") or {}
    world.given(host=[merged(copy, {"spec": {"containers": [*copy["spec"]["containers"], debugger("proxy")]}})])
    forged = [{"name": "app", "image": "new"}, {"name": "proxy", "image": "evil"}]
    world.given(virtual=[merged(original, {"spec": {"containers": forged}, "metadata": {"generation": 2}})])
    world.settle("pods", "shop/web")
    images = {one["name"]: one["image"] for one in (world.host("Pod", COPY) or {})["spec"]["containers"]}
    assert images == {"app": "new", "proxy": "busybox"}


def test_record_of_a_copy_cannot_be_forged_by_a_tenant(world: World) -> None:
    running(world)
    forged = {"vsyncer.dev/containers": '{"containers":["proxy"]}'}
    original = world.virtual("Pod", "shop/web") or {}
    world.given(virtual=[merged(original, {"metadata": {"annotations": forged}})]).settle("pods", "shop/web")
    assert recorded(world) == {"containers": ["app"]}


def test_copy_of_an_earlier_version_gets_a_record(world: World) -> None:
    """The author of an ephemeral container is unknown."""
    running(world, debugger("earlier"))
    world.settle("pods", "shop/web")
    copy = world.host("Pod", COPY) or {}
    del copy["metadata"]["annotations"]["vsyncer.dev/containers"]
    proxy = {"name": "proxy", "image": "i"}
    world.given(host=[merged(copy, {"spec": {"containers": [*copy["spec"]["containers"], proxy]}})])
    assert "earlier: the host has a container" in warned(world)
    with_containers(world, debugger("earlier"), debugger("later"))
    world.settle("pods", "shop/web")
    assert recorded(world) == {"containers": ["app"], "ephemeralContainers": ["later"]}


@pytest.mark.parametrize("spoilt", ["", "[]", "{", '{"containers":"app"}'])
def test_record_that_cannot_be_read_names_no_container(world: World, spoilt: str) -> None:
    running(world)
    copy = world.host("Pod", COPY) or {}
    status = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "containerStatuses": [{"name": "app"}]}
    note = {"metadata": {"annotations": {"vsyncer.dev/containers": spoilt}}, "status": status}
    world.given(host=[merged(copy, note)]).settle("pods", "shop/web")
    reported = (world.virtual("Pod", "shop/web") or {})["status"]
    assert (reported["phase"], reported.get("containerStatuses") or []) == ("Running", [])


def test_names_in_an_ephemeral_container_are_translated(world: World) -> None:
    env = [
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "db", "key": "k"}}},
        {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "L", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}},
    ]
    running(world, debugger(env=env, envFrom=[{"configMapRef": {"name": "settings"}}]))
    [container] = sent(world)
    assert container["envFrom"] == [{"configMapRef": {"name": "settings-x-shop-x-vc"}}]
    by_name = {one["name"]: one.get("valueFrom") for one in container["env"]}
    assert by_name["A"] == {"secretKeyRef": {"name": "db-x-shop-x-vc", "key": "k"}}
    assert by_name["N"] == {"fieldRef": {"fieldPath": "metadata.annotations['vsyncer.dev/virtual-name']"}}
    assert by_name["L"] == {"fieldRef": {"fieldPath": "metadata.annotations['vsyncer.dev/pod-labels']"}}
    annotations = (world.host("Pod", COPY) or {})["metadata"]["annotations"]
    assert "vsyncer.dev/pod-labels" in annotations, "it is there before the container starts"


def test_ephemeral_container_gets_the_variables_of_services(world: World) -> None:
    running(world)
    world.given(virtual=[service("db", (5432,))]).settle("services", "shop/db")
    with_containers(world, debugger(env=[{"name": "OWN", "value": "1"}]))
    [container] = sent(world)
    names = [one["name"] for one in container["env"]]
    assert "DB_SERVICE_HOST" in names
    assert names[-1] == "OWN"


def test_insecure_ephemeral_container_is_not_sent_and_the_others_are(world: World) -> None:
    running(world, debugger("bad", securityContext={"privileged": True}), debugger("good"))
    message = warned(world)
    assert "bad: spec: it breaks the Pod Security level baseline" in message
    assert message.endswith("container bad is privileged; kubectl debug takes --profile=baseline")
    assert [one["name"] for one in sent(world)] == ["good"]
    assert warned(world) == message, "it is reported as long as it lasts"


def test_security_context_of_the_pod_counts_for_an_ephemeral_container(world: World) -> None:
    """A container inherits runAsNonRoot, which the level restricted demands."""
    context = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    own = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    world.configure({"sync": {"toHost": {"pods": {"podSecurity": "restricted"}}}})
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    spec = {"securityContext": context, "containers": [{"name": "app", "image": "i", "securityContext": own}]}
    world.given(virtual=[pod("web", spec=spec)]).settle("pods", "shop/web")
    with_containers(world, debugger(securityContext=own), debugger("bare"))
    assert "bare: spec: it breaks the Pod Security level restricted" in warned(world)
    assert [one["name"] for one in sent(world)] == ["debug"]


def test_users_of_the_pods_own_count_for_an_ephemeral_container(world: World) -> None:
    unmasked = debugger(securityContext={"procMount": "Unmasked"})
    running(world, unmasked)
    assert "procMount Unmasked" in warned(world)
    copy = world.host("Pod", COPY) or {}
    world.given(host=[merged(copy, {"spec": {"hostUsers": False}})])
    assert [container["name"] for container in sent(world)] == ["debug"]


def test_number_of_ephemeral_containers_is_bounded(world: World) -> None:
    running(world, *(debugger(f"d{number}") for number in range(5)), maxEphemeralContainers=3)
    assert "a Pod may have 3 of them here, and it has 5" in warned(world)
    assert [one["name"] for one in sent(world)] == ["d0", "d1", "d2"]
    with_containers(world, *(debugger(f"d{number}") for number in range(-1, 5)))
    assert sent(world) == [], "there is no room for another one"


def test_pod_without_any_allowed_ephemeral_container(world: World) -> None:
    running(world, debugger(), maxEphemeralContainers=0)
    assert "a Pod may have 0 of them here" in warned(world)
    assert sent(world) == []


@pytest.mark.parametrize(("most", "expected"), [(20, True), (0, False)])
def test_right_is_asked_for_only_where_ephemeral_containers_are_allowed(
    world: World, most: int, expected: bool
) -> None:
    world.configure({"sync": {"toHost": {"pods": {"maxEphemeralContainers": most}}}})
    right = Right(Side.HOST, PODS, ("patch",), "ephemeralcontainers")
    assert (right in tuple(PodSyncer().rights_with(world.settings))) is expected


def test_ephemeral_container_that_names_something_malformed_is_refused_alone(world: World) -> None:
    bad = debugger("bad", envFrom=[{"secretRef": {"name": 7}}])
    running(world, bad, debugger("good"))
    assert "bad: spec.ephemeralContainers[].envFrom[].secretRef.name: is no text" in warned(world)
    assert [one["name"] for one in sent(world)] == ["good"]


def test_status_goes_up_while_an_ephemeral_container_is_refused(world: World) -> None:
    running(world, debugger(securityContext={"privileged": True}))
    world.given(host=[merged(world.host("Pod", COPY) or {}, {"status": {"phase": "Running", "startTime": "x"}})])
    world.settle("pods", "shop/web")
    assert (world.virtual("Pod", "shop/web") or {})["status"]["phase"] == "Running"


def test_secret_that_only_an_ephemeral_container_names_is_synced() -> None:
    virtual = pod("web", spec={"ephemeralContainers": [debugger(envFrom=[{"secretRef": {"name": "db"}}])]})
    assert ("secrets", "db") in [(resource.plural, key.name) for resource, key in PodSyncer().refers(virtual)]


def test_pod_with_ephemeral_containers_is_created_without_them(world: World) -> None:
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    bad = debugger(envFrom=[{"secretRef": {"name": 7}}])
    world.given(virtual=[pod("web", spec={"ephemeralContainers": [bad]})])
    [write] = decided(world).writes
    assert (write.verb, "ephemeralContainers" in write.obj["spec"]) == (Verb.APPLY, False)
