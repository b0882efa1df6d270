"""The host pod of a virtual Pod."""

import copy
import re
from typing import Any

import pytest
from go_modules import folder_of

from syncer.api import Obj, key_of
from syncer.resources.pods.env import MOST_PORTS, pod_variables
from syncer.resources.pods.spec import DROPPED, host_pod
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import pod, service, serviceaccount

API_ACCESS = {
    "name": "kube-api-access-1",
    "projected": {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
        ],
    },
}


def made(world: World, virtual: Obj) -> Obj:
    """Return the host pod; what it is made of must stay as it was."""
    world.given(virtual=[virtual])
    found = world.virtual("Pod", str(key_of(virtual))) or {}
    before = copy.deepcopy(found)
    ctx = world.context("pods")
    result = host_pod(ctx, found, pod_variables(ctx, found).env)
    assert found == before
    return result


def spec_of(world: World, virtual: Obj) -> Obj:
    result: Obj = made(world, virtual)["spec"]
    return result


def test_names_become_those_of_the_copies(world: World) -> None:
    spec = spec_of(
        world,
        pod(
            "web",
            spec={
                "volumes": [{"name": "a", "configMap": {"name": "settings"}}, {"name": "b", "emptyDir": {}}],
                "imagePullSecrets": [{"name": "pull"}],
                "serviceAccountName": "robot",
                "serviceAccount": "robot",
            },
        ),
    )
    assert spec["volumes"] == [
        {"name": "a", "configMap": {"name": "settings-x-shop-x-vc"}},
        {"name": "b", "emptyDir": {}},
    ]
    assert spec["imagePullSecrets"] == [{"name": "pull-x-shop-x-vc"}]
    assert spec["serviceAccountName"] == "robot-x-shop-x-vc"
    assert "serviceAccount" not in spec


def test_name_is_translated_also_where_its_kind_is_not_synced(world: World) -> None:
    """Otherwise a tenant could mount what others have in the host namespace."""
    world.configure({"sync": {"toHost": {"secrets": {"enabled": False}}}})
    spec = spec_of(world, pod("web", spec={"volumes": [{"name": "a", "secret": {"secretName": "admin"}}]}))
    assert spec["volumes"][0]["secret"]["secretName"] == "admin-x-shop-x-vc"


def test_pod_runs_as_the_hosts_default_without_the_accounts(world: World) -> None:
    world.configure({"sync": {"toHost": {"serviceAccounts": {"enabled": False}}}})
    assert "serviceAccountName" not in spec_of(world, pod("web"))


def test_host_gives_it_neither_a_token_nor_its_own_services(world: World) -> None:
    spec = spec_of(world, pod("web", spec={"automountServiceAccountToken": True, "enableServiceLinks": True}))
    assert (spec["automountServiceAccountToken"], spec["enableServiceLinks"]) == (False, False)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("priority", 100),
        ("priorityClassName", "high"),
        ("preemptionPolicy", "Never"),
        ("overhead", {"cpu": "1"}),
        ("ephemeralContainers", [{"name": "debug"}]),
        ("schedulingGates", [{"name": "example.org/hold"}]),
    ],
)
def test_fields_that_the_host_would_refuse_stay_behind(world: World, field: str, value: Any) -> None:
    assert field not in spec_of(world, pod("web", spec={field: value}))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("nodeName", "n1"),
        ("nodeSelector", {"disk": "ssd"}),
        ("runtimeClassName", "gvisor"),
        ("schedulerName", "mine"),
        ("tolerations", [{"operator": "Exists"}]),
        ("hostname", "other"),
        ("subdomain", "db"),
        ("readinessGates", [{"conditionType": "example.org/ready"}]),
        ("terminationGracePeriodSeconds", 7),
        ("aFieldOfTheFuture", {"a": 1}),
    ],
)
def test_other_fields_cross_unchanged(world: World, field: str, value: Any) -> None:
    assert spec_of(world, pod("web", spec={field: value}))[field] == value


@pytest.mark.parametrize(
    ("name", "hostname"),
    [("web", "web"), ("web.a.b", "web-a-b"), ("w" * 70, "w" * 63), ("w" * 62 + "-x-y", "w" * 62)],
)
def test_host_name_of_a_pod_is_its_virtual_name(world: World, name: str, hostname: str) -> None:
    assert spec_of(world, pod(name))["hostname"] == hostname


def test_overridden_host_name_stands_alone(world: World) -> None:
    assert "hostname" not in spec_of(world, pod("web", spec={"hostnameOverride": "web.example.org"}))


def test_token_ca_and_namespace_are_those_of_the_virtual_cluster(world: World) -> None:
    [volume] = spec_of(world, pod("web", spec={"volumes": [API_ACCESS]}))["volumes"]
    namespace = {
        "path": "namespace",
        "fieldRef": {"fieldPath": "metadata.annotations['vsyncer.dev/virtual-namespace']"},
    }
    assert volume["projected"] == {
        "defaultMode": 420,
        "sources": [
            {
                "secret": {
                    "name": "web.pod-tokens-x-shop-x-vc",
                    "items": [{"key": "kube-api-access-1.0", "path": "token"}],
                }
            },
            {"configMap": {"name": "kube-root-ca.crt-x-shop-x-vc", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [namespace]}},
        ],
    }


@pytest.mark.parametrize(
    ("of_pod", "users", "mode"),
    [
        pytest.param({}, [None, None], None, id="no user"),
        pytest.param({"fsGroup": 7}, [None, None], 0o600, id="the kubelet lets the group read"),
        pytest.param({"fsGroup": 0, "runAsUser": 7}, [None, None], 0o600, id="a group, and a user in it"),
        pytest.param({"runAsUser": 0}, [None, None], 0o600, id="root alone"),
        pytest.param({}, [0, 0], 0o600, id="root in each container"),
        pytest.param({"runAsUser": 0}, [None, 7], None, id="root and another"),
        pytest.param({"runAsUser": 7}, [None, 7], 0o644, id="one user, who isn't root"),
        pytest.param({"runAsUser": 7}, [8, 9], None, id="several users"),
        pytest.param({}, [7, None], None, id="a user whom an image says"),
    ],
)
def test_token_is_for_whom_a_kubelets_own_would_be(
    world: World, of_pod: Obj, users: list[int | None], mode: int | None
) -> None:
    contexts = [{} if user is None else {"runAsUser": user} for user in users]
    containers = [{"name": f"c{n}", "image": "i", "securityContext": each} for n, each in enumerate(contexts)]
    parts = {"containers": containers[:1], "initContainers": containers[1:]}
    spec = spec_of(world, pod("web", spec={"securityContext": of_pod, "volumes": [API_ACCESS], **parts}))
    [item] = spec["volumes"][0]["projected"]["sources"][0]["secret"]["items"]
    assert item.get("mode") == mode


def test_token_is_the_hosts_without_pod_tokens(world: World) -> None:
    world.configure({"sync": {"toHost": {"podTokens": {"enabled": False}}}})
    [volume] = spec_of(world, pod("web", spec={"volumes": [API_ACCESS]}))["volumes"]
    assert volume["projected"]["sources"][0] == API_ACCESS["projected"]["sources"][0]  # type: ignore[index]


def test_ephemeral_volume_is_the_claim_that_is_made_for_it(world: World) -> None:
    ephemeral = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    [volume] = spec_of(world, pod("web", spec={"volumes": [ephemeral]}))["volumes"]
    assert volume == {"name": "scratch", "persistentVolumeClaim": {"claimName": "web-scratch-x-shop-x-vc"}}


def test_labels_pass_and_marks_cannot_be_forged(world: World) -> None:
    labels = {"app": "web", "vsyncer.dev/cluster": "other", "vsyncer.dev/namespace": "other"}
    metadata = made(world, pod("web", metadata={"labels": labels, "finalizers": ["a/b"], "ownerReferences": [{}]}))
    assert metadata["metadata"]["labels"] == {
        "app": "web",
        "vsyncer.dev/cluster": "vc.vc-ns",
        "vsyncer.dev/namespace": "shop",
    }
    assert not {"finalizers", "ownerReferences"} & metadata["metadata"].keys()


# -- environment -----------------------------------------------------------------------------------


def with_address(world: World, name: str, address: str, namespace: str = "shop", **spec: Any) -> None:
    world.given(virtual=[service(name, namespace=namespace, spec=spec)])
    world.settle("services", f"{namespace}/{name}")
    copy_path = f"vc-ns/{name}-x-{namespace}-x-vc"
    copy = world.host("Service", copy_path) or {}
    copy["spec"]["clusterIP"] = address
    world.given(host=[copy])


def env_of(spec: Obj) -> dict[str, Any]:
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in spec["containers"][0].get("env", [])}


def test_services_of_its_namespace_are_in_its_environment_with_the_hosts_addresses(world: World) -> None:
    ports = [{"name": "sql", "port": 5432}, {"name": "web-ui", "port": 80, "protocol": "UDP"}]
    with_address(world, "my-db", "10.1.0.1", ports=ports)
    with_address(world, "elsewhere", "10.1.0.2", namespace="other")
    with_address(world, "headless", "None")
    assert env_of(spec_of(world, pod("web"))) == {
        "MY_DB_SERVICE_HOST": "10.1.0.1",
        "MY_DB_SERVICE_PORT": "5432",
        "MY_DB_SERVICE_PORT_SQL": "5432",
        "MY_DB_SERVICE_PORT_WEB_UI": "80",
        "MY_DB_PORT": "tcp://10.1.0.1:5432",
        "MY_DB_PORT_5432_TCP": "tcp://10.1.0.1:5432",
        "MY_DB_PORT_5432_TCP_PROTO": "tcp",
        "MY_DB_PORT_5432_TCP_PORT": "5432",
        "MY_DB_PORT_5432_TCP_ADDR": "10.1.0.1",
        "MY_DB_PORT_80_UDP": "udp://10.1.0.1:80",
        "MY_DB_PORT_80_UDP_PROTO": "udp",
        "MY_DB_PORT_80_UDP_PORT": "80",
        "MY_DB_PORT_80_UDP_ADDR": "10.1.0.1",
    }
    assert env_of(spec_of(world, pod("quiet", spec={"enableServiceLinks": False}))) == {}


def links(world: World, virtual: Obj) -> tuple[list[str], str]:
    """Return the names of the Services whose variables a Pod gets, and the sentence about the others."""
    world.given(virtual=[virtual])
    variables, message, _ = pod_variables(world.context("pods"), virtual)
    hosts = [one["name"].removesuffix("_SERVICE_HOST") for one in variables if one["name"].endswith("_SERVICE_HOST")]
    return hosts, message


def with_ports(number: int) -> list[Obj]:
    return [{"name": f"p{port}", "port": port} for port in range(1, number + 1)]


def test_services_variables_are_left_out_whole_beyond_a_number_of_bytes_in_all_containers(world: World) -> None:
    for name in ("a", "b", "d"):
        with_address(world, name, "10.1.0.1", ports=with_ports(90))
    with_address(world, "c", "10.1.0.1", ports=with_ports(1))
    few, many = ([{"name": f"c{number}", "image": "i"} for number in range(count)] for count in (2, 10))
    assert links(world, pod("web", spec={"containers": few})) == (["A", "B", "C", "D"], "")
    [a, c], message = links(world, pod("web", spec={"containers": many[:5], "initContainers": many[5:]}))
    assert (a, c) == ("A", "C"), "a small one still fits"
    assert "no environment variables of 2 Services of this namespace" in message
    assert "enableServiceLinks: false" in message


def test_services_variables_never_displace_those_of_the_api_server(world: World) -> None:
    world.configure({"networking": {"apiServer": {"host": "10.0.0.1", "port": 443}}})
    with_address(world, "a", "10.1.0.1", ports=with_ports(1))
    containers = [{"name": f"c{number}", "image": "i"} for number in range(10_000)]
    assert links(world, pod("web", spec={"containers": containers}))[0] == ["KUBERNETES"]


def test_service_with_too_many_ports_is_left_out_without_being_read(world: World) -> None:
    with_address(world, "a", "10.1.0.1", ports=with_ports(MOST_PORTS + 1))
    with_address(world, "b", "10.1.0.1", ports=with_ports(MOST_PORTS))
    hosts, message = links(world, pod("web"))
    assert (hosts, "of 1 Services" in message) == (["B"], True)


def test_pod_without_some_variables_is_created_and_warned_of(world: World) -> None:
    dns = {"dns": {"service": ""}}
    world.configure({"networking": dns, "sync": {"toHost": {"serviceAccounts": {"enabled": False}}}})
    with_address(world, "a", "10.1.0.1", ports=with_ports(MOST_PORTS + 1))
    world.given(virtual=[pod("web"), pod("quiet", spec={"enableServiceLinks": False})])
    decision = world.decide("pods", "shop/web")
    assert decision.writes
    assert decision.warning is not None
    assert decision.warning.reason == "ServiceLinksLeftOut"
    assert world.decide("pods", "shop/quiet").warning is None


def test_api_server_is_the_virtual_one_and_the_pods_own_variables_win(world: World) -> None:
    world.configure({"networking": {"apiServer": {"host": "2001:db8::1", "port": 6443}}})
    own = [{"name": "KUBERNETES_SERVICE_HOST", "value": "mine"}, {"name": "URL", "value": "$(KUBERNETES_PORT)"}]
    containers = [{"name": "app", "image": "i", "env": own}]
    spec = spec_of(world, pod("web", spec={"containers": containers, "initContainers": containers}))
    env = env_of(spec)
    assert env["KUBERNETES_SERVICE_HOST"] == "mine"
    assert env["KUBERNETES_SERVICE_PORT_HTTPS"] == "6443"
    assert env["KUBERNETES_PORT"] == "tcp://[2001:db8::1]:6443"
    assert list(env)[-2:] == ["KUBERNETES_SERVICE_HOST", "URL"], "what it refers to must come before"
    assert spec["initContainers"] == spec["containers"]


def aliases(world: World, *, namespace: str = "shop", port: int = 443, **spec: Any) -> Any:
    """Return the names in ``/etc/hosts`` of a pod whose API server is at 10.96.0.7."""
    world.configure({"networking": {"apiServer": {"host": "10.96.0.7", "port": port}}})
    given = [serviceaccount("default", namespace=namespace)]
    world.given(virtual=given).settle("serviceaccounts", f"{namespace}/default")
    return spec_of(world, pod("web", namespace=namespace, spec=spec)).get("hostAliases")


def test_names_of_the_api_server_lead_to_it_with_any_dns_server(world: World) -> None:
    names = ["kubernetes.default.svc.cluster.local", "kubernetes.default.svc", "kubernetes.default"]
    own = {"ip": "192.0.2.1", "hostnames": ["own"]}
    assert aliases(world, dnsPolicy="Default", hostAliases=[own]) == [own, {"ip": "10.96.0.7", "hostnames": names}]


def test_short_name_of_the_api_server_is_one_of_its_own_namespace_alone(world: World) -> None:
    [alias] = aliases(world, namespace="default")
    assert alias["hostnames"][-1] == "kubernetes"


def test_names_of_the_api_server_are_left_to_dns_at_another_port_or_a_name(world: World) -> None:
    assert aliases(world, port=6443) is None
    world.configure({"networking": {"apiServer": {"host": "api.example.org"}}})
    assert "hostAliases" not in spec_of(world, pod("other"))


# -- DNS -------------------------------------------------------------------------------------------


@pytest.fixture
def dns(world: World) -> World:
    with_address(world, "kube-dns", "10.1.0.10", namespace="kube-system")
    return world


def test_cluster_first_means_the_virtual_clusters_dns(dns: World) -> None:
    spec = spec_of(dns, pod("web", spec={"dnsPolicy": "ClusterFirst"}))
    assert spec["dnsPolicy"] == "None"
    assert spec["dnsConfig"] == {
        "nameservers": ["10.1.0.10"],
        "searches": ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local"],
        "options": [{"name": "ndots", "value": "5"}],
    }


def test_dns_settings_of_a_pod_are_merged_within_the_limits(dns: World) -> None:
    given = {
        "nameservers": ["192.0.2.1", "10.1.0.10", "192.0.2.2", "192.0.2.3"],
        "searches": ["example.org", "svc.cluster.local"],
        "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
    }
    config = spec_of(dns, pod("web", spec={"dnsConfig": given}))["dnsConfig"]
    assert config["nameservers"] == ["10.1.0.10", "192.0.2.1", "192.0.2.2"]
    assert config["searches"] == ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local", "example.org"]
    assert config["options"] == [{"name": "ndots", "value": "2"}, {"name": "edns0"}]


@pytest.mark.parametrize(
    "given",
    [{"dnsPolicy": "Default"}, {"dnsPolicy": "ClusterFirst", "hostNetwork": True}, {"dnsPolicy": "None"}],
)
def test_pod_without_the_clusters_dns_is_left_alone(dns: World, given: Obj) -> None:
    spec = spec_of(dns, pod("web", spec=given))
    assert (spec["dnsPolicy"], "dnsConfig" in spec) == (given["dnsPolicy"], False)


def test_pod_on_the_hosts_network_can_use_the_clusters_dns(dns: World) -> None:
    spec = spec_of(dns, pod("web", spec={"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": True}))
    assert spec["dnsConfig"]["nameservers"] == ["10.1.0.10"]


def test_dns_of_the_host_is_used_without_a_dns_service(world: World) -> None:
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    world.given(virtual=[pod("web", spec={"dnsPolicy": "ClusterFirst"})])
    [write] = world.decide("pods", "shop/web").writes
    assert write.obj["spec"]["dnsPolicy"] == "ClusterFirst"


#: The fields of a Pod's spec in Kubernetes 1.36. All but those of `DROPPED` go to the host, translated if they name
#: something: for a new one that has to be decided.
# fmt: off
FIELDS = [
    "activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "containers", "dnsConfig",
    "dnsPolicy", "enableServiceLinks", "ephemeralContainers", "hostAliases", "hostIPC",
    "hostNetwork", "hostPID", "hostUsers", "hostname", "hostnameOverride", "imagePullSecrets",
    "initContainers", "nodeName", "nodeSelector", "os", "overhead", "preemptionPolicy", "priority",
    "priorityClassName", "readinessGates", "resourceClaims", "resources", "restartPolicy",
    "runtimeClassName", "schedulerName", "schedulingGates", "schedulingGroup", "securityContext",
    "serviceAccount", "serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace",
    "subdomain", "terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints",
    "volumes",
]
# fmt: on


def test_fields_of_a_pod_are_those_of_the_kubernetes_that_the_tests_run() -> None:
    source = (folder_of("k8s.io/api") / "core" / "v1" / "types.go").read_text()
    [spec] = re.findall(r"^type PodSpec struct \{\n(.*?)^\}", source, re.MULTILINE | re.DOTALL)
    assert sorted(re.findall(r'^\t\w.*`json:"(\w+)', spec, re.MULTILINE)) == FIELDS
    assert not DROPPED - {*FIELDS, "workloadRef"}, "the latter is of 1.35"


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"schedulingGroup": {"podGroupName": "workers"}}, "spec.schedulingGroup"),
        ({"workloadRef": {"name": "training", "podGroup": "workers"}}, "spec.workloadRef"),
        ({"priorityClassName": "system-node-critical"}, "spec.priorityClassName"),
    ],
)
def test_event_names_a_field_that_is_not_sent(world: World, spec: Obj, path: str) -> None:
    world.given(virtual=[pod("web", spec=spec), serviceaccount("default")])
    world.settle("serviceaccounts", "shop/default")
    assert world.left_out("pods", "shop/web") == (path,)
    world.settle("pods", "shop/web")
    assert world.left_out("pods", "shop/web") == (path,), "one message, as it stays the same"


def test_event_names_a_class_that_the_operators_replaces(world: World) -> None:
    world.configure({"sync": {"toHost": {"pods": {"priorityClassName": "tenants"}}}})
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    for named, left_out in (("system-node-critical", ("spec.priorityClassName",)), ("tenants", ()), ("", ())):
        name = named or "none"
        world.given(virtual=[pod(name, spec={"priorityClassName": named})])
        assert world.left_out("pods", f"shop/{name}") == left_out
        world.settle("pods", f"shop/{name}")
        assert world.left_out("pods", f"shop/{name}") == left_out


def test_event_names_a_field_dropped_by_the_host(world: World) -> None:
    container = {"name": "main", "image": "i", "restartPolicyRules": [{"action": "Restart"}], "resizePolicy": [{}]}
    spec = {"hostUsers": False, "containers": [container], "setHostnameAsFQDN": None, "nodeSelector": {}}
    world.given(virtual=[pod("web", spec=spec), serviceaccount("default")])
    world.settle("serviceaccounts", "shop/default")
    world.settle("pods", "shop/web")
    assert world.left_out("pods", "shop/web") == ()
    older = world.host("Pod", "vc-ns/web-x-shop-x-vc") or {}
    for name in ("hostUsers", "setHostnameAsFQDN", "nodeSelector"):
        older["spec"].pop(name, None)
    older["spec"]["containers"] = [{"name": "main", "image": "i"}, {"name": "mesh", "image": "m"}]
    world.given(host=[older])
    assert world.left_out("pods", "shop/web") == ("spec.hostUsers", "spec.containers[].restartPolicyRules")


def test_no_event_names_defaulted_fields(world: World) -> None:
    usual = {
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "enableServiceLinks": True,
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
    }
    world.given(virtual=[pod("web", spec=usual), serviceaccount("default")])
    world.settle("serviceaccounts", "shop/default")
    assert world.left_out("pods", "shop/web") == ()
    world.settle("pods", "shop/web")
    bound = merged(world.virtual("Pod", "shop/web") or {}, {"spec": {"nodeName": "n1", "overhead": {"cpu": "1"}}})
    assert world.given(virtual=[bound]).left_out("pods", "shop/web") == ()
