"""``syncer pki``: the certificates of a virtual control plane, kept in Secrets of the host."""

import os
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from syncer.cli import show
from syncer.cli.options import option, output

if TYPE_CHECKING:
    from syncer.pki.layout import PkiSettings
    from syncer.pki.store import StoreReport

#: Most seconds to wait for the address of a load balancer.
MOST_WAIT = 3600
#: The etcd members that a control plane has at most.
MEMBERS = 3


@click.command()
@option(
    "--namespace",
    metavar="NAME",
    required=True,
    help="Namespace of the Service and the Secrets, on the host.",
)
@option(
    "--service",
    metavar="NAME",
    required=True,
    help="The Service in front of the virtual API server.",
)
@option(
    "--secret",
    metavar="NAME",
    help="Secret with the files of the control plane. Default: SERVICE-pki.",
)
@option(
    "--kubeconfig-secret",
    metavar="NAME",
    help="Secret for the tenant. Default: SERVICE-kubeconfig.",
)
@option("--daemon-secret", metavar="NAME", help="Secret for the daemon. Default: SERVICE-daemon.")
@option(
    "--etcd-service",
    metavar="NAME",
    help="The headless Service of etcd's members. Default: SERVICE-etcd.",
)
@option(
    "--etcd-members",
    metavar="NAME,…",
    help="The members' host names below that Service. Default: SERVICE-control-plane-0, -1 and -2.",
)
@option(
    "--name",
    "names",
    metavar="NAME",
    multiple=True,
    help="A further DNS name or IP address of the API server.",
)
@option(
    "--server",
    metavar="URL",
    help="The tenant's server. Default: the load balancer, or else SERVICE.NAMESPACE.svc.",
)
@option(
    "--wait",
    type=click.IntRange(0, MOST_WAIT),
    default=0,
    metavar="SECONDS",
    help="Wait for the address of a load balancer, once all else is written. Default: 0.",
)
@option("--keep", is_flag=True, help="Keep the Secrets when the Service is deleted.")
@option(
    "--virtual-cluster",
    metavar="NAMESPACE/NAME",
    help="Mark the daemon's Secret as the virtual cluster of this name, with this host namespace, "
    "for a daemon with virtualClusterSecrets. Empty: remove that mark.",
)
@option("--rbac", is_flag=True, help="Print the Role that this command needs, instead.")
@option(
    "--host-kubeconfig",
    metavar="FILE",
    default="",
    help="Kubeconfig of the host. Default: kubectl's, or in-cluster.",
)
@option("--host-context", metavar="NAME", default="", help="Context in that file.")
@output("table", "json", "yaml")
def pki(
    namespace: str,
    service: str,
    secret: str | None,
    kubeconfig_secret: str | None,
    daemon_secret: str | None,
    etcd_service: str | None,
    etcd_members: str | None,
    names: tuple[str, ...],
    server: str | None,
    wait: int,
    keep: bool,
    virtual_cluster: str | None,
    rbac: bool,
    host_kubeconfig: str,
    host_context: str,
    output: str,
    no_headers: bool,
) -> None:
    """Make the certificates of a virtual control plane, and renew them.

    Missing certificates are made; those that have less than a third of their life left, lack a
    name, or are damaged are renewed. A CA, and the key of the tokens, are never replaced: if one is
    damaged, nothing is written. CAs last ten years, the rest a year, so run this command daily.
    Several may run at once.

    \b
    Three Secrets:
      SERVICE-pki         files of etcd, the API server and its controllers, with kubeadm's names
      SERVICE-kubeconfig  the tenant's administrator (group vsyncer:tenant-admins): config, and the
                          certificate in files
      SERVICE-daemon      the daemon's user: config, which names the files beside it

    \b
    Examples:
      syncer pki --namespace shop --service shop-api
      syncer pki --namespace shop --service shop-api --name api.shop.example --wait 120
      syncer pki --namespace shop --service shop-api --rbac | kubectl apply -f -

    Exit status: 0 all is there; 1 something failed, and can be tried again; 2 wrong usage.
    """
    from syncer.pki import layout

    if etcd_members:
        members = etcd_members.split(",")
    else:
        members = [f"{service}-control-plane-{number}" for number in range(MEMBERS)]
    wanted = layout.PkiSettings(
        _label(namespace, "--namespace"),
        _label(service, "--service"),
        _secret(secret or f"{service}-pki", "--secret"),
        _secret(kubeconfig_secret or f"{service}-kubeconfig", "--kubeconfig-secret"),
        _secret(daemon_secret or f"{service}-daemon", "--daemon-secret"),
        _label(etcd_service or f"{service}-etcd", "--etcd-service"),
        tuple(_label(each.strip(), "--etcd-members") for each in members),
        tuple(_host(each.lower(), "--name") for each in names),
        server or "",
        _server_host(server) if server else "",
        keep,
        None if virtual_cluster is None else _followed(virtual_cluster),
    )
    if len(set(wanted.secrets)) < len(wanted.secrets):
        raise click.UsageError("--secret, --kubeconfig-secret and --daemon-secret must differ")
    if rbac:
        form = "json" if output == "json" else "yaml"
        show.documents([layout.role(wanted)], form)
        return
    _show(
        _completed(wanted, wait, host_kubeconfig, host_context),
        wanted,
        output,
        headers=not no_headers,
    )


def _completed(wanted: "PkiSettings", wait: int, kubeconfig: str, context: str) -> "StoreReport":
    import asyncio

    from syncer.api.objects import Side
    from syncer.clusters.connection import ConnectionSettings, connect
    from syncer.pki.store import complete

    async def run() -> "StoreReport":
        host = connect(ConnectionSettings(kubeconfig, context), side=Side.HOST, environ=os.environ)
        try:
            return await complete(host, wanted, wait=wait)
        finally:
            await host.close()

    return asyncio.run(run())


def _show(report: "StoreReport", wanted: "PkiSettings", output: str, *, headers: bool) -> None:
    show.records([each._asdict() for each in report.outcomes], output, headers=headers)
    for warning in report.warnings:
        click.echo(show.red(f"warning: {warning}"), err=True)
    if report.is_awaited:
        service = f"Service {wanted.namespace}/{wanted.service}"
        click.echo(
            f"{service} has no address of a load balancer yet: the next run adds it.",
            err=True,
        )


def _label(text: str, flag: str) -> str:
    from syncer.api.dns_names import DNS_LABEL
    from syncer.api.objects import LONGEST_LABEL

    if len(text) > LONGEST_LABEL or not re.fullmatch(DNS_LABEL, text):
        form = f"lower-case letters, digits and -, at most {LONGEST_LABEL}"
        raise click.UsageError(f"{flag}: {text!r} is no name for it: {form}")
    return text


def _secret(text: str, flag: str) -> str:
    from syncer.api.dns_names import DNS_SUBDOMAIN
    from syncer.api.objects import LONGEST_NAME

    if len(text) > LONGEST_NAME or not re.fullmatch(DNS_SUBDOMAIN, text):
        raise click.UsageError(f"{flag}: {text!r} is no name of a Secret")
    return text


def _followed(text: str) -> tuple[str, str]:
    """Return the name and the host namespace of a virtual cluster, or two empty texts."""
    if not text:
        return "", ""
    home, _, name = text.partition("/")
    return _label(name, "--virtual-cluster"), _label(home, "--virtual-cluster")


def _host(text: str, flag: str) -> str:
    import ipaddress

    from syncer.pki.layout import is_name

    if not is_name(text):
        raise click.UsageError(f"{flag}: {text!r} is neither a DNS name nor an IP address")
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text


def _server_host(url: str) -> str:
    """Return the host of a URL, which the certificate must name."""
    why = "is no URL of an API server, such as https://api.example.com:6443"
    message = f"--server: {url!r} {why}"
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port  # raises ValueError if the port is no number
    except ValueError:
        raise click.UsageError(message) from None

    has_more = parts.username is not None or parts.query or parts.fragment
    if not host or parts.scheme != "https" or has_more:
        raise click.UsageError(message)
    return _host(host, "--server")
