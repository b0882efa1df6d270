"""What `helm uninstall` runs first: nothing that a tenant can make fail, with few rights."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from chart_rendering import CHARTS, rendered

from syncer.api import Obj

CHART = CHARTS / "virtual-cluster"
NAME = "shop-virtual-cluster"
END, UNINSTALL = f"{NAME}-uninstall-end", f"{NAME}-uninstall"
KEPT: Mapping[str, Any] = {"etcd": {"persistence": {"keep": True}}}
RIGHTS = ("ServiceAccount", "Role", "RoleBinding")


def hooks(values: Mapping[str, Any] | None = None) -> dict[tuple[str, str], Obj]:
    """Return the objects of the hook by kind and name."""
    return {
        (each["kind"], each["metadata"]["name"]): each
        for each in rendered(CHART, values or {})
        if each["metadata"].get("annotations", {}).get("helm.sh/hook") == "pre-delete"
    }


def uninstall(values: Mapping[str, Any] | None = None) -> tuple[Obj, Obj]:
    """Return the container that removes what the daemon has made, and its pod's spec."""
    spec = hooks(values)["Job", UNINSTALL]["spec"]["template"]["spec"]
    [container] = spec["containers"]
    return container, spec


def daemons_secret(spec: Obj) -> bool:
    """Return True if a pod has the kubeconfig of the virtual cluster."""
    return f"{NAME}-daemon" in [volume.get("secret", {}).get("secretName") for volume in spec["volumes"]]


def test_host_side_is_uninstalled_alone_and_without_the_virtual_clusters_kubeconfig() -> None:
    container, spec = uninstall()
    assert container["args"] == ["uninstall", "--yes", "--side=host"]
    assert not daemons_secret(spec)
    assert not [mount for mount in container["volumeMounts"] if "virtual" in mount["mountPath"]]


def test_virtual_cluster_that_is_kept_is_tidied_up_after_the_host() -> None:
    container, spec = uninstall(KEPT)
    assert container["args"] == ["uninstall", "--yes", "--side=host-first"]
    assert daemons_secret(spec)
    lost = {"etcd": {"persistence": {"keep": True, "enabled": False}}}
    assert uninstall(lost)[0]["args"][-1] == "--side=host", "there is no volume to keep"


def test_uninstall_waits_for_no_secret_with_which_it_only_tidies_up() -> None:
    volumes = uninstall(KEPT)[1]["volumes"]
    assert [each["secret"].get("optional") for each in volumes if "secret" in each] == [True]
    daemon = next(each for each in rendered(CHART, KEPT) if each["kind"] == "Deployment")
    secrets = [each["secret"] for each in daemon["spec"]["template"]["spec"]["volumes"] if "secret" in each]
    assert ["optional" in each for each in secrets] == [False], "the daemon's pod waits for its kubeconfig"


@pytest.mark.parametrize(("values", "may"), [({}, False), (KEPT, True)])
def test_daemon_may_delete_its_identity_only_where_the_virtual_cluster_is_kept(
    values: Mapping[str, Any], may: bool
) -> None:
    data = {
        name: text
        for each in rendered(CHART, values)
        if each["kind"] == "ConfigMap" and each["metadata"]["name"].startswith(f"{NAME}-manifests")
        for name, text in each["data"].items()
    }
    assert ("12-uninstall.yaml" in data) == may


def test_jobs_end_before_helm_gives_up_and_stay_for_their_log_if_they_fail() -> None:
    jobs = [obj for (kind, _), obj in hooks().items() if kind == "Job"]
    assert len(jobs) == 2
    for job in jobs:
        assert job["spec"]["activeDeadlineSeconds"] < 300
        assert "hook-failed" not in job["metadata"]["annotations"]["helm.sh/hook-delete-policy"]


def test_rights_come_before_the_jobs_and_go_with_them_however_they_end() -> None:
    found = hooks()
    rights = {identity: obj["metadata"]["annotations"] for identity, obj in found.items() if identity[0] != "Job"}
    assert set(rights) == {(kind, END) for kind in RIGHTS} | {(kind, UNINSTALL) for kind in RIGHTS[1:]}
    for annotations in rights.values():
        assert annotations["helm.sh/hook-weight"] == "-1"
        policies = annotations["helm.sh/hook-delete-policy"].split(",")
        assert sorted(policies) == ["before-hook-creation", "hook-failed", "hook-succeeded"]
    weights = {name: found["Job", name]["metadata"]["annotations"]["helm.sh/hook-weight"] for name in (END, UNINSTALL)}
    assert weights == {END: "0", UNINSTALL: "1"}, "the daemon has ended first"


def test_kubectl_has_an_account_with_its_own_few_rights_and_the_daemon_gets_the_lease_alone() -> None:
    found = hooks()
    spec = found["Job", END]["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == END
    assert [each["name"] for each in (*spec["initContainers"], *spec["containers"])] == ["end", "wait"]
    for name, account in ((END, END), (UNINSTALL, f"{NAME}-syncer")):
        binding = found["RoleBinding", name]
        assert [subject["name"] for subject in binding["subjects"]] == [account]
        assert binding["roleRef"]["name"] == name
    rules = {(*rule["resources"], *rule["verbs"]) for rule in found["Role", END]["rules"]}
    assert rules == {
        ("deployments", "get"),
        ("deployments/scale", "get", "patch"),
        ("pods", "get", "list", "watch"),
    }
    assert found["Role", UNINSTALL]["rules"] == [
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [f"vsyncer-{NAME}"],
            "verbs": ["delete"],
        }
    ]
    assert uninstall()[1]["serviceAccountName"] == f"{NAME}-syncer"


def test_nothing_runs_if_it_is_turned_off() -> None:
    assert hooks({"uninstall": {"enabled": False}}) == {}


SHOP = {"name": "shop", "hostNamespace": "vc-shop", "kubeconfigSecret": {"name": "shop-kubeconfig"}}


def hooks_of_the_daemon_alone(**values: Any) -> dict[tuple[str, str], Obj]:
    """Return the objects of the hook of the chart `syncer`, by kind and name."""
    return {
        (each["kind"], each["metadata"]["name"]): each
        for each in rendered(CHARTS / "syncer", {"virtualClusters": [SHOP], **values}, release="syncer")
        if each["metadata"].get("annotations", {}).get("helm.sh/hook") == "pre-delete"
    }


@pytest.mark.parametrize(("keep", "further"), [(False, []), (True, ["--keep"])])
def test_daemon_alone_is_uninstalled_from_the_host_and_then_from_the_virtual_cluster_that_goes_on(
    keep: bool, further: list[str]
) -> None:
    found = hooks_of_the_daemon_alone(uninstall={"enabled": True, "keepCopies": keep})
    spec = found["Job", "syncer-shop-uninstall"]["spec"]["template"]["spec"]
    assert spec["containers"][0]["args"] == ["uninstall", "--yes", "--side=host-first", *further]
    assert spec["serviceAccountName"] == "syncer-shop"
    assert [each["secret"]["optional"] for each in spec["volumes"] if "secret" in each] == [True]
    [ended] = found["Job", "syncer-shop-uninstall-end"]["spec"]["template"]["spec"]["initContainers"]
    assert "deployment/syncer-shop" in ended["args"]


def test_copies_of_the_daemon_alone_stay_unless_it_is_asked_for() -> None:
    assert hooks_of_the_daemon_alone() == {}


def test_right_to_delete_the_lease_is_where_the_configuration_has_it() -> None:
    elected = {"leaderElection": {"namespace": "home", "name": "fleet"}}
    for config, identity in (({}, ("vc-shop", "vsyncer-shop")), (elected, ("home", "fleet"))):
        found = hooks_of_the_daemon_alone(config=config, uninstall={"enabled": True})
        role, binding = found["Role", "syncer-shop-uninstall"], found["RoleBinding", "syncer-shop-uninstall"]
        assert (role["metadata"]["namespace"], *role["rules"][0]["resourceNames"]) == identity
        assert binding["metadata"]["namespace"] == identity[0]
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "syncer-shop", "namespace": "syncer"}]


def test_kubectl_of_both_charts_is_of_one_version() -> None:
    values = [yaml.safe_load((CHARTS / name / "values.yaml").read_text()) for name in ("syncer", "virtual-cluster")]
    assert values[0]["kubectl"]["image"]["tag"] == values[1]["kubernetesVersion"]
