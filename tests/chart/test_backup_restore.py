"""Backups and the restore of etcd in the chart virtual-cluster."""

from typing import Any

import pytest
import yaml
from chart_rendering import CHARTS, Unrenderable, helm, rendered

from hack.chart_build import built
from syncer.api import Obj

CHART = CHARTS / "virtual-cluster"
NAME = "shop-virtual-cluster"


def objects(**values: Any) -> dict[tuple[str, str], Obj]:
    """Return the objects of the chart, by kind and name."""
    return {(obj["kind"], obj["metadata"]["name"]): obj for obj in rendered(CHART, values)}


def config(found: dict[tuple[str, str], Obj]) -> Any:
    """Return the daemon's configuration."""
    return yaml.safe_load(found["ConfigMap", f"{NAME}-syncer"]["data"]["syncer.yaml"])


def data_folder(found: dict[tuple[str, str], Obj]) -> str:
    """Return the folder of etcd's data."""
    etcd = found["StatefulSet", f"{NAME}-control-plane"]["spec"]["template"]["spec"]["initContainers"][0]
    [folder] = [flag.partition("=")[2] for flag in etcd["command"] if flag.startswith("--data-dir=")]
    return str(folder)


def pods(found: dict[tuple[str, str], Obj], part: str) -> list[Obj]:
    """Return the pods of the Jobs of a part."""
    specs = [obj["spec"] for (kind, _), obj in found.items() if kind == "Job"]
    specs += [obj["spec"]["jobTemplate"]["spec"] for (kind, _), obj in found.items() if kind == "CronJob"]
    return [spec["template"] for spec in specs if spec["template"]["metadata"]["labels"]["vsyncer.dev/part"] == part]


def test_backup_is_off_by_default() -> None:
    found = objects()
    assert ("CronJob", f"{NAME}-backup") not in found
    assert ("PersistentVolumeClaim", f"{NAME}-backup") not in found


def test_backup_names_a_snapshot_by_its_job_and_removes_those_of_the_schedule_alone() -> None:
    found = objects(backup={"enabled": True, "keep": 3})
    [pod] = pods(found, "backup")
    [snapshot], [keep] = pod["spec"]["initContainers"], pod["spec"]["containers"]
    assert snapshot["command"][0] == "etcdctl"
    assert snapshot["command"][-1] == "/backup/$(JOB).db"
    assert snapshot["env"][0]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['batch.kubernetes.io/job-name']"
    assert keep["args"][:5] == ["etcd", "keep", "/backup", "--newest=3", f"--prefix={NAME}-backup-"]
    claim = found["PersistentVolumeClaim", f"{NAME}-backup"]
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert {"name": "backup", "persistentVolumeClaim": {"claimName": f"{NAME}-backup"}} in pod["spec"]["volumes"]
    mine = objects(backup={"enabled": True, "persistence": {"existingClaim": "mine"}})
    assert ("PersistentVolumeClaim", f"{NAME}-backup") not in mine
    claims = [each.get("persistentVolumeClaim") for each in pods(mine, "backup")[0]["spec"]["volumes"]]
    assert {"claimName": "mine"} in claims


@pytest.mark.parametrize("replicas", [1, 3])
def test_restore_stops_all_and_restores_each_member_once(replicas: int) -> None:
    restore = {"snapshot": "before", "running": True}
    found = objects(restore=restore, controlPlane={"replicas": replicas})
    assert found["StatefulSet", f"{NAME}-control-plane"]["spec"]["replicas"] == 0
    assert found["Deployment", f"{NAME}-syncer"]["spec"]["replicas"] == 0
    made = pods(found, "restore")
    assert len(made) == replicas
    for number, pod in enumerate(made):
        member = f"{NAME}-control-plane-{number}"
        [container] = pod["spec"]["containers"]
        assert container["command"][:4] == ["etcdutl", "snapshot", "restore", "/backup/before.db"]
        flags = dict(flag.split("=", 1) for flag in container["command"][4:] if "=" in flag)
        assert flags["--name"] == member
        assert flags["--data-dir"] == data_folder(objects(restore={"snapshot": "before"}))
        assert flags["--data-dir"] == "/var/lib/etcd/restored-before"
        assert len(flags["--initial-cluster"].split(",")) == replicas
        assert f"{member}={flags['--initial-advertise-peer-urls']}" in flags["--initial-cluster"]
        volumes = [volume for volume in pod["spec"]["volumes"] if "secret" not in volume]
        claims = {volume["name"]: volume["persistentVolumeClaim"]["claimName"] for volume in volumes}
        assert claims == {"data": f"data-{member}", "backup": f"{NAME}-backup"}


def keys_at(container: Obj, pod: Obj) -> set[str]:
    """Return the keys of Secrets that a container sees."""
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    volumes = [each["secret"] for each in pod["spec"]["volumes"] if "secret" in each and each["name"] in mounts]
    return {item["key"] for secret in volumes for item in secret["items"]}


def test_backup_notes_the_ca_without_showing_its_key_to_the_writer() -> None:
    [pod] = pods(objects(backup={"enabled": True}), "backup")
    [snapshot], [keep] = pod["spec"]["initContainers"], pod["spec"]["containers"]
    assert keep["args"][5:] == ["--made=$(JOB)", "--ca=/pki/ca.crt"]
    assert keep["env"] == snapshot["env"]
    assert keys_at(keep, pod) == {"ca.crt"}
    assert keys_at(snapshot, pod) == {"etcd-ca.crt", "apiserver-etcd-client.crt", "apiserver-etcd-client.key"}


def test_restore_first_checks_the_ca_unless_the_keys_are_lost() -> None:
    restore = {"snapshot": "before", "running": True}
    [pod] = pods(objects(restore=restore), "restore")
    [check] = pod["spec"]["initContainers"]
    assert check["args"] == ["etcd", "check", "/backup", "before", "--ca=/pki/ca.crt"]
    assert keys_at(check, pod) == {"ca.crt"}
    lost = objects(restore={**restore, "otherKeys": True})
    assert "initContainers" not in pods(lost, "restore")[0]["spec"]
    made = [
        {name for kind, name in each if kind == "Job" and "-restore-" in name}
        for each in (objects(restore=restore), lost)
    ]
    assert not made[0] & made[1], "a Job that has failed can't be changed"


def test_restore_has_the_memory_of_the_restored_etcd() -> None:
    limits = {"limits": {"memory": "3Gi"}}
    found = objects(restore={"snapshot": "before", "running": True}, etcd={"resources": limits})
    [pod] = pods(found, "restore")
    assert pod["spec"]["containers"][0]["resources"]["limits"] == limits["limits"]


def test_restored_virtual_cluster_runs_from_its_folder_and_stops_deletions_until_the_hold_ends() -> None:
    found = objects(restore={"snapshot": "before"})
    assert found["StatefulSet", f"{NAME}-control-plane"]["spec"]["replicas"] == 1
    assert found["Deployment", f"{NAME}-syncer"]["spec"]["replicas"] == 1
    assert pods(found, "restore") == []
    assert data_folder(found) == "/var/lib/etcd/restored-before"
    assert config(found)["patrol"] == {"breaker": {"percent": 0, "count": 0}}
    ended = objects(restore={"snapshot": "before", "hold": False})
    assert "patrol" not in config(ended)
    assert data_folder(ended) == data_folder(found)
    assert "patrol" not in config(objects())
    assert data_folder(objects()) == "/var/lib/etcd/data"


def manifests_jobs(**restore: Any) -> list[str]:
    """Return the names of the Jobs that apply the manifests."""
    name = f"{NAME}-manifests-"
    return [each for kind, each in objects(restore=restore) if kind == "Job" and each.startswith(name)]


def test_manifests_are_applied_again_after_each_restore_and_not_during_it() -> None:
    assert manifests_jobs(snapshot="first", running=True) == []
    made = [manifests_jobs(), manifests_jobs(snapshot="first"), manifests_jobs(snapshot="second")]
    assert [len(each) for each in made] == [1, 1, 1]
    assert len({name for [name] in made}) == 3
    assert manifests_jobs(snapshot="first", hold=False) == made[1]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"restore": {"running": True}}, "needs restore.snapshot"),
        (
            {"restore": {"running": True, "snapshot": "a"}, "etcd": {"persistence": {"enabled": False}}},
            "needs etcd.persistence.enabled",
        ),
    ],
)
def test_restore_that_can_not_work_is_refused(values: dict[str, Any], why: str) -> None:
    with pytest.raises(Unrenderable, match=why):
        rendered(CHART, values)


def test_notes_name_the_next_step_of_a_restore() -> None:
    def notes(**restore: Any) -> str:
        values = {"restore": {"snapshot": "one", **restore}, "backup": {"enabled": True}}
        chart = str(built("virtual-cluster"))
        output = helm("install", "shop", chart, "--namespace=shop", "--dry-run=client", values=values)
        return output.partition("\nNOTES:\n")[2]

    running = notes(running=True)
    assert "vsyncer.dev/part=restore" in running
    assert "rollout status" not in running
    assert "syncer patrol --confirm" not in running
    restored = notes(hold=True)
    assert "rollout status" in restored
    assert "syncer patrol --confirm" in restored
    assert "patrol" not in notes(hold=False)
