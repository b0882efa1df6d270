"""The command lines of a control plane's programs, as pure functions of its layout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kube_envtest.controlplane.identity import FRONT_PROXY
from kube_envtest.controlplane.programs import APISERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER, Layout

ISSUER = "https://kubernetes.default.svc.cluster.local"


def etcd(layout: Layout) -> list[str]:
    """Return etcd's command line: a single member that never syncs to disk, since its data needn't
    survive the machine.
    """
    return [
        f"--data-dir={layout.folder / 'etcd'}",
        f"--listen-client-urls={layout.etcd_url}",
        f"--advertise-client-urls={layout.etcd_url}",
        "--listen-peer-urls=http://127.0.0.1:0",
        "--unsafe-no-fsync",
        "--quota-backend-bytes=4294967296",
        "--log-level=warn",
    ]


def apiserver(layout: Layout) -> list[str]:
    """Return the API server's: RBAC, users by client certificate and by token.

    The plane's own flags come last, so they win.
    """
    folder = layout.folder
    return [
        f"--etcd-servers={layout.etcd_url}",
        f"--secure-port={layout.port}",
        f"--tls-cert-file={folder / 'server.crt'}",
        f"--tls-private-key-file={folder / 'server.key'}",
        f"--client-ca-file={folder / 'ca.crt'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={folder / 'sa.pub'}",
        f"--service-account-signing-key-file={folder / 'sa.key'}",
        f"--service-cluster-ip-range={layout.service_range}",
        "--profiling=false",
        "--allow-privileged=true",
        *_without_service_accounts(layout.controllers),
        *_addresses(layout),
        *layout.apiserver_flags,
    ]


def _addresses(layout: Layout) -> list[str]:
    """Return the flags for clients: of this machine alone, or kubelets and pods, too."""
    folder = layout.folder
    if not layout.node_address:
        none = "--endpoint-reconciler-type=none"  # its address is the loopback, which Endpoints may not contain
        return ["--bind-address=127.0.0.1", "--authorization-mode=RBAC", none]
    return [
        "--bind-address=0.0.0.0",
        f"--advertise-address={layout.node_address}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--kubelet-client-certificate={folder / 'admin.crt'}",
        f"--kubelet-client-key={folder / 'admin.key'}",
        f"--kubelet-certificate-authority={folder / 'ca.crt'}",
        "--kubelet-preferred-address-types=InternalIP,Hostname",
        f"--requestheader-client-ca-file={folder / 'ca.crt'}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={folder / f'{FRONT_PROXY}.crt'}",
        f"--proxy-client-key-file={folder / f'{FRONT_PROXY}.key'}",
        "--enable-aggregator-routing=true",
    ]


def controller_manager(layout: Layout) -> list[str]:
    """Return the controller manager's: no leader election, no port, and no client-side rate limit."""
    return [
        f"--kubeconfig={layout.folder / 'admin.kubeconfig'}",
        f"--controllers={layout.controllers}",
        f"--root-ca-file={layout.folder / 'ca.crt'}",
        f"--service-account-private-key-file={layout.folder / 'sa.key'}",
        "--leader-elect=false",
        "--secure-port=0",
        "--profiling=false",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        *(_signing(layout.folder) if layout.node_address else []),
    ]


def _signing(folder: Path) -> list[str]:
    return [f"--cluster-signing-cert-file={folder / 'ca.crt'}", f"--cluster-signing-key-file={folder / 'ca.key'}"]


def scheduler(layout: Layout) -> list[str]:
    """Return the scheduler's: no leader election, no port."""
    return [
        f"--kubeconfig={layout.folder / 'admin.kubeconfig'}",
        "--leader-elect=false",
        "--secure-port=0",
        "--profiling=false",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]


def runs(controllers: str, name: str) -> bool:
    """Return True if a `--controllers` list enables the controller: its own entry counts before the star."""
    entries = controllers.split(",")
    return f"-{name}" not in entries and (name in entries or "*" in entries)


def _without_service_accounts(controllers: str) -> list[str]:
    """Disable the ServiceAccount admission if the controller that creates the default
    ServiceAccounts is disabled.
    """
    if runs(controllers, "serviceaccount-controller"):
        return []
    return ["--disable-admission-plugins=ServiceAccount"]


ARGUMENTS: dict[str, Callable[[Layout], list[str]]] = {
    ETCD: etcd,
    APISERVER: apiserver,
    CONTROLLER_MANAGER: controller_manager,
    SCHEDULER: scheduler,
}
