"""Objects of started virtual clusters, which the garbage collector needn't visit again."""

import gc


class FrozenObjects:
    """Hides the objects of virtual clusters from the garbage collector, until one of these ends."""

    def __init__(self) -> None:
        #: The virtual clusters with objects of the start that are hidden.
        self._clusters: set[str] = set()

    def freeze(self, cluster: str) -> None:
        """Hide all present objects, as a virtual cluster has started; once for each."""
        if cluster in self._clusters:
            return
        self._clusters.add(cluster)
        gc.collect(1)  # collect the garbage of the start; what remains stays for good
        gc.freeze()

    def thaw(self) -> None:
        """Hide nothing any more, as a virtual cluster has gone."""
        if self._clusters:
            self._clusters.clear()
            gc.unfreeze()
