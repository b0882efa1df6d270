"""The contents of a virtual control plane's Secrets: files, users and names.

Also the rights that are needed to write them.
"""

import base64
import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from syncer.api.dns_names import DNS_SUBDOMAIN
from syncer.api.marks import PREFIX
from syncer.api.objects import LONGEST_NAME, Obj
from syncer.pki.certificates import Leaf

#: The label on our Secrets: the name of the Service that the certificates are for.
MARK = f"{PREFIX}/pki"
#: The CAs with their names. A certificate that the virtual cluster signs for a tenant is one of
#: ``ca``, so neither a front proxy nor etcd trusts it.
AUTHORITIES = {"ca": "kubernetes", "front-proxy-ca": "front-proxy-ca", "etcd-ca": "etcd-ca"}
#: The user of the daemon, and its group. As for the tenant's administrator, all rights are bound in
#: the virtual cluster, and can be taken away there.
DAEMON = "vsyncer"
DAEMONS = "vsyncer:daemons"
#: The user of the tenant's administrator, and its group.
ADMIN = "kubernetes-admin"
ADMINS = "vsyncer:tenant-admins"
#: The user of the API server at the kubelets.
KUBELET_CLIENT = "kube-apiserver-kubelet-client"
#: The user for an emergency, as in kubeadm's ``super-admin.conf``.
SUPER_ADMIN = "kubernetes-super-admin"
#: The group of that user. Neither RBAC nor API Priority and Fairness holds for it, even if the
#: virtual cluster has lost its rules.
MASTERS = "system:masters"
#: Names of every API server: of its own machine, and in its own cluster.
OWN_NAMES = (
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
#: The programs that run in the pod of the API server, which each knows at ``LOCAL_SERVER``.
LOCAL_PROGRAMS = ("controller-manager", "scheduler")
LOCAL_SERVER = "https://localhost:6443"
_HTTPS = 443


@dataclass(frozen=True, slots=True)
class PkiSettings:
    """The settings: the Service in front of the virtual API server, Secrets, and further names."""

    namespace: str
    service: str
    secret: str
    kubeconfig_secret: str
    daemon_secret: str
    etcd_service: str
    etcd_members: tuple[str, ...]
    #: Further names of the API server.
    names: tuple[str, ...] = ()
    #: The server in the tenant's kubeconfig; ``""``: the load balancer's address, or else the name
    #: of the Service.
    server: str = ""
    #: The host in ``server``.
    server_host: str = ""
    #: True if the Secrets are to outlive the Service.
    keep: bool = False
    #: The name of the virtual cluster and its host namespace, for daemons that find it by the
    #: daemon's Secret; two empty ones: such daemons don't serve it. None: the Secret's labels and
    #: annotations are left unchanged.
    followed: tuple[str, str] | None = None

    @property
    def secrets(self) -> tuple[str, str, str]:
        """The names of the Secrets. The one with the CAs is first, and is written first."""
        return self.secret, self.kubeconfig_secret, self.daemon_secret


@dataclass(frozen=True, slots=True)
class ServiceName:
    """The addresses at which clients reach the Service."""

    #: Its IP addresses and those of its load balancer, with the load balancer's DNS names.
    names: tuple[str, ...]
    #: The first of the load balancer's; ``""`` if it has none.
    external: str
    port: int
    #: True if the Service is to get the address of a load balancer, and has none yet.
    is_awaited: bool

    def url(self, host: str) -> str:
        """Return the URL of the Service's port at a host."""
        if ":" in host:  # an IPv6 address
            host = f"[{host}]"
        if self.port == _HTTPS:
            return f"https://{host}"
        return f"https://{host}:{self.port}"


def address_of(service: Obj) -> ServiceName:
    """Return the addresses of a Service. Its port is that named ``https``, or else the first."""
    spec = service.get("spec") or {}
    status = service.get("status") or {}
    balancer = status.get("loadBalancer") or {}
    given: list[str | None] = []
    for entry in balancer.get("ingress") or ():
        given.append(entry.get("hostname"))
        given.append(entry.get("ip"))
    balanced = _usable(given)
    own = _usable([*(spec.get("clusterIPs") or ()), *(spec.get("externalIPs") or ())])
    external = balanced[0] if balanced else ""

    ports = spec.get("ports") or [{"port": _HTTPS}]
    port = ports[0]
    for each in ports:
        if each.get("name") == "https":
            port = each
            break

    return ServiceName(
        names=(*own, *balanced),
        external=external,
        port=int(port["port"]),
        is_awaited=spec.get("type") == "LoadBalancer" and not external,
    )


def server_names(wanted: PkiSettings, address: ServiceName) -> tuple[str, ...]:
    """Return the names of the API server."""
    short = f"{wanted.service}.{wanted.namespace}"
    names = [*OWN_NAMES, wanted.service, short, f"{short}.svc", f"{short}.svc.cluster.local"]
    names += address.names
    if wanted.server_host:
        names.append(wanted.server_host)
    names += wanted.names
    return tuple(dict.fromkeys(names))


def leaves(wanted: PkiSettings, address: ServiceName) -> Mapping[str, tuple[str, Leaf]]:
    """Return the certificates of the control plane: the CA of each, and its contents.

    etcd's members take turns as each other's clients. To a member, another's certificate must name
    the address that it comes from, by a name that leads there.
    """
    service = f"{wanted.etcd_service}.{wanted.namespace}.svc"
    members = tuple(f"{member}.{service}" for member in wanted.etcd_members)
    etcd = (*OWN_NAMES[:3], service, *members)
    server = Leaf("kube-apiserver", names=server_names(wanted, address), client=False)
    return {
        "apiserver": ("ca", server),
        "apiserver-kubelet-client": ("ca", Leaf(KUBELET_CLIENT)),
        "controller-manager": ("ca", Leaf("system:kube-controller-manager")),
        "scheduler": ("ca", Leaf("system:kube-scheduler")),
        "super-admin": ("ca", Leaf(SUPER_ADMIN, MASTERS)),
        "front-proxy-client": ("front-proxy-ca", Leaf("front-proxy-client")),
        "etcd-server": ("etcd-ca", Leaf("etcd-server", names=etcd)),
        "etcd-peer": ("etcd-ca", Leaf("etcd-peer", names=etcd)),
        "apiserver-etcd-client": ("etcd-ca", Leaf("kube-apiserver-etcd-client")),
    }


def local_kubeconfig(wanted: PkiSettings, program: str) -> bytes:
    """Return the kubeconfig of one of ``LOCAL_PROGRAMS``.

    It names the files beside it, which are read again when they change.
    """
    return _kubeconfig(
        wanted.service,
        LOCAL_SERVER,
        f"system:kube-{program}",
        {"certificate-authority": "ca.crt"},
        {"client-certificate": f"{program}.crt", "client-key": f"{program}.key"},
    )


def daemon_kubeconfig(wanted: PkiSettings, address: ServiceName) -> bytes:
    """Return the daemon's kubeconfig.

    It names the files beside it, which are read again when they change.
    """
    return _kubeconfig(
        wanted.service,
        address.url(f"{wanted.service}.{wanted.namespace}.svc"),
        DAEMON,
        {"certificate-authority": "ca.crt"},
        {"client-certificate": "tls.crt", "client-key": "tls.key"},
    )


def super_admin_kubeconfig(
    wanted: PkiSettings,
    address: ServiceName,
    files: Mapping[str, bytes],
) -> bytes:
    """Return the kubeconfig for an emergency, for the host's network. It needs no other file."""
    server = address.url(f"{wanted.service}.{wanted.namespace}.svc")
    return _whole_kubeconfig(wanted.service, server, SUPER_ADMIN, files, "super-admin")


def tenant_kubeconfig(
    wanted: PkiSettings,
    address: ServiceName,
    files: Mapping[str, bytes],
) -> bytes:
    """Return the kubeconfig of the tenant's administrator. It needs no other file."""
    server = wanted.server
    if not server:
        own = f"{wanted.service}.{wanted.namespace}.svc"
        server = address.url(address.external or own)
    return _whole_kubeconfig(wanted.service, server, ADMIN, files, "tls")


def role(wanted: PkiSettings) -> Obj:
    """Return the Role with the rights that are needed.

    A right to create can't be narrowed to names.
    """
    service = {
        "apiGroups": [""],
        "resources": ["services"],
        "resourceNames": [wanted.service],
        "verbs": ["get"],
    }
    secrets = {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": sorted(wanted.secrets),
        "verbs": ["get", "update"],
    }
    creation = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": wanted.secret, "namespace": wanted.namespace},
        "rules": [service, secrets, creation],
    }


def is_name(text: str) -> bool:
    """Return True for a name of a certificate: an IP address, a DNS name, or ``*.`` and one."""
    if _is_ip(text):
        return True
    return len(text) <= LONGEST_NAME and bool(re.fullmatch(DNS_SUBDOMAIN, text.removeprefix("*.")))


def _usable(names: Iterable[str | None]) -> list[str]:
    """Return the names that a certificate can have, IP addresses as Python writes them.

    A headless Service has the text ``None`` for an address.
    """
    found: list[str] = []
    for name in names:
        if not name or not is_name(name):
            continue
        if _is_ip(name):
            found.append(str(ipaddress.ip_address(name)))
        else:
            found.append(name)
    return found


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _whole_kubeconfig(
    name: str,
    server: str,
    user: str,
    files: Mapping[str, bytes],
    leaf: str,
) -> bytes:
    """Return a kubeconfig with the CA and a certificate in it."""
    authority = base64.b64encode(files["ca.crt"]).decode()
    certificate = base64.b64encode(files[f"{leaf}.crt"]).decode()
    key = base64.b64encode(files[f"{leaf}.key"]).decode()
    return _kubeconfig(
        name,
        server,
        user,
        {"certificate-authority-data": authority},
        {"client-certificate-data": certificate, "client-key-data": key},
    )


def _kubeconfig(
    name: str,
    server: str,
    user: str,
    authority: Mapping[str, str],
    credentials: Mapping[str, str],
) -> bytes:
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, **authority}}],
        "users": [{"name": user, "user": dict(credentials)}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }
    return yaml.safe_dump(document, sort_keys=False, width=10**6).encode()
