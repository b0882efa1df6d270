"""Virtual clusters that a process can't serve now, and Secrets that name none, with the reasons."""

from collections.abc import Iterable, Mapping

from syncer.engine.controllers.pair import Condition

#: The reason of a virtual cluster that hasn't been tried yet.
NOT_BEGUN = Condition("it has not begun yet", "it has not begun yet")

#: Stands for all Secrets of a namespace, which aren't listed.
UNLISTED = "(all)"
#: Stands for the Secrets of a namespace that are more than it may have.
BEYOND = "(further)"


class Unserved:
    """The virtual clusters that can't be served, and the Secrets that are refused."""

    def __init__(self) -> None:
        self._clusters: dict[str, Condition] = {}
        self._secrets: Mapping[tuple[str, str], Condition] = {}

    @property
    def clusters(self) -> Mapping[str, Condition]:
        """The reasons why virtual clusters can't be served now, by name.

        It is :data:`NOT_BEGUN` for a virtual cluster that hasn't been tried yet.
        """
        return dict(self._clusters)

    @property
    def secrets(self) -> Mapping[tuple[str, str], Condition]:
        """The reasons why Secrets of the host are no virtual clusters now, by namespace and name.

        The name may be :data:`UNLISTED` or :data:`BEYOND`.
        """
        return self._secrets

    def expect(self, clusters: Iterable[str]) -> None:
        """Show that virtual clusters haven't begun yet."""
        self._clusters.update(dict.fromkeys(clusters, NOT_BEGUN))

    def failed(self, cluster: str, why: Condition) -> None:
        """Show why a virtual cluster can't be served."""
        self._clusters[cluster] = why

    def begun(self, cluster: str) -> None:
        """Remove a virtual cluster: it is served, or is to be served no longer."""
        self._clusters.pop(cluster, None)

    def clear(self) -> None:
        """Show no virtual cluster any more."""
        self._clusters.clear()

    def refuse(
        self,
        secrets: Mapping[tuple[str, str], Condition],
    ) -> Mapping[tuple[str, str], Condition]:
        """Show why these Secrets are refused, and no others. Return those shown until now."""
        former = self._secrets
        self._secrets = secrets
        return former
