"""``syncer rbac``: the roles that the daemon needs on each side, as manifests."""

from collections import Counter
from typing import TYPE_CHECKING

import click

from syncer.cli import show
from syncer.cli.options import GivenOptions, option, output, pass_given, settings

if TYPE_CHECKING:
    from syncer.api import Obj
    from syncer.config import SyncerConfig, VirtualCluster
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
@option("--service-account", metavar="NAMESPACE/NAME", help="Bind the roles to this ServiceAccount.")
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

    With --admission: a ValidatingAdmissionPolicy for the host, by which its API server lets the
    daemon write only objects with its mark, in its host namespaces, connect to nothing but a tenant's pods (with
    kubelet.enabled), and get no tokens. Reads are not confined by it.

    \b
    Examples:
      syncer rbac --side host --service-account vc-shop-syncer/syncer | kubectl apply -f -
      syncer rbac --only cluster --cluster shop    # to add a virtual cluster to a daemon
      syncer rbac --flow-schema --service-account vc-shop-syncer/syncer | kubectl apply -f -
      syncer rbac --admission --service-account vc-shop-syncer/syncer | kubectl apply -f -
    """
    from syncer.cli.loading import loaded

    found = loaded(given)[0]
    config, subject = found.config, _subject(service_account, user)
    if flow_schema and (admission or side or only):
        raise click.UsageError("--flow-schema takes no --admission, no --side and no --only: print each by itself")
    if flow_schema:
        show.documents(_flow_schemas(config, subject), output)
        return
    if admission:
        if subject is None or side or only:
            raise click.UsageError("--admission needs --service-account or --user, and takes no --side and no --only")
        show.documents(_admission(config, subject), output)
        return
    show.documents(_roles(config, subject, side=side, only=only, chosen=found.chosen), output)


def _roles(
    config: "SyncerConfig", subject: "Subject | None", *, side: str | None, only: str | None, chosen: str
) -> "list[Obj]":
    """Return the roles of the daemon, and of the chosen virtual cluster or of all, with their bindings."""
    from syncer.api import Side
    from syncer.rights.rbac import Share, daemon_manifests, needed, secret_reader

    subjects = dict.fromkeys(Side, subject) if subject else {}
    election = config.leader_election.enabled

    def share(each: "VirtualCluster", name: str) -> Share:
        granted = needed(each.all_syncers(), settings=each.settings(), leader_election=election)
        return Share(name, granted, each.translator.host_namespaces())

    shares = [share(each, each.name) for each in config.clusters()]
    lent = [share(each, each.name) for each in _of_secrets(config)]
    roles: dict[Side, list[Obj]] = {each: [] for each in Side}
    if only != "cluster":
        roles[Side.HOST] += daemon_manifests(
            [*shares, *lent],
            name=config.lease_name,
            home=config.lease_namespace,
            subject=subject,
            is_shared=config.leader_election.shards > 1,
        )
        namespaces = {each.namespace for each in config.virtual_cluster_secrets}
        for namespace in sorted(namespaces):
            roles[Side.HOST] += secret_reader(namespace, name=f"{config.lease_name}.secrets", subject=subject)
    for each in (*shares, *lent):
        if only != "daemon" and (chosen in ("", each.cluster) or (each in lent and chosen not in config.names_listed)):
            for place, made in each.manifests(subjects).items():
                for one in made:
                    _add(roles[place], one)
    return [each for one in ([Side(side)] if side else Side) for each in roles[one]]


def _add(roles: "list[Obj]", new: "Obj") -> None:
    """Add a role or a binding; the rules of one that is there already are added to it.

    Virtual clusters of the same Secrets in several host namespaces have a Role of one name where they share a
    namespace: applied after each other, the last would replace the others.
    """
    from syncer.api import key_of

    for one in roles:
        if (one["kind"], key_of(one)) == (new["kind"], key_of(new)):
            if "rules" in one:
                one["rules"] += [each for each in new["rules"] if each not in one["rules"]]
            return
    roles.append(new)


def _of_secrets(config: "SyncerConfig") -> "list[VirtualCluster]":
    """Return a virtual cluster that stands for all those of Secrets, for each host namespace that they may be in."""
    found, seen = [], Counter[str]()
    for each in config.virtual_cluster_secrets:
        seen[each.namespace] += 1
        name = f"secrets.{each.namespace}" + (f".{seen[each.namespace]}" if seen[each.namespace] > 1 else "")
        found += [config.cluster_of(each, name, home) for home in each.host_namespaces]
    return found


def _flow_schemas(config: "SyncerConfig", subject: "Subject | None") -> "list[Obj]":
    from syncer.rights.flow_schema import flow_schemas

    if subject is None:
        raise click.UsageError("--flow-schema needs the daemon's user on the host: --service-account or --user")
    home = config.lease_namespace
    return flow_schemas(subject, name=f"{config.lease_name}.{home}" if home else config.lease_name)


def _admission(config: "SyncerConfig", subject: "Subject") -> "list[Obj]":
    from syncer.api import Marks
    from syncer.resources.namespaces import NamespaceConfig
    from syncer.rights.admission import Confined, policy

    clusters = []
    for each in config.clusters():
        settings, fixed = each.settings(), each.translator.host_namespaces()
        namespaces = sorted({*(fixed or ()), *settings.namespaces})
        homes = settings.section("namespaces", NamespaceConfig)
        enforced = homes.overlay if homes and not homes.patches.down else {}
        clusters.append(Confined(settings.identity, namespaces, fixed is None, settings.kubelet, enforced))
    lent: dict[str, bool] = {}
    for each in _of_secrets(config):
        lent[each.host_namespace] = lent.get(each.host_namespace, False) or each.settings().kubelet
    lease = (config.lease_namespace, config.lease_name) if config.leader_election.enabled else None
    name = f"{config.lease_name}.{config.lease_namespace}" if config.lease_namespace else config.lease_name
    marks = Marks(config.marks.prefix)
    return policy(
        clusters,
        name=name,
        user=subject.user,
        marks=marks,
        lease=lease,
        lent=lent,
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
        raise click.UsageError(f"--service-account: {service_account!r} is not of the form NAMESPACE/NAME")
    return Subject(name, namespace)
