"""The objects of the chart `virtual-cluster`."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from chart_rendering import ROOT, granted, rendered
from click.testing import CliRunner
from virtual_cluster_scene import (
    CHART,
    EVERYTHING,
    NAME,
    OURS,
    WORKLOADS,
    config,
    containers,
    in_virtual,
    objects,
    pods,
    refusal,
    selectors,
)

from hack.planes import SCHEDULED_CONTROLLERS, VIRTUAL_CONTROLLERS
from syncer.api import Marks, Obj
from syncer.cli.app import app

COPIES = {Marks().namespace_label, Marks().isolated_ingress, Marks().isolated_egress}


def test_selectors_have_a_label_that_no_tenant_can_set() -> None:
    found = objects(EVERYTHING)
    checked = [labels for obj in found.values() for labels in selectors(obj.get("spec"))]
    assert len(checked) >= 8
    # Those of copies have a mark of the daemon's.
    assert [labels for labels in checked if not (set(labels) >= OURS or set(labels) & COPIES)] == []


def test_pods_keep_to_the_level_restricted() -> None:
    found = dict(pods(objects(EVERYTHING)))
    assert len(found) >= 7
    for owner, spec in found.items():
        assert spec["securityContext"]["runAsNonRoot"], owner
        assert spec["securityContext"]["runAsUser"] == 65532, owner
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, owner
        for each in containers(spec):
            context = each["securityContext"]
            assert not context["allowPrivilegeEscalation"], (owner, each["name"])
            assert context["readOnlyRootFilesystem"], (owner, each["name"])
            assert context["capabilities"]["drop"] == ["ALL"], (owner, each["name"])
            added = ["NET_BIND_SERVICE"] if each["name"] == "kube-apiserver" else []
            assert context["capabilities"].get("add", []) == added, (owner, each["name"])


def test_controllers_are_those_that_do_not_fight_the_host() -> None:
    plane = objects()["StatefulSet", f"{NAME}-control-plane"]
    [manager] = plane["spec"]["template"]["spec"]["containers"]
    assert f"--controllers={VIRTUAL_CONTROLLERS}" in manager["command"]


def test_scheduler_of_the_tenants_runs_with_its_own_key_and_the_daemon_waits_for_it() -> None:
    assert "kube-scheduler" not in str(objects())
    found = objects(scheduler={"enabled": True, "extraArgs": {"v": 2}})
    spec = found["StatefulSet", f"{NAME}-control-plane"]["spec"]["template"]["spec"]
    manager, scheduler = spec["containers"]
    assert scheduler["name"] == "kube-scheduler"
    assert {"--kubeconfig=/pki/scheduler.conf", "--leader-elect=false", "--v=2"} <= set(scheduler["command"])
    assert f"--controllers={SCHEDULED_CONTROLLERS}" in manager["command"]
    [keys] = [volume["secret"]["items"] for volume in spec["volumes"] if volume["name"] == "pki-scheduler"]
    assert [item["key"] for item in keys] == ["ca.crt", "scheduler.conf", "scheduler.crt", "scheduler.key"]
    sync = config(found)["sync"]
    assert sync["toHost"]["pods"] == {"scheduler": "virtual"}
    assert sync["fromHost"] == {each: {"enabled": True} for each in ("nodes", "storageClasses", "csiNodes")}
    assert sync["fake"] == {"persistentVolumes": {"nodeAffinity": True}}
    three = objects(scheduler={"enabled": True}, controlPlane={"replicas": 3})
    spec = three["StatefulSet", f"{NAME}-control-plane"]["spec"]["template"]["spec"]
    assert "--leader-elect=true" in spec["containers"][1]["command"]


def test_name_server_is_that_of_the_example() -> None:
    image = "registry.k8s.io/coredns/coredns"
    made = in_virtual(objects())["20-dns.yaml"]
    example = list(yaml.safe_load_all((ROOT / "examples" / "coredns.yaml").read_text()))
    for documents in (made, example):
        [deployment] = [obj for obj in documents if obj["kind"] == "Deployment"]
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        assert container["image"].rpartition(":")[0] == image
        del container["image"]
        container.pop("imagePullPolicy", None)
        deployment["spec"].pop("replicas", None)
    assert made == example


def test_tenant_is_restricted_in_a_namespace_of_its_own() -> None:
    found = objects(EVERYTHING)
    labels = found["Namespace", WORKLOADS]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
    for kind in ("ResourceQuota", "LimitRange"):
        assert {obj["metadata"]["namespace"] for (each, _), obj in found.items() if each == kind} == {WORKLOADS}
    policy, egress = found["NetworkPolicy", NAME], found["NetworkPolicy", f"{NAME}-egress"]
    assert policy["metadata"]["namespace"] == egress["metadata"]["namespace"] == WORKLOADS
    assert policy["spec"]["podSelector"] == {}
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    rules = [*policy["spec"]["egress"], *egress["spec"]["egress"]]
    outside = [peer["ipBlock"] for rule in rules for peer in rule.get("to", []) if "ipBlock" in peer]
    assert all("10.0.0.0/8" in block["except"] for block in outside), "nothing of the host's own networks"
    assert config(found)["host"]["namespace"] == WORKLOADS
    assert {obj["metadata"]["namespace"] for (kind, _), obj in found.items() if kind == "StatefulSet"} == {"shop"}


def test_namespace_of_the_control_plane_is_refused_for_workloads() -> None:
    assert "workloads.namespace" in refusal({"workloads": {"namespace": "shop"}})


def test_private_keys_are_seen_by_their_users_alone() -> None:
    """A CA's key above all; that of etcd's CA and of the front proxy's is seen by nothing that runs all the time."""
    spec = objects()["StatefulSet", f"{NAME}-control-plane"]["spec"]["template"]["spec"]
    files = {
        volume["name"]: {item["key"] for item in volume["secret"]["items"]}
        for volume in spec["volumes"]
        if "secret" in volume
    }
    keys = {
        each["name"]: {
            key
            for mount in each["volumeMounts"]
            for key in files.get(mount["name"], ())
            if key.endswith((".key", ".conf"))
        }
        for each in containers(spec)
    }
    assert keys == {
        "etcd": {"etcd-server.key", "etcd-peer.key"},
        "kube-apiserver": {
            "apiserver.key",
            "apiserver-kubelet-client.key",
            "front-proxy-client.key",
            "apiserver-etcd-client.key",
            "sa.key",
        },
        "kube-controller-manager": {"ca.key", "sa.key", "controller-manager.key", "controller-manager.conf"},
    }
    for owner, each in pods(objects(EVERYTHING)):
        if "control-plane" not in owner:
            secrets = [volume["secret"] for volume in each["volumes"] if "secret" in volume]
            mounted = [
                item["key"] for secret in secrets if secret["secretName"] == f"{NAME}-pki" for item in secret["items"]
            ]
            assert mounted == (["super-admin.conf"] if f"{NAME}-manifests-" in owner else []), owner


def test_programs_of_the_control_plane_start_in_order_and_three_know_each_other() -> None:
    spec = objects(controlPlane={"replicas": 3})["StatefulSet", f"{NAME}-control-plane"]["spec"]
    assert spec["podManagementPolicy"] == "Parallel"
    etcd, server = spec["template"]["spec"]["initContainers"]
    assert [each["restartPolicy"] for each in (etcd, server)] == ["Always", "Always"]
    assert all(each["startupProbe"] for each in (etcd, server))
    [members] = [flag for flag in etcd["command"] if flag.startswith("--initial-cluster=")]
    assert members.removeprefix("--initial-cluster=").split(",") == [
        f"{NAME}-control-plane-{n}=https://{NAME}-control-plane-{n}.{NAME}-etcd.shop.svc:2380" for n in range(3)
    ]
    [manager] = spec["template"]["spec"]["containers"]
    assert "--leader-elect=true" in manager["command"]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"controlPlane": {"replicas": 2}}, "set 1 or 3"),
        ({"controlPlane": {"replicas": 3}, "etcd": {"persistence": {"enabled": False}}}, "can't come back"),
        ({"syncer": {"config": {"cluster": "x"}}}, "the value `cluster`"),
        ({"syncer": {"config": {"host": {"namespace": "x"}}}}, "workloads.namespace"),
        *(
            ({"kubernetesVersion": version}, "v1.32.0 or later")
            for version in ("1.36.3", "v1.30.0", "v1.36", "latest", "")
        ),
        ({"workloads": {"namespace": "kube-system"}}, "the host's own"),
        ({"ingress": {"enabled": True}}, "ingress.host"),
        (
            {
                "ingress": {"enabled": True, "host": "a.example.com"},
                "gateway": {"enabled": True, "host": "b.example.com", "parentRefs": [{"name": "public"}]},
            },
            "kubeconfig.server",
        ),
        ({"gateway": {"enabled": True, "host": "x.example.com"}}, "gateway.parentRefs"),
    ],
)
def test_values_that_cannot_work_are_refused(values: Obj, reason: str) -> None:
    assert reason in refusal(values)


def test_configuration_is_passed_through_over_values_of_the_chart() -> None:
    given = {"sync": {"toHost": {"ingresses": {"enabled": True}}}, "kubelet": {"enabled": False}, "workers": 8}
    made = config(objects(syncer={"config": given}))
    assert {name: made[name] for name in given} == given
    assert made["networking"]["apiServer"]["service"] == f"shop/{NAME}"
    assert made["leaderElection"] == {"enabled": True, "namespace": "shop"}
    assert made["page"] == {"address": "127.0.0.1:8082"}
    assert config(objects(syncer={"page": {"enabled": False}}))["page"] == {"address": "0"}
    assert made["virtual"]["kubeconfig"] == f"/etc/vsyncer/virtual/{NAME}/config"


def test_change_of_the_configuration_restarts_the_daemon_alone() -> None:
    before, after = objects(), objects(syncer={"config": {"workers": 8}})
    assert before["Deployment", f"{NAME}-syncer"]["spec"] != after["Deployment", f"{NAME}-syncer"]["spec"]
    assert before["StatefulSet", f"{NAME}-control-plane"] == after["StatefulSet", f"{NAME}-control-plane"]


def test_jobs_get_another_name_only_with_another_task() -> None:
    def jobs(found: Mapping[tuple[str, str], Obj]) -> set[str]:
        return {name for kind, name in found if kind == "Job" and f"{NAME}-uninstall" not in name}

    before = jobs(objects())
    assert jobs(objects(syncer={"replicas": 2})) == before
    [pki] = before - jobs(objects(apiServer={"names": ["shop.example.com"]}))
    assert pki.startswith(f"{NAME}-pki-")
    [manifests] = before - jobs(objects(dns={"replicas": 2}))
    assert manifests.startswith(f"{NAME}-manifests-")


def test_names_of_the_api_server_are_in_its_certificate_and_in_the_kubeconfig() -> None:
    found = objects(ingress={"enabled": True, "host": "shop.example.com"}, apiServer={"names": ["192.0.2.1"]})
    [arguments] = [spec["containers"][0]["args"] for owner, spec in pods(found) if owner.startswith("CronJob")]
    assert {"--name=shop.example.com", "--name=192.0.2.1", "--server=https://shop.example.com"} <= set(arguments)
    given = objects(kubeconfig={"server": "https://other.example.com"}, ingress={"enabled": True, "host": "x.example"})
    [arguments] = [spec["containers"][0]["args"] for owner, spec in pods(given) if owner.startswith("CronJob")]
    assert "--server=https://other.example.com" in arguments


def test_load_balancer_is_waited_for_by_the_first_job() -> None:
    found = objects(service={"type": "LoadBalancer", "loadBalancerSourceRanges": ["192.0.2.0/24"]})
    assert found["Service", NAME]["spec"]["loadBalancerSourceRanges"] == ["192.0.2.0/24"]
    waits = {
        owner.split()[0]: "--wait=120" in spec["containers"][0]["args"]
        for owner, spec in pods(found)
        if f" {NAME}-pki" in owner
    }
    assert waits == {"Job": True, "CronJob": False}


def test_flags_of_the_user_win_and_lists_repeat() -> None:
    given = {"extraArgs": {"v": 4, "profiling": True, "feature-gates": ["A=true", "B=true"], "event-ttl": "2h"}}
    spec = objects(apiServer=given)["StatefulSet", f"{NAME}-control-plane"]["spec"]["template"]["spec"]
    command = spec["initContainers"][1]["command"]
    assert {"--v=4", "--profiling=true", "--feature-gates=A=true", "--feature-gates=B=true", "--event-ttl=2h"} <= {
        *command
    }
    assert "--profiling=false" not in command


def test_authentication_and_audit_are_kubernetes_own_files() -> None:
    issuer = {"issuer": {"url": "https://id.example.com", "audiences": ["shop"]}}
    found = objects(
        apiServer={
            "authentication": {"jwt": [issuer]},
            "audit": {"policy": {"rules": [{"level": "Metadata"}]}},
        }
    )
    data = found["ConfigMap", f"{NAME}-control-plane"]["data"]
    authentication = yaml.safe_load(data["authentication.yaml"])
    assert authentication["jwt"] == [issuer]
    assert authentication["anonymous"]["conditions"] == [{"path": p} for p in ("/livez", "/readyz", "/healthz")]
    assert yaml.safe_load(data["audit.yaml"])["kind"] == "Policy"
    command = found["StatefulSet", f"{NAME}-control-plane"]["spec"]["template"]["spec"]["initContainers"][1]["command"]
    assert "--audit-policy-file=/settings/audit.yaml" in command


def test_plugins_are_in_folders_of_their_own_wherever_the_daemon_runs() -> None:
    found = dict(pods(objects(EVERYTHING)))
    for owner in (f"Deployment {NAME}-syncer", f"Job {NAME}-uninstall", f"Pod {NAME}-syncer-test"):
        spec = found[owner]
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        assert volumes["plugin-foo"]["image"]["reference"] == "example.org/foo:1"
        assert volumes["plugin-bar"]["emptyDir"] == {}
        mounts = {mount["mountPath"]: mount for mount in spec["containers"][0]["volumeMounts"]}
        assert mounts["/plugins/foo"]["subPath"] == "plugin"
        assert mounts["/plugins/bar"]["readOnly"]
        [copies] = [each for each in spec["initContainers"] if each["name"] == "plugin-bar"]
        assert copies["command"] == ["cp", "-r", "/plugin/.", "/plugins/bar/"]


def test_names_have_room_in_labels_however_long_the_release_is_named() -> None:
    long = "r" * 53
    for each in rendered(CHART, EVERYTHING, release=long, options=["--namespace=shop"]):
        assert len(each["metadata"]["name"]) <= (52 if each["kind"] == "CronJob" else 63), each["metadata"]["name"]
        if each["kind"] == "StatefulSet":
            assert len(each["metadata"]["name"]) + len("-0123456789") <= 63


def test_volumes_go_with_the_release_unless_they_are_kept_with_their_keys() -> None:
    def policy(found: Mapping[tuple[str, str], Obj]) -> str:
        spec = found["StatefulSet", f"{NAME}-control-plane"]["spec"]
        return str(spec["persistentVolumeClaimRetentionPolicy"]["whenDeleted"])

    kept = objects(etcd={"persistence": {"keep": True}})
    assert policy(objects()) == "Delete"
    assert policy(kept) == "Retain"
    for owner, spec in pods(kept):
        if f" {NAME}-pki" in owner:
            assert "--keep" in spec["containers"][0]["args"]


def test_further_objects_know_the_release() -> None:
    given = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-more"}}]
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ include \"vsyncer.fullname\" . }}-text'}\n"
    found = objects(extraObjects=[*given, text])
    assert {("ConfigMap", "shop-more"), ("ConfigMap", f"{NAME}-text")} <= found.keys()


def test_job_of_certificates_has_the_rights_that_it_needs() -> None:
    printed = CliRunner().invoke(app, ["pki", "--namespace=shop", f"--service={NAME}", "--rbac"])
    wanted = yaml.safe_load(printed.output)
    made = objects()["Role", f"{NAME}-pki"]
    assert made["metadata"]["name"] == wanted["metadata"]["name"]
    assert granted([made]) == granted([wanted])


def test_containers_have_a_limit_of_memory_and_temporary_files_one_of_size() -> None:
    wanted = {
        "kube-apiserver": "2Gi",
        "etcd": "1Gi",
        "kube-controller-manager": "512Mi",
        "syncer": "512Mi",
        "apply": "256Mi",
    }
    found = dict(pods(objects({**EVERYTHING, "backup": {"enabled": True}})))
    limits = {
        each["name"]: each["resources"]["limits"]["memory"] for spec in found.values() for each in containers(spec)
    }
    assert limits | wanted == limits
    sizes = {
        owner: volume["emptyDir"].get("sizeLimit")
        for owner, spec in found.items()
        for volume in spec["volumes"]
        if volume["name"] == "tmp"
    }
    assert len(sizes) >= 7
    assert set(sizes.values()) == {"64Mi"}


def test_pod_that_the_test_runs_in_the_virtual_cluster_fits_into_a_quota_of_resources() -> None:
    resources = {"requests": {"cpu": "20m"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    test = objects(jobs={"resources": resources})["ConfigMap", f"{NAME}-test"]["data"]["pod.yaml"]
    [container] = yaml.safe_load(test)["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": resources["limits"]}


def test_jobs_end_and_late_ones_of_a_schedule_still_start() -> None:
    restore = {"snapshot": "before", "running": True}
    found = objects(backup={"enabled": True}, restore=restore) | objects()
    for (kind, name), obj in found.items():
        if kind == "CronJob":
            assert obj["spec"]["startingDeadlineSeconds"] == 3600, name
            assert obj["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] == 600, name
        elif kind == "Job" and f"{NAME}-uninstall" not in name:
            # As long as the control plane may take to start.
            assert obj["spec"]["activeDeadlineSeconds"] == 3600, name
    [spec] = [spec for owner, spec in pods(found) if owner.startswith(f"Job {NAME}-manifests")]
    assert "--request-timeout=30s" in spec["containers"][0]["args"]


def test_numbers_of_the_tenants_objects_are_bounded() -> None:
    def hard(found: Mapping[tuple[str, str], Obj]) -> Obj:
        made: Obj = found["ResourceQuota", NAME]["spec"]["hard"]
        return made

    assert hard(objects()).keys() >= {"pods", "services", "configmaps", "secrets", "count/serviceaccounts"}
    given = hard(objects(workloads={"resourceQuota": {"hard": {"requests.cpu": "8", "pods": "10"}}}))
    assert given == {**hard(objects()), "requests.cpu": "8", "pods": "10"}
    assert ("ResourceQuota", NAME) not in objects(workloads={"resourceQuota": None})


def test_three_control_planes_are_on_nodes_of_their_own_if_possible() -> None:
    def affinity(**values: Any) -> Any:
        spec = objects(controlPlane=values)["StatefulSet", f"{NAME}-control-plane"]["spec"]["template"]["spec"]
        return spec.get("affinity")

    [term] = affinity(replicas=3)["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    labels = {"vsyncer.dev/part": "control-plane", "app.kubernetes.io/instance": "shop"}
    assert term["podAffinityTerm"]["labelSelector"] == {"matchLabels": labels}
    assert term["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    assert affinity() is None
    own = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term["podAffinityTerm"]]}}
    assert affinity(replicas=3, affinity=own) == own


def test_token_of_the_host_is_not_where_the_tenants_server_is_asked() -> None:
    [spec] = [spec for owner, spec in pods(objects()) if owner.startswith(f"Job {NAME}-manifests")]
    assert spec["automountServiceAccountToken"] is False
    [token] = [
        volume["name"]
        for volume in spec["volumes"]
        for source in volume.get("projected", {}).get("sources", [])
        if "serviceAccountToken" in source
    ]
    users = {
        each["name"]: mount["mountPath"]
        for each in containers(spec)
        for mount in each["volumeMounts"]
        if mount["name"] == token
    }
    assert users == {"wait": "/var/run/secrets/kubernetes.io/serviceaccount"}
