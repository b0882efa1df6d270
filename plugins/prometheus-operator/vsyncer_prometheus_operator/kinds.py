"""The resources that the syncers of this package use."""

from syncer.api import Resource

SERVICE_MONITORS = Resource("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors")
POD_MONITORS = Resource("monitoring.coreos.com/v1", "PodMonitor", "podmonitors")
SERVICES = Resource("v1", "Service", "services")
PODS = Resource("v1", "Pod", "pods")
SECRETS = Resource("v1", "Secret", "secrets")
CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps")
