"""Copies of the virtual ConfigMaps that synced Pods use."""

from syncer.api import Obj
from syncer.resources.kinds import CONFIG_MAPS
from syncer.resources.used import UsedSyncer

#: Published by Kubernetes into every namespace. Pods reach the virtual one, and so the virtual API server's CA,
#: through its translated copy; the host's own of that name is never touched.
ROOT_CA = "kube-root-ca.crt"


class ConfigMapSyncer(UsedSyncer):
    """The virtual side owns all of a ConfigMap."""

    name = "configmaps"
    resource = CONFIG_MAPS
    section = "toHost.configMaps"
    down = ("data", "binaryData", "immutable")

    def only_when_used(self, virtual: Obj) -> bool:
        """Return the CA that is in every namespace is noise where no Pod runs."""
        return bool(virtual["metadata"]["name"] == ROOT_CA)
