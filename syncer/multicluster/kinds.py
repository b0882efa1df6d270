"""Kinds that controllers often read and watch, so that nobody has to spell them."""

from syncer.api.objects import Resource
from syncer.resources.kinds import (
    CONFIG_MAPS,
    EVENTS,
    INGRESSES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)

DEPLOYMENTS = Resource("apps/v1", "Deployment", "deployments")
STATEFUL_SETS = Resource("apps/v1", "StatefulSet", "statefulsets")
DAEMON_SETS = Resource("apps/v1", "DaemonSet", "daemonsets")
JOBS = Resource("batch/v1", "Job", "jobs")
CRON_JOBS = Resource("batch/v1", "CronJob", "cronjobs")

__all__ = [
    "CONFIG_MAPS",
    "CRON_JOBS",
    "DAEMON_SETS",
    "DEPLOYMENTS",
    "EVENTS",
    "INGRESSES",
    "JOBS",
    "NAMESPACES",
    "NODES",
    "PERSISTENT_VOLUME_CLAIMS",
    "PODS",
    "SECRETS",
    "SERVICES",
    "SERVICE_ACCOUNTS",
    "STATEFUL_SETS",
]
