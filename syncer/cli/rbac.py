"""``syncer rbac``: the roles that the daemon needs on each side, as manifests."""

from typing import TYPE_CHECKING

import click

from syncer.cli import show
from syncer.cli.options import Given, option, output, pass_given, settings

if TYPE_CHECKING:
    from syncer.api import Obj
    from syncer.rbac import Subject


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
@pass_given
def rbac(
    given: Given, output: str, side: str | None, only: str | None, service_account: str | None, user: str | None
) -> None:
    """Print exactly the rights that the enabled syncers need.

    For the daemon itself: its Lease, and resources of the host as a whole. For a virtual cluster: a
    ClusterRole in it, and a Role in each of its host namespaces.

    \b
    Examples:
      syncer rbac --side host --service-account vc-shop/syncer | kubectl apply -f -
      syncer rbac --only cluster --cluster shop    # to add a virtual cluster to a daemon
    """
    from syncer.api import Side
    from syncer.cli.loading import loaded
    from syncer.rbac import Share, daemon_manifests, needed

    found = loaded(given)[0]
    config, subject = found.config, _subject(service_account, user)
    subjects = dict.fromkeys(Side, subject) if subject else {}
    election = config.leader_election.enabled
    shares = [
        Share(
            each.name,
            needed(each.all_syncers(), settings=each.settings(), leader_election=election),
            each.translator.host_namespaces(),
        )
        for each in config.clusters()
    ]
    roles: dict[Side, list[Obj]] = {each: [] for each in Side}
    if only != "cluster":
        roles[Side.HOST] += daemon_manifests(
            shares, name=config.lease_name, home=config.lease_namespace, subject=subject
        )
    for share in shares:
        if only != "daemon" and found.chosen in ("", share.cluster):
            for place, made in share.manifests(subjects).items():
                roles[place] += made
    show.documents([each for one in ([Side(side)] if side else Side) for each in roles[one]], output)


def _subject(service_account: str | None, user: str | None) -> "Subject | None":
    from syncer.rbac import Subject

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
