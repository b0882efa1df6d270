"""Copies of virtual ConfigMaps that synced objects use."""

from syncer.api import Key, Obj, key_of
from syncer.resources.kinds import CONFIG_MAPS
from syncer.resources.used import UsedSyncer

#: Published by Kubernetes in every namespace. Pods get the virtual API server's CA from the
#: translated copy of the virtual one; the host's own of that name is never changed.
ROOT_CA = "kube-root-ca.crt"
#: ConfigMaps that a control plane keeps for itself and its nodes: those of the API server and of
#: kubeadm, and the daemon's record of the virtual cluster's identity. They leave the virtual
#: cluster only for a Pod that mounts them.
CONTROL_PLANE = frozenset(
    {
        Key("kube-public", "cluster-info"),
        Key("kube-system", "extension-apiserver-authentication"),
        Key("kube-system", "kube-apiserver-legacy-service-account-token-tracking"),
        Key("kube-system", "kube-proxy"),
        Key("kube-system", "kubeadm-config"),
        Key("kube-system", "kubelet-config"),
        Key("kube-system", "vsyncer"),
    }
)


class ConfigMapSyncer(UsedSyncer):
    """Copies the ConfigMaps that synced objects use; the virtual side owns all of their data.

    Pods only read them, so a copy stays until its original is gone, whatever finalizers hold that.
    `all` leaves out `kube-root-ca.crt`, which is in every namespace, and what the virtual control
    plane keeps for itself and its nodes in `kube-system` and `kube-public`: these are copied only
    while they are used.
    """

    name = "configmaps"
    resource = CONFIG_MAPS
    section = "toHost.configMaps"
    shown_by = "host-configmaps"
    down = ("data", "binaryData", "immutable")

    def only_when_used(self, virtual: Obj) -> bool:
        """Return True for the virtual control plane's ConfigMaps, and for each namespace's CA.

        Without a Pod that mounts them, nothing on the host uses them.
        """
        key = key_of(virtual)
        return key.name == ROOT_CA or key in CONTROL_PLANE
