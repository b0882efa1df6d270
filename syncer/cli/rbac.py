"""``syncer rbac``: the roles that the daemon needs on each side, as manifests."""

from typing import TYPE_CHECKING

import click

from syncer.cli import show
from syncer.cli.options import Given, option, output, pass_given, settings

if TYPE_CHECKING:
    from syncer.rbac import Subject


@click.command()
@settings()
@output("yaml", "json")
@option("--side", type=click.Choice(["virtual", "host"]), help="Only the roles of one side.")
@option("--service-account", metavar="NAMESPACE/NAME", help="Bind the roles to this ServiceAccount.")
@option("--user", metavar="NAME", help="Bind the roles to this user.")
@pass_given
def rbac(given: Given, output: str, side: str | None, service_account: str | None, user: str | None) -> None:
    """Print exactly the rights that the enabled syncers need.

    `syncer rbac --side host --service-account vc-shop/syncer | kubectl apply -f -`
    """
    from syncer.api import Side
    from syncer.cli.loading import loaded
    from syncer.rbac import manifests, needed

    found = loaded(given)[0]
    config, cluster = found.config, found.cluster
    subject = _subject(service_account, user)
    roles = manifests(
        needed(cluster.all_syncers(), settings=cluster.settings(), leader_election=config.leader_election.enabled),
        cluster=cluster.name,
        home=cluster.host_namespace,
        host_namespaces=cluster.translator.host_namespaces(),
        subjects=dict.fromkeys(Side, subject) if subject else {},
    )
    wanted = [Side(side)] if side else list(Side)
    show.documents([each for one in wanted for each in roles[one]], output)


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
