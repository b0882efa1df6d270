"""Programs of the virtual control plane that do what is the host's work, and must be off.

Nothing shows which controllers a kube-controller-manager runs. With
``--use-service-account-credentials``, as kubeadm, k3s, k0s and our chart have it, each that runs
makes its ServiceAccount in ``kube-system`` (k8s.io/controller-manager, ``clientbuilder``).
"""

from datetime import datetime
from typing import Any, NamedTuple

from syncer.api.context import Settings
from syncer.api.errors import NotFound
from syncer.api.objects import Key, Obj
from syncer.clusters import codec
from syncer.clusters.client import SideClient
from syncer.daemon.doctor.access import AccessQuestion, may
from syncer.daemon.doctor.diagnosis import UNREADABLE, Diagnosis, error, ok, unknown
from syncer.resources.kinds import PODS, SERVICE_ACCOUNTS
from syncer.resources.pods.config import is_bound_first
from syncer.rights.rbac import LEASES
from syncer.translate import times

#: Pods of the virtual cluster whose managers are looked at for traces of a scheduler.
MOST_PODS = 500
#: Seconds after its last renewal for which a Lease shows that its holder runs; the default of
#: ``--leader-elect-lease-duration`` is 15.
LEASE_SECONDS = 60.0

_HOME = "kube-system"
#: The ServiceAccount of the controller that evicts Pods from tainted Nodes, which runs where the
#: tenant's taints count, and of others that must not.
_EVICTION = "node-controller"
_SCHEDULER = "kube-scheduler"
_CHECK = "controllers of the virtual control plane"


class HostsWork(NamedTuple):
    """A controller whose work is the host's."""

    #: Its name in ``--controllers``.
    name: str
    #: Its ServiceAccount in kube-system.
    account: str
    #: The syncers with which it interferes; empty for all.
    beside: tuple[str, ...]
    #: What it does to synced objects.
    harm: str


#: https://kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager/
CONTROLLERS = (
    HostsWork(
        "persistentvolume-binder-controller",
        "persistent-volume-binder",
        ("persistentvolumeclaims",),
        "it binds claims that the host binds, or calls them lost",
    ),
    HostsWork(
        "persistentvolume-attach-detach-controller",
        "attachdetach-controller",
        ("persistentvolumeclaims",),
        "it attaches volumes to Nodes that only stand for the host's",
    ),
    HostsWork(
        "persistentvolume-expander-controller",
        "expand-controller",
        ("persistentvolumeclaims",),
        "it resizes volumes that the host resizes",
    ),
    HostsWork(
        "pod-garbage-collector-controller",
        "pod-garbage-collector",
        ("pods",),
        "it deletes Pods whose Node isn't there yet",
    ),
    HostsWork(
        "node-lifecycle-controller",
        _EVICTION,
        ("nodes", "host-nodes"),
        "it takes Nodes without a heartbeat for dead, and evicts their Pods"
        " (taint-eviction-controller and node-ipam-controller have the same account)",
    ),
)


async def check_control_plane(
    virtual: SideClient, settings: Settings, now: datetime
) -> list[Diagnosis]:
    """Return which of these programs run, or ran, as far as the daemon's rights show it."""
    found: list[Diagnosis] = []
    if "pods" in settings.sections:
        found.append(await _check_scheduler(virtual, settings, now))
    running: list[Diagnosis] = []
    unseen: list[str] = []
    for controller in CONTROLLERS:
        if not any(syncer in settings.sections for syncer in controller.beside):
            continue
        if controller.account == _EVICTION and is_bound_first(settings):
            continue
        try:
            has_account = await _has_account(virtual, controller.account)
        except UNREADABLE as failure:
            message = f"the ServiceAccount {_HOME}/{controller.account} can't be read: {failure}"
            return [*found, unknown(settings.cluster, _CHECK, message, _look_at_flags())]
        if has_account is None:
            unseen.append(controller.name)
        elif has_account:
            running.append(_runs(settings.cluster, controller))
    found += running
    if unseen:
        message = f"the daemon has no right to see whether these run: {', '.join(unseen)}"
        found.append(unknown(settings.cluster, _CHECK, message, _look_at_flags()))
    elif not running:
        found.append(ok(settings.cluster, _CHECK, "there is no trace of one that must be off"))
    return found


def _runs(cluster: str, controller: HostsWork) -> Diagnosis:
    account = f"{_HOME} {controller.account}"
    message = (
        f"{controller.name} runs, or ran: its ServiceAccount is there, and while it runs,"
        f" {controller.harm}"
    )
    way_out = (
        f"Add -{controller.name} to --controllers of the virtual kube-controller-manager, then:"
        f" kubectl delete serviceaccount -n {account} (a running one makes it again)"
    )
    return error(cluster, _CHECK, message, way_out)


def _look_at_flags() -> str:
    names = ",".join(f"-{controller.name}" for controller in CONTROLLERS)
    return f"Look at the flags of its kube-controller-manager: --controllers=*,{names}"


async def _has_account(virtual: SideClient, name: str) -> bool | None:
    """Return whether a ServiceAccount is there; None without the right to read it."""
    question = AccessQuestion("get", "", SERVICE_ACCOUNTS.plural, "", _HOME, name)
    if not await may(virtual, question):
        return None
    try:
        await virtual.get(SERVICE_ACCOUNTS, Key(_HOME, name))
    except NotFound:
        return False
    return True


# -- the scheduler ---------------------------------------------------------------------------------


async def _check_scheduler(virtual: SideClient, settings: Settings, now: datetime) -> Diagnosis:
    """Look for a scheduler by its Lease, which needs leader election, and by its traces on Pods.

    Where Pods are bound in the virtual cluster, one must run, which may be another one.
    """
    cluster = settings.cluster
    check = "scheduler of the virtual control plane"
    if is_bound_first(settings):
        message = "Pods wait until a scheduler of the virtual cluster has bound them"
        return ok(cluster, check, message)
    off = "Stop it: the host's scheduler chooses the nodes (k3s: --disable-scheduler)."
    try:
        lease = await _lease(virtual)
        is_seen = await _has_scheduled(virtual)
    except UNREADABLE as failure:
        return unknown(cluster, check, f"it can't be looked for: {failure}", off)
    if lease is not None and _is_renewed(lease, now):
        message = f"{_SCHEDULER} renews its Lease {_HOME}/{_SCHEDULER}"
        return error(
            cluster, check, f"{message}, and binds Pods to Nodes before the host does", off
        )
    if is_seen and lease is None:
        message = f"{_SCHEDULER} has written the status of Pods that are still there"
        return error(cluster, check, f"{message}: it runs, or ran", off)
    return ok(cluster, check, "there is no trace of one")


async def _lease(virtual: SideClient) -> Obj | None:
    """Return the scheduler's Lease; None if there is none, or the daemon may not read it."""
    question = AccessQuestion("get", LEASES.group, LEASES.plural, "", _HOME, _SCHEDULER)
    if not await may(virtual, question):
        return None
    try:
        return await virtual.get(LEASES, Key(_HOME, _SCHEDULER))
    except NotFound:
        return None


def _is_renewed(lease: Any, now: datetime) -> bool:
    spec = lease.get("spec") if isinstance(lease, dict) else None
    renewed = spec.get("renewTime") if isinstance(spec, dict) else None
    try:
        return (now - times.read(str(renewed))).total_seconds() < LEASE_SECONDS
    except ValueError:
        return False


async def _has_scheduled(virtual: SideClient) -> bool:
    """Return True if one of the first Pods has a field that a scheduler wrote."""
    page = await virtual.first(PODS, MOST_PODS)
    for raw in page.items:
        pod: Any = codec.decode(raw)
        metadata = pod.get("metadata") if isinstance(pod, dict) else None
        if isinstance(metadata, dict) and _SCHEDULER in _managers(metadata):
            return True
    return False


def _managers(metadata: dict[str, Any]) -> set[str]:
    fields = metadata.get("managedFields")
    entries = fields if isinstance(fields, list) else []
    return {str(entry.get("manager")) for entry in entries if isinstance(entry, dict)}
