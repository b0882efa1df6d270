"""Copies of virtual PodDisruptionBudgets on the host, so that a drain of a host node heeds them."""

from typing import ClassVar

from syncer.api import Config, Context, Mirror, Obj, References, Selects
from syncer.resources.kinds import DISRUPTION_BUDGETS, PODS

#: The ``minAvailable`` by which nothing may be evicted.
NOTHING = 2**31 - 1


class BudgetConfig(Config):
    """The options of PodDisruptionBudgets."""

    enabled: bool = False
    """Whether PodDisruptionBudgets go to the host, where evictions of the tenant's Pods heed them.

    Off by default: a tenant's budget can hold up the drain of a host node for as long as the tenant
    likes.
    """


class BudgetSyncer(Mirror[BudgetConfig]):
    """Copies budgets; the copy covers only Pods of this tenant and namespace.

    Copies of Pods have no controller, so the host can work out neither a share nor
    ``maxUnavailable``: it only knows an absolute ``minAvailable`` for them. The virtual cluster's
    disruption controller knows the owners, and the copy gets the number from the status that this
    controller writes. While there is none for the present spec, the copy lets no Pod be evicted, as
    the virtual API server does. See kubernetes.io, "Specifying a Disruption Budget for your
    Application", "Arbitrary workloads and arbitrary selectors".

    Each side has a status of its own: of the Pods and evictions that it sees. An API server heeds a
    budget until it is gone, so its copy stays until then, whatever finalizers hold it.
    """

    deletion = "whenGone"
    name = "poddisruptionbudgets"
    section = "toHost.podDisruptionBudgets"
    resource = DISRUPTION_BUDGETS
    has_templates = False
    down = (
        "spec.maxUnavailable",
        "spec.minAvailable",
        "spec.selector",
        "spec.unhealthyPodEvictionPolicy",
    )
    translates = ("spec.maxUnavailable", "spec.minAvailable")
    exact = down
    references: ClassVar[References] = {"spec.selector": Selects(PODS)}

    def translate(self, ctx: Context[BudgetConfig], virtual: Obj) -> Obj:
        """Return the copy, with the number of Pods that must stay in place of any other limit.

        Raises:
            Refused: The selector can't be narrowed to the tenant's Pods.
        """
        host = super().translate(ctx, virtual)
        spec = dict(host.get("spec") or {})
        spec.pop("maxUnavailable", None)
        spec["minAvailable"] = _staying(virtual)
        return {**host, "spec": spec}


def _staying(virtual: Obj) -> int:
    """Return the number of healthy Pods that an eviction must leave."""
    given = (virtual.get("spec") or {}).get("minAvailable")
    if isinstance(given, int):
        return given
    status = virtual.get("status") or {}
    is_current = status.get("observedGeneration", 0) >= virtual["metadata"].get("generation", 0)
    conditions = status.get("conditions") or ()
    has_failed = any(each.get("reason") == "SyncFailed" for each in conditions)
    # Without expected Pods, Kubernetes allows no eviction, whatever number is desired.
    if not is_current or has_failed or not status.get("expectedPods"):
        return NOTHING
    return int(status.get("desiredHealthy", 0))
