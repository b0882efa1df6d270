"""Copies of virtual ConfigMaps that synced objects use."""

from syncer.api import Obj
from syncer.resources.kinds import CONFIG_MAPS
from syncer.resources.used import UsedSyncer

#: Published by Kubernetes in every namespace. Pods get the virtual API server's CA from the
#: translated copy of the virtual one; the host's own of that name is never changed.
ROOT_CA = "kube-root-ca.crt"


class ConfigMapSyncer(UsedSyncer):
    """Copies the ConfigMaps that synced objects use; the virtual side owns all of their data.

    Pods only read them, so a copy stays until its original is gone, whatever finalizers hold that.
    """

    name = "configmaps"
    resource = CONFIG_MAPS
    section = "toHost.configMaps"
    down = ("data", "binaryData", "immutable")

    def only_when_used(self, virtual: Obj) -> bool:
        """Return True for the CA that is in every namespace: where no Pod runs, nothing uses it."""
        return bool(virtual["metadata"]["name"] == ROOT_CA)
