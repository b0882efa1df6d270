"""An installed chart is upgraded and rolled back while its tenant works."""

from chart_scene import NEW_TAG, RELEASE, Chart, Load
from node_scene import until


def test_upgrade_and_rollback_under_load_restart_no_pod_and_lose_no_object(chart: Chart) -> None:
    with chart.namespace("load"):
        before = chart.runs()
        with Load(chart) as load:
            until("the load's first pod runs", lambda: len(chart.runs()) > len(before))
            early = chart.runs()
            chart.upgrade(f"syncer.image.tag={NEW_TAG}", "apiServer.extraArgs.v=1")
            chart.wait_until_ready()
            until("the new daemon alone runs", lambda: tags(chart) == [NEW_TAG])
            chart.helm("rollback", RELEASE)
            chart.wait_until_ready()
            until("the earlier daemon alone runs", lambda: len(tags(chart)) == 1 and tags(chart) != [NEW_TAG])
            created = len(load.configmaps)
            until("more ConfigMaps come", lambda: len(load.configmaps) > created)
        names = set(chart.kubectl("get", "configmaps,pods", "-n=load", "-o=name").split())
        assert names >= {f"configmap/{name}" for name in load.configmaps} | {f"pod/{name}" for name in load.pods}
        copies = {chart.copy("load", name) for name in load.pods}
        until("all pods of the load run", lambda: copies <= set(chart.runs()))
        after = chart.runs()
        assert all(after[name] == run for name, run in early.items())
        assert [name for name, run in after.items() if run.restarts] == []
        print(f"{len(load.configmaps)} ConfigMaps and {len(load.pods)} pods were made, {load.refused} requests failed")


def tags(chart: Chart) -> list[str]:
    """Return the tags of the images of the daemons that run or end."""
    images = chart.own("get", "pods", "-l=vsyncer.dev/part=syncer", "-o=jsonpath={.items[*].spec.containers[*].image}")
    return [image.rpartition(":")[2] for image in images.split()]
