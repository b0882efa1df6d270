"""``syncer rbac``: the roles that the daemon needs on each side, as manifests."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from syncer.cli import show
from syncer.cli.options import GivenOptions, option, output, pass_given, settings

if TYPE_CHECKING:
    from syncer.api import Obj
    from syncer.config import SyncerConfig
    from syncer.rights.rbac import Subject


@click.command()
@settings()
@output("yaml", "json")
@option("--side", type=click.Choice(["virtual", "host"]), help="Only the roles of this side.")
@option(
    "--only",
    type=click.Choice(["daemon", "cluster"]),
    help="Only the roles for the daemon itself, or only those for virtual clusters.",
)
@option(
    "--service-account",
    metavar="NAMESPACE/NAME",
    help="Bind the roles to this ServiceAccount.",
)
@option("--user", metavar="NAME", help="Bind the roles to this user.")
@option(
    "--flow-schema",
    is_flag=True,
    help="Print, instead of the roles, the objects that let the host bound the daemon's requests.",
)
@option(
    "--admission",
    is_flag=True,
    help="Print the host's admission policy for this ServiceAccount or user instead of roles.",
)
@pass_given
def rbac(
    given: GivenOptions,
    output: str,
    side: str | None,
    only: str | None,
    service_account: str | None,
    user: str | None,
    flow_schema: bool,
    admission: bool,
) -> None:
    """Print exactly the rights that the enabled syncers need.

    For the daemon itself: its Lease, and resources of the host as a whole. For a virtual cluster: a
    ClusterRole in it, and a Role in each of its host namespaces.

    With --admission: a ValidatingAdmissionPolicy for the host. By this policy, the API server lets
    the daemon write only objects with its mark, in its host namespaces, connect to nothing but a
    tenant's pods (with kubelet.enabled), and get no tokens. The policy doesn't confine reads.

    \b
    Examples:
      syncer rbac --side host --service-account vc-shop-syncer/syncer | kubectl apply -f -
      syncer rbac --only cluster --cluster shop    # to add a virtual cluster to a daemon
      syncer rbac --flow-schema --service-account vc-shop-syncer/syncer | kubectl apply -f -
      syncer rbac --admission --service-account vc-shop-syncer/syncer | kubectl apply -f -
    """
    from syncer.cli.loading import loaded
    from syncer.daemon.roles import roles_of

    found = loaded(given)[0]
    config = found.config
    subject = _subject(service_account, user)
    if flow_schema:
        if admission or side or only:
            why = "--flow-schema takes no --admission, no --side and no --only"
            raise click.UsageError(f"{why}: print each by itself")
        manifests = _flow_schemas(config, subject)
    elif admission:
        if subject is None or side or only:
            why = "--admission needs --service-account or --user"
            raise click.UsageError(f"{why}, and takes no --side and no --only")
        manifests = _admission(config, subject)
    else:
        manifests = roles_of(config, subject, side=side, only=only, chosen=found.chosen)
    show.documents(manifests, output)


def _daemon_name(config: "SyncerConfig") -> str:
    """Return the name of the daemon's objects that are in no namespace."""
    if config.lease_namespace:
        return f"{config.lease_name}.{config.lease_namespace}"
    return config.lease_name


def _flow_schemas(config: "SyncerConfig", subject: "Subject | None") -> "list[Obj]":
    from syncer.rights.flow_schema import flow_schemas

    if subject is None:
        message = "--flow-schema needs the daemon's user on the host: --service-account or --user"
        raise click.UsageError(message)
    return flow_schemas(subject, name=_daemon_name(config))


def _admission(config: "SyncerConfig", subject: "Subject") -> "list[Obj]":
    from syncer.api import Marks
    from syncer.daemon.roles import clusters_of_secrets
    from syncer.resources.namespaces import NamespaceConfig
    from syncer.rights.admission import Confined, named_kinds, policy
    from syncer.rights.rbac import needed

    clusters: list[Confined] = []
    for cluster in config.clusters():
        settings = cluster.settings()
        fixed = cluster.translator.host_namespaces()
        namespaces = sorted({*(fixed or ()), *settings.namespaces})
        section = settings.section("namespaces", NamespaceConfig)
        pod_security: Mapping[str, str] = {}
        if section and not section.patches.down:
            pod_security = section.overlay
        confined = Confined(
            identity=settings.identity,
            namespaces=namespaces,
            makes_namespaces=fixed is None,
            connects=settings.kubelet,
            pod_security=pod_security,
            named=named_kinds(needed(cluster.all_syncers(), settings=settings)),
        )
        clusters.append(confined)

    # Whether the daemon answers as the kubelet, by the host namespaces that Secrets may lead to.
    lent: dict[str, bool] = {}
    lent_kinds: set[str] = set()
    for cluster in clusters_of_secrets(config):
        namespace = cluster.host_namespace
        settings = cluster.settings()
        lent[namespace] = lent.get(namespace, False) or settings.kubelet
        lent_kinds.update(named_kinds(needed(cluster.all_syncers(), settings=settings)))

    lease = None
    if config.leader_election.enabled:
        lease = (config.lease_namespace, config.lease_name)
    return policy(
        clusters,
        name=_daemon_name(config),
        user=subject.user,
        marks=Marks(config.marks.prefix),
        lease=lease,
        lent=lent,
        lent_kinds=sorted(lent_kinds),
        is_shared=config.leader_election.shards > 1,
    )


def _subject(service_account: str | None, user: str | None) -> "Subject | None":
    from syncer.rights.rbac import Subject

    if service_account and user:
        raise click.UsageError("--service-account and --user exclude one another")
    if user:
        return Subject(user)
    if not service_account:
        return None
    namespace, _, name = service_account.partition("/")
    if not namespace or not name:
        why = f"{service_account!r} is not of the form NAMESPACE/NAME"
        raise click.UsageError(f"--service-account: {why}")
    return Subject(name, namespace)
