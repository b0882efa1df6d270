"""The roles that a configuration needs: those of the daemon itself, and of each virtual cluster."""

from collections import Counter
from collections.abc import Iterable

from syncer.api.objects import Obj, Side, key_of
from syncer.config import SyncerConfig, VirtualCluster
from syncer.rights.rbac import Share, Subject, daemon_manifests, needed, secret_reader


def roles_of(
    config: SyncerConfig,
    subject: Subject | None = None,
    *,
    side: str | None = None,
    only: str | None = None,
    chosen: str = "",
) -> list[Obj]:
    """Return the roles of the daemon and of virtual clusters, with their bindings.

    Args:
        config: The configuration.
        subject: The subject of the bindings; None for no bindings.
        side: ``virtual`` or ``host``, for the roles of this side alone; None for both.
        only: ``daemon`` or ``cluster``, for the roles of the daemon itself alone, or of virtual
            clusters; None for both.
        chosen: The name of the only virtual cluster; ``""`` for all.
    """
    subjects = dict.fromkeys(Side, subject) if subject else {}
    listed = [share_of(cluster, config) for cluster in config.clusters()]
    of_secrets = [share_of(cluster, config) for cluster in clusters_of_secrets(config)]
    roles: dict[Side, list[Obj]] = {each: [] for each in Side}

    if only != "cluster":
        namespaces = [each.namespace for each in config.virtual_cluster_secrets]
        roles[Side.HOST] += daemon_roles(
            config, [*listed, *of_secrets], secret_namespaces=namespaces, subject=subject
        )

    if only != "daemon":
        shares = listed if not chosen else [each for each in listed if each.cluster == chosen]
        if chosen not in config.names_listed:
            shares = [*shares, *of_secrets]
        for share in shares:
            for role_side, manifests in share.manifests(subjects).items():
                for manifest in manifests:
                    _add(roles[role_side], manifest)

    if side is not None:
        return roles[Side(side)]
    return [role for each in Side for role in roles[each]]


def daemon_roles(
    config: SyncerConfig,
    shares: Iterable[Share],
    *,
    secret_namespaces: Iterable[str],
    subject: Subject | None = None,
) -> list[Obj]:
    """Return the roles of the daemon itself on the host, to serve the virtual clusters of these
    shares, and those of Secrets in ``secret_namespaces``.
    """
    roles = daemon_manifests(
        list(shares),
        name=config.lease_name,
        home=config.lease_namespace,
        subject=subject,
        is_shared=config.leader_election.shards > 1,
    )
    name = f"{config.lease_name}.secrets"
    for namespace in sorted(set(secret_namespaces)):
        roles += secret_reader(namespace, name=name, subject=subject)
    return roles


def share_of(cluster: VirtualCluster, config: SyncerConfig, *, optional: bool = True) -> Share:
    """Return the rights that the daemon needs for a virtual cluster.

    ``optional`` is that of :func:`.rbac.needed`.
    """
    granted = needed(
        cluster.all_syncers(),
        settings=cluster.settings(),
        leader_election=config.leader_election.enabled,
        optional=optional,
    )
    return Share(cluster.name, granted, cluster.translator.host_namespaces())


def clusters_of_secrets(config: SyncerConfig) -> list[VirtualCluster]:
    """Return a virtual cluster for each host namespace that those of Secrets may be in.

    It stands for all virtual clusters of these Secrets there.
    """
    clusters: list[VirtualCluster] = []
    counts = Counter[str]()
    for section in config.virtual_cluster_secrets:
        counts[section.namespace] += 1
        number = counts[section.namespace]
        name = f"secrets.{section.namespace}"
        if number > 1:
            name = f"{name}.{number}"
        clusters += [config.cluster_of(section, name, home) for home in section.host_namespaces]
    return clusters


def _add(roles: list[Obj], new: Obj) -> None:
    """Add a role or a binding; if there is one of this name, add its rules to that.

    Virtual clusters of the same Secrets in several host namespaces have a Role of one name where
    they share a namespace: applied after each other, the last would replace the others.
    """
    for role in roles:
        if (role["kind"], key_of(role)) != (new["kind"], key_of(new)):
            continue
        if "rules" in role:
            role["rules"] += [rule for rule in new["rules"] if rule not in role["rules"]]
        return
    roles.append(new)
