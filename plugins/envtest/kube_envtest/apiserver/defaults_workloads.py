"""Defaults of workloads: Deployments, Jobs and the like.

Source: `kubernetes/pkg/apis/{apps,batch,autoscaling}/*/defaults.go`.
"""

from typing import Any

from kube_envtest.apiserver.defaults_pods import claim_spec, template

Obj = dict[str, Any]


def _filled(holder: Obj, **values: Any) -> None:
    for key, value in values.items():
        holder.setdefault(key, value)


def _no_times(obj: Obj, *names: str) -> None:
    """Write the times that a condition always has, null if unknown."""
    for condition in (obj.get("status") or {}).get("conditions") or ():
        for name in names:
            condition.setdefault(name, None)


def deployment(obj: Obj) -> None:
    """Fill in a Deployment."""
    spec = obj.setdefault("spec", {})
    _filled(spec, replicas=1, strategy={}, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    spec["strategy"].setdefault("type", "RollingUpdate")
    if spec["strategy"]["type"] == "RollingUpdate":
        _filled(spec["strategy"].setdefault("rollingUpdate", {}), maxUnavailable="25%", maxSurge="25%")
    template(spec.setdefault("template", {}))
    obj.setdefault("status", {})
    _no_times(obj, "lastUpdateTime", "lastTransitionTime")


def daemon_set(obj: Obj) -> None:
    """Fill in a DaemonSet; the internal type's template generation appears as an annotation."""
    obj["metadata"].setdefault("annotations", {}).setdefault("deprecated.daemonset.template.generation", "1")
    spec = obj.setdefault("spec", {})
    _filled(spec, updateStrategy={}, revisionHistoryLimit=10)
    spec["updateStrategy"].setdefault("type", "RollingUpdate")
    if spec["updateStrategy"]["type"] == "RollingUpdate":
        _filled(spec["updateStrategy"].setdefault("rollingUpdate", {}), maxUnavailable=1, maxSurge=0)
    template(spec.setdefault("template", {}))
    counts = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
    _filled(obj.setdefault("status", {}), **dict.fromkeys(counts, 0))
    _no_times(obj, "lastTransitionTime")


def stateful_set(obj: Obj) -> None:
    """Fill in a StatefulSet."""
    spec = obj.setdefault("spec", {})
    _filled(spec, replicas=1, podManagementPolicy="OrderedReady", updateStrategy={}, revisionHistoryLimit=10)
    if "type" not in spec["updateStrategy"]:
        spec["updateStrategy"]["type"] = "RollingUpdate"
        spec["updateStrategy"].setdefault("rollingUpdate", {})
    if spec["updateStrategy"]["type"] == "RollingUpdate" and "rollingUpdate" in spec["updateStrategy"]:
        spec["updateStrategy"]["rollingUpdate"].setdefault("partition", 0)
    _filled(spec.setdefault("persistentVolumeClaimRetentionPolicy", {}), whenDeleted="Retain", whenScaled="Retain")
    template(spec.setdefault("template", {}))
    for claim in spec.get("volumeClaimTemplates") or ():
        claim_spec(claim.setdefault("spec", {}))
        _filled(claim, kind="PersistentVolumeClaim", apiVersion="v1", metadata={}, status={"phase": "Pending"})
    _filled(obj.setdefault("status", {}), replicas=0, availableReplicas=0)
    _no_times(obj, "lastTransitionTime")


def replica_set(obj: Obj) -> None:
    """Fill in a ReplicaSet."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    template(spec.setdefault("template", {}))
    obj.setdefault("status", {}).setdefault("replicas", 0)
    _no_times(obj, "lastTransitionTime")


def replication_controller(obj: Obj) -> None:
    """Fill in a ReplicationController."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    if "template" in spec:
        template(spec["template"])
        labels = spec["template"]["metadata"].get("labels")
        if labels:
            spec["selector"] = spec.get("selector") or dict(labels)
            obj["metadata"].setdefault("labels", dict(labels))
    obj.setdefault("status", {}).setdefault("replicas", 0)


def job(obj: Obj) -> None:
    """Fill in a Job."""
    spec = obj.setdefault("spec", {})
    _job_spec(spec)
    labels = spec["template"]["metadata"].get("labels")
    if labels:
        obj["metadata"].setdefault("labels", dict(labels))
    obj.setdefault("status", {})
    _no_times(obj, "lastProbeTime", "lastTransitionTime")


def _job_spec(spec: Obj) -> None:
    if "parallelism" not in spec:
        spec.setdefault("completions", 1)
    replacement = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    backoff = 2147483647 if "backoffLimitPerIndex" in spec else 6
    _filled(
        spec,
        parallelism=1,
        backoffLimit=backoff,
        completionMode="NonIndexed",
        suspend=False,
        podReplacementPolicy=replacement,
        manualSelector=False,
    )
    template(spec.setdefault("template", {}))


def cron_job(obj: Obj) -> None:
    """Fill in a CronJob; its Job template gets no defaults, the Jobs made from it do."""
    spec = obj.setdefault("spec", {})
    _filled(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    made = spec.setdefault("jobTemplate", {})
    made.setdefault("metadata", {})
    template(made.setdefault("spec", {}).setdefault("template", {}))
    obj.setdefault("status", {})


def pod_template(obj: Obj) -> None:
    """Fill in a PodTemplate."""
    template(obj.setdefault("template", {}))


def autoscaler(obj: Obj) -> None:
    """Fill in a HorizontalPodAutoscaler."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    spec.setdefault("scaleTargetRef", {})
    if obj.get("apiVersion") != "autoscaling/v1" and not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if isinstance(spec.get("behavior"), dict):
        _scaling(spec["behavior"])
    _filled(obj.setdefault("status", {}), currentMetrics=None, desiredReplicas=0)
    _no_times(obj, "lastTransitionTime")


def _scaling(behavior: Obj) -> None:
    percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
    up = [{"type": "Pods", "value": 4, "periodSeconds": 15}, percent]
    _filled(behavior.setdefault("scaleUp", {}), stabilizationWindowSeconds=0, selectPolicy="Max", policies=up)
    _filled(behavior.setdefault("scaleDown", {}), selectPolicy="Max", policies=[dict(percent)])
