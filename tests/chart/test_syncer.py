"""The objects of the chart `syncer`."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from chart_rendering import CHARTS, Unrenderable, helm, rendered

from hack.chart_build import built
from syncer.api import Obj
from syncer.config import build, parse
from syncer.plugins import installed
from syncer.version import VERSION

#: Looked up once: each time, all built-in syncers are checked.
INSTALLED = installed()

CHART = CHARTS / "syncer"
SHOP: Mapping[str, Any] = {
    "name": "shop",
    "hostNamespace": "vc-shop",
    "kubeconfigSecret": {"name": "shop-kubeconfig", "key": "value"},
    "networking": {"apiServer": {"host": "10.0.0.1"}},
}
BANK: Mapping[str, Any] = {
    "name": "bank",
    "hostNamespace": "vc-bank",
    "kubeconfigSecret": {"name": "bank-kubeconfig"},
    "kubelet": {"enabled": True},
}
SECRETS: Mapping[str, Any] = {"namespace": "a", "hostNamespaces": ["b"]}


def objects(**values: Any) -> dict[tuple[str, str], Obj]:
    """Return the objects by kind and name, of a release that has the chart's name."""
    found = rendered(CHART, {"virtualClusters": [SHOP], **values}, release="syncer")
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def test_virtual_cluster_is_served_with_the_kubeconfig_of_its_secret() -> None:
    found = objects(config={"workers": 8})
    config = build(parse(found["ConfigMap", "syncer-shop"]["data"]["syncer.yaml"]), INSTALLED).config
    [cluster] = config.clusters()
    assert (cluster.name, cluster.host_namespace, config.workers) == ("shop", "vc-shop", 8)
    assert cluster.networking.api_server.host == "10.0.0.1"
    spec = found["Deployment", "syncer-shop"]["spec"]["template"]["spec"]
    [volume] = [each for each in spec["volumes"] if "secret" in each]
    assert volume["secret"]["secretName"] == "shop-kubeconfig"
    [mount] = [each for each in spec["containers"][0]["volumeMounts"] if each["name"] == volume["name"]]
    assert cluster.connection.kubeconfig == f"{mount['mountPath']}/value"


@pytest.mark.parametrize("given", [{}, {"waitForKubeconfig": False}])
def test_secret_with_the_kubeconfig_may_come_later_unless_the_entry_says_otherwise(given: Obj) -> None:
    found = objects(virtualClusters=[{**SHOP, **given}])
    [cluster] = build(parse(found["ConfigMap", "syncer-shop"]["data"]["syncer.yaml"]), INSTALLED).config.clusters()
    [secret] = [
        each["secret"]
        for each in found["Deployment", "syncer-shop"]["spec"]["template"]["spec"]["volumes"]
        if "secret" in each
    ]
    assert secret["optional"]
    assert cluster.connection.waits_for_kubeconfig is not bool(given)


def test_address_of_the_virtual_cluster_may_be_another_than_the_kubeconfigs() -> None:
    server = "https://api.vc-shop-plane.svc:6443"
    found = objects(virtualClusters=[{**SHOP, "server": server}])
    [cluster] = build(parse(found["ConfigMap", "syncer-shop"]["data"]["syncer.yaml"]), INSTALLED).config.clusters()
    assert cluster.connection.server == server


#: What a release may have besides its Deployments.
ALL_PARTS: Mapping[str, Any] = {
    "uninstall": {"enabled": True},
    "networkPolicy": {"enabled": True},
    "extraRules": {"hostCluster": [{"apiGroups": ["example.org"], "resources": ["foos"], "verbs": ["list"]}]},
}


def test_further_virtual_cluster_gets_a_daemon_of_its_own_and_changes_nothing_of_the_first() -> None:
    alone, both = objects(**ALL_PARTS), objects(virtualClusters=[BANK, SHOP], **ALL_PARTS)
    for each in (*alone.values(), *both.values()):
        each["metadata"].get("annotations", {}).pop("helm.sh/hook-weight", None)  # they go one after the other
    assert {identity: each for identity, each in both.items() if identity in alone} == alone
    added = {identity: each for identity, each in both.items() if identity not in alone}
    assert sorted(kind for kind, _ in added) == sorted(kind for kind, _ in alone)
    output = yaml.safe_dump(list(added.values()))
    assert "shop" not in output, "nothing of it names the first one, its Secret or its namespace"
    [cluster] = build(parse(added["ConfigMap", "syncer-bank"]["data"]["syncer.yaml"]), INSTALLED).config.clusters()
    assert (cluster.name, cluster.host_namespace) == ("bank", "vc-bank")


def test_daemons_of_a_release_have_no_pods_in_common() -> None:
    both = objects(virtualClusters=[SHOP, BANK], **ALL_PARTS)
    for name, other in (("syncer-shop", "syncer-bank"), ("syncer-bank", "syncer-shop")):
        pods = {each: both["Deployment", each]["spec"]["template"]["metadata"]["labels"] for each in (name, other)}
        deployment, service = both["Deployment", name]["spec"], both["Service", f"{name}-metrics"]["spec"]
        [term] = deployment["template"]["spec"]["affinity"]["podAntiAffinity"][
            "preferredDuringSchedulingIgnoredDuringExecution"
        ]
        end = both["Job", f"{name}-uninstall-end"]["spec"]["template"]["spec"]
        [waits] = [each for each in end["containers"][0]["args"] if each.startswith("--selector=")]
        for labels in (
            deployment["selector"]["matchLabels"],
            term["podAffinityTerm"]["labelSelector"]["matchLabels"],
            both["PodDisruptionBudget", name]["spec"]["selector"]["matchLabels"],
            both["NetworkPolicy", name]["spec"]["podSelector"]["matchLabels"],
            service["selector"],
            dict(each.split("=") for each in waits.removeprefix("--selector=").split(",")),
        ):
            assert labels.items() <= pods[name].items()
            assert not labels.items() <= pods[other].items()
    ports = [len(both["NetworkPolicy", name]["spec"]["ingress"]) for name in ("syncer-shop", "syncer-bank")]
    assert ports == [1, 2], "the kubelet's ports are open where it is enabled"


def test_daemons_are_ended_and_their_copies_removed_one_after_the_other() -> None:
    """One that can't be removed leaves the daemons after it as they are."""
    both = objects(virtualClusters=[SHOP, BANK], **ALL_PARTS)
    weights = {
        name: int(each["metadata"]["annotations"]["helm.sh/hook-weight"])
        for (kind, name), each in both.items()
        if kind == "Job"
    }
    parts = [f"syncer-{name}-uninstall{end}" for name in ("bank", "shop") for end in ("-end", "")]
    assert sorted(weights, key=lambda name: weights[name]) == parts
    assert len(set(weights.values())) == 4


def test_names_of_a_long_release_and_a_long_virtual_cluster_are_short_enough_and_differ() -> None:
    long = [{**SHOP, "name": f"{'b' * 39}{end}"} for end in "xy"]
    found = rendered(CHART, {"virtualClusters": long, **ALL_PARTS}, release="a" * 40)
    jobs = {each["metadata"]["name"] for each in found if each["kind"] == "Job"}
    assert len(jobs) == 4
    assert max(map(len, jobs)) <= 63


def test_rights_are_in_the_namespace_of_the_copies_where_the_lease_is_too() -> None:
    roles = [each for (kind, _), each in objects().items() if kind in ("Role", "ClusterRole")]
    assert {each["metadata"].get("namespace") for each in roles} == {"vc-shop"}
    none = objects(rbac={"create": False})
    assert not [kind for kind, _ in none if kind in ("Role", "RoleBinding")]


def test_missing_host_namespace_ends_an_install_before_anything_is_made() -> None:
    first = {
        (each["kind"], each["metadata"]["namespace"]): each
        for each in objects(uninstall={"enabled": True}).values()
        if "pre-install" in each["metadata"].get("annotations", {}).get("helm.sh/hook", "")
    }
    [role] = first.values()
    assert list(first) == [("Role", "vc-shop")]
    assert role["rules"] == [], "it gives no right"
    assert "hook-succeeded" in role["metadata"]["annotations"]["helm.sh/hook-delete-policy"]
    assert ("Role", "syncer-shop-check") not in objects(rbac={"create": False}), "the installer may write nothing there"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"virtualClusters": []}, "name a virtual cluster"),
        ({"virtualClusters": [{"name": "shop"}]}, "virtualClusters[0].kubeconfigSecret"),
        ({"config": {"virtualClusters": []}}, "the value `virtualClusters`"),
        ({"config": {"host": {"namespace": "x"}}}, "hostNamespace"),
        ({"virtualClusters": [{**SHOP, "hostNamespace": ""}]}, "virtualClusters[0].hostNamespace: name the namespace"),
        ({"virtualClusters": [SHOP, SHOP]}, "virtualClusters[1].name: an entry before it is named shop, too"),
        ({"virtualClusters": [{**BANK, "name": "shop-dashboard"}, SHOP]}, "virtualClusters: shop-dashboard is also"),
        ({"virtualClusters": [SHOP, BANK], "config": {"leaderElection": {"name": "one"}}}, "leaderElection.name"),
        (
            {"virtualClusters": [SHOP, BANK], "config": {"virtualClusterSecrets": [SECRETS]}},
            "the value `fleet.enabled`",
        ),
        ({"virtualClusters": [SHOP, BANK], "serviceAccount": {"name": "one"}}, "serviceAccount.name"),
        (
            {"virtualClusters": [{**SHOP, "hostNamespace": "", "names": {"translator": "per-namespace"}}]},
            "virtualClusters[0].hostNamespace: name the namespace",
        ),
        ({"config": {"leaderElection": {"enabled": False}}}, "several replicas would all write"),
        ({"rbac": {"create": False}, "config": {"sync": {"toHost": {"configmaps": {}}}}}, "there is no such kind"),
        ({"serviceAccount": {"create": False}}, "serviceAccount.name"),
        ({"image": {"digest": "sha256:1"}}, "/image/digest"),
    ],
)
def test_values_that_cannot_work_are_refused(values: Obj, reason: str) -> None:
    with pytest.raises(Unrenderable) as caught:
        objects(**values)
    assert reason in str(caught.value)


def test_daemon_is_the_same_in_both_charts() -> None:
    values = {
        "replicas": 2,
        "podLabels": {"team": "shop"},
        "nodeSelector": {"disk": "ssd"},
        "extraArgs": ["--workers=4"],
    }
    config = {"kubelet": {"enabled": True}}
    alone = objects(config=config, **values)["Deployment", "syncer-shop"]
    whole = rendered(CHARTS / "virtual-cluster", {"syncer": {**values, "config": config}})
    [beside] = [each for each in whole if each["kind"] == "Deployment"]
    containers = []
    for deployment in (alone, beside):
        spec = deployment["spec"]["template"]["spec"]
        assert deployment["spec"]["replicas"] == 2
        assert deployment["spec"]["template"]["metadata"]["labels"]["team"] == "shop"
        assert spec["nodeSelector"] == {"disk": "ssd"}
        [container] = spec["containers"]
        containers.append({name: part for name, part in container.items() if name != "volumeMounts"})
    assert containers[0] == containers[1]
    assert containers[0]["args"] == ["run", "--workers=4"]


def test_configuration_is_text_that_the_daemon_reads() -> None:
    """Such as a number that YAML would write as another type after a way through Helm."""
    given = {"patrol": {"breaker": {"count": 1000000}}, "health": {"address": ":9091"}, "metrics": {"address": "0"}}
    found = objects(config=given)
    made = yaml.safe_load(found["ConfigMap", "syncer-shop"]["data"]["syncer.yaml"])
    assert {name: made[name] for name in given} == given
    [container] = found["Deployment", "syncer-shop"]["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"name": "health", "containerPort": 9091}]
    assert container["livenessProbe"]["httpGet"]["port"] == "health"


def pod(found: Mapping[tuple[str, str], Obj]) -> Obj:
    """Return the template of the daemon's pods."""
    [deployment] = [each for (kind, _), each in found.items() if kind == "Deployment"]
    template: Obj = deployment["spec"]["template"]
    return template


def test_plugins_come_from_an_image_volume_or_an_init_container() -> None:
    values = yaml.safe_load((CHART / "ci" / "plugins.yaml").read_text())
    found = objects(**values, uninstall={"enabled": True})
    job = found["Job", "syncer-shop-uninstall"]["spec"]["template"]["spec"]
    for spec in (pod(found)["spec"], found["Pod", "syncer-shop-test"]["spec"], job):
        volumes = {each["name"]: each for each in spec["volumes"]}
        assert volumes["plugin-foo"]["image"]["reference"] == "registry.example.org/vsyncer-foo:0.1.0"
        mounts = {each["mountPath"]: each for each in spec["containers"][0]["volumeMounts"]}
        assert mounts["/plugins/foo"]["subPath"] == "plugin"
        assert all(mounts[f"/plugins/{name}"]["readOnly"] for name in ("foo", "bar", "baz"))
        starts = {each["name"]: each for each in spec["initContainers"]}
        assert starts["plugin-bar"]["command"] == ["cp", "-r", "/plugin/.", "/plugins/bar/"]
        assert starts["plugin-baz"]["command"][:2] == ["pip", "install"]
        for name in ("bar", "baz"):
            assert volumes[f"plugin-{name}"]["emptyDir"] == {}
            assert "subPath" not in mounts[f"/plugins/{name}"]
            written = {each["mountPath"]: each["name"] for each in starts[f"plugin-{name}"]["volumeMounts"]}
            assert written == {f"/plugins/{name}": f"plugin-{name}", "/tmp": "tmp"}, "its root is read-only"
            assert "emptyDir" in volumes["tmp"]


def test_plugin_is_refused_if_its_init_container_copies_nothing() -> None:
    with pytest.raises(Unrenderable, match=r"plugins: foo\.subPath: name the folder"):
        objects(plugins=[{"name": "foo", "image": "example.org/foo:1", "initContainer": {}}])


def test_values_for_the_pod_reach_it() -> None:
    found = objects(
        image={"repository": "registry.example.org/syncer", "tag": "old", "digest": f"sha256:{'0' * 64}"},
        imagePullSecrets=[{"name": "registry"}],
        priorityClassName="high",
        commonLabels={"team": "platform"},
        podAnnotations={"example.org/note": "a"},
        tolerations=[{"key": "infra", "operator": "Exists"}],
        topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
        extraEnv=[{"name": "HTTPS_PROXY", "value": "http://proxy"}],
        extraVolumes=[{"name": "ca", "configMap": {"name": "ca"}}],
        extraVolumeMounts=[{"name": "ca", "mountPath": "/ca"}],
        serviceAccount={"annotations": {"example.org/role": "syncer"}},
        terminationGracePeriodSeconds=7,
    )
    template = pod(found)
    spec, metadata = template["spec"], template["metadata"]
    [container] = spec["containers"]
    assert container["image"] == f"registry.example.org/syncer@sha256:{'0' * 64}"
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert spec["priorityClassName"] == "high"
    assert spec["terminationGracePeriodSeconds"] == 7
    assert metadata["annotations"]["example.org/note"] == "a"
    assert spec["tolerations"] == [{"key": "infra", "operator": "Exists"}]
    assert spec["topologySpreadConstraints"][0]["topologyKey"] == "zone"
    assert {"name": "HTTPS_PROXY", "value": "http://proxy"} in container["env"]
    assert {"name": "ca", "configMap": {"name": "ca"}} in spec["volumes"]
    assert {"name": "ca", "mountPath": "/ca"} in container["volumeMounts"]
    assert found["ServiceAccount", "syncer-shop"]["metadata"]["annotations"] == {"example.org/role": "syncer"}
    assert all(each["metadata"]["labels"]["team"] == "platform" for each in found.values())


def test_pod_has_probes_and_no_more_rights_than_it_needs() -> None:
    found = objects()
    spec = pod(found)["spec"]
    [container] = spec["containers"]
    paths = {name: container[name]["httpGet"]["path"] for name in container if name.endswith("Probe")}
    assert paths == {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert found["ServiceAccount", "syncer-shop"]["automountServiceAccountToken"] is False


def test_changed_configuration_makes_new_pods() -> None:
    name = "vsyncer.dev/config"
    before, same, after = (
        pod(objects(config=config))["metadata"]["annotations"][name] for config in ({}, {}, {"workers": 3})
    )
    assert before == same != after


def test_names_follow_the_release_and_its_overrides() -> None:
    for values, release, name in (
        ({}, "shop", "shop-syncer-shop"),
        ({"nameOverride": "daemon"}, "shop", "shop-daemon-shop"),
        ({"fullnameOverride": "mine"}, "shop", "mine-shop"),
    ):
        found = rendered(CHART, {"virtualClusters": [SHOP], **values}, release=release)
        assert [each["metadata"]["name"] for each in found if each["kind"] == "Deployment"] == [name]


def test_service_account_that_exists_gets_the_roles_and_runs_the_pod() -> None:
    found = objects(serviceAccount={"create": False, "name": "own"}, uninstall={"enabled": True})
    assert ("ServiceAccount", "syncer-shop") not in found
    assert pod(found)["spec"]["serviceAccountName"] == "own"
    subjects = {
        subject["name"]
        for (kind, name), each in found.items()
        if kind.endswith("RoleBinding") or kind == "RoleBinding"
        for subject in each["subjects"]
        if not name.endswith("-end")
    }
    assert subjects == {"own"}
    assert found["Pod", "syncer-shop-test"]["spec"]["serviceAccountName"] == "own"


def test_replicas_are_on_nodes_of_their_own_unless_the_values_say_where() -> None:
    found = objects()
    [apart] = pod(found)["spec"]["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    chosen = apart["podAffinityTerm"]["labelSelector"]["matchLabels"]
    assert chosen.items() <= pod(found)["metadata"]["labels"].items()
    assert found["PodDisruptionBudget", "syncer-shop"]["spec"]["selector"]["matchLabels"] == chosen
    affinity: Obj = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    assert pod(objects(affinity=affinity))["spec"]["affinity"] == affinity


def test_network_policy_opens_the_metrics_and_the_kubelets_ports_alone() -> None:
    assert ("NetworkPolicy", "syncer-shop") not in objects()
    policy = {"enabled": True, "metricsFrom": [{"namespaceSelector": {}}]}
    spec = objects(networkPolicy=policy, config={"kubelet": {"enabled": True, "ports": 10}})[
        "NetworkPolicy", "syncer-shop"
    ]["spec"]
    assert spec["policyTypes"] == ["Ingress"]
    assert spec["podSelector"]["matchLabels"].items() <= pod(objects())["metadata"]["labels"].items()
    assert spec["ingress"] == [
        {"ports": [{"port": "metrics"}], "from": [{"namespaceSelector": {}}]},
        {"ports": [{"port": 20250, "endPort": 20259}]},
    ]
    off = {"kubelet": {"enabled": False}}
    found = objects(virtualClusters=[{**SHOP, **off}], networkPolicy=policy, config={"kubelet": {"enabled": True}})
    assert len(found["NetworkPolicy", "syncer-shop"]["spec"]["ingress"]) == 1, "the entry's own word is the last"
    closed = objects(networkPolicy={"enabled": True}, config={"metrics": {"address": "0"}})[
        "NetworkPolicy", "syncer-shop"
    ]
    assert not closed["spec"]["ingress"]


def notes(**values: Any) -> str:
    """Return what Helm prints after an install."""
    given = {"virtualClusters": [SHOP], **values}
    output = helm("install", "syncer", str(built("syncer")), "--dry-run=client", values=given)
    return output.partition("\nNOTES:\n")[2]


def test_notes_say_how_to_give_rights_to_check_the_configuration_and_to_see_that_it_works() -> None:
    output = notes()
    assert "syncer rbac --side virtual --user NAME | kubectl --kubeconfig VIRTUAL apply -f -" in output
    assert "syncer config validate" in output
    assert "syncer status" in output
    assert "removes all copies" not in output
    assert "removes all copies" in notes(uninstall={"enabled": True})
    both = notes(virtualClusters=[SHOP, BANK])
    assert all(f"exec deployment/syncer-{name} -- syncer rbac" in both for name in ("shop", "bank"))


@pytest.mark.parametrize("fleet", [False, True])
def test_page_is_in_the_pod_alone_unless_it_is_off_or_elsewhere(fleet: bool) -> None:
    def shown(**values: Any) -> tuple[Any, str]:
        """Return the address of the page, and the notes."""
        both = {"fleet": {"enabled": fleet}, **values}
        maps = [each["data"] for (kind, _), each in objects(**both).items() if kind == "ConfigMap"]
        [text] = [data["syncer.yaml"] for data in maps if "syncer.yaml" in data]
        return build(parse(text), INSTALLED).config.page.address, notes(**both)

    address, text = shown()
    assert address == "127.0.0.1:8082"
    assert re.search(r"http://localhost:8082 .*\n\n +kubectl -n \S+ port-forward deployment/\S+ 8082\n", text)
    for off in ({"page": {"enabled": False}}, {"config": {"page": {"address": "0"}}}):
        address, text = shown(**off)
        assert (address, "localhost" in text) == ("", False)
    address, text = shown(config={"page": {"address": "[::1]:9000"}})
    assert (address, "http://localhost:9000 " in text) == ("[::1]:9000", True)


def test_page_has_no_port_of_the_container() -> None:
    """A port that is named would be scraped, probed and allowed; the page is for port-forward alone."""
    [container] = pod(objects())["spec"]["containers"]
    assert [each["name"] for each in container["ports"]] == ["metrics", "health"]


def test_chart_is_of_the_version_of_the_daemon_and_refuses_an_old_cluster() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)
    [container] = pod(objects())["spec"]["containers"]
    assert container["image"].endswith(f":{VERSION}")
    with pytest.raises(Unrenderable, match=r"incompatible with Kubernetes v1\.28"):
        rendered(CHART, {"virtualClusters": [SHOP]}, options=["--kube-version=1.28.0"])


def test_archive_of_the_chart_has_all_that_it_takes(tmp_path: Path) -> None:
    helm("package", str(built("syncer")), f"--destination={tmp_path}")
    found = rendered(tmp_path / f"syncer-{VERSION}.tgz", {"virtualClusters": [SHOP]})
    made = {(each["kind"], each["metadata"]["name"]) for each in found}
    assert {("Deployment", "shop-syncer-shop"), ("ConfigMap", "shop-syncer-shop-dashboard")} <= made


def test_chart_may_be_part_of_another_with_global_values(tmp_path: Path) -> None:
    about = {"apiVersion": "v2", "name": "platform", "version": "0.1.0"}
    dependency = {"name": "syncer", "version": VERSION, "repository": f"file://{built('syncer')}"}
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump({**about, "dependencies": [dependency]}))
    helm("dependency", "build", str(tmp_path))
    found = rendered(tmp_path, {"global": {"region": "eu"}, "syncer": {"virtualClusters": [SHOP]}}, release="platform")
    assert "Deployment" in [each["kind"] for each in found]
