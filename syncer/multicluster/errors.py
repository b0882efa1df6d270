"""The errors of the library for many clusters."""

from syncer.api.errors import ClusterError, SyncerError


class NotSynced(ClusterError):
    """The first list of a resource isn't complete, so nothing can be read from its cache yet.

    ``__cause__`` is the reason, if it is known.
    """


class CacheTooLarge(SyncerError):
    """The objects of a cluster take more memory than its options allow; it has ended."""


class NotRunning(SyncerError):
    """A change needs a cluster that isn't running, or one that is."""


class ClusterNotFound(SyncerError):
    """A controller has no cluster of this name: it hasn't joined yet, or has left."""

    def __init__(self, cluster: str, controller: str = "") -> None:
        self.cluster = cluster
        super().__init__(
            f"there is no cluster {cluster!r}{f' in controller {controller}' if controller else ''}",
        )


class ClusterNameTaken(SyncerError):
    """A controller has a cluster of this name: of a :class:`~syncer.multicluster.Manager` or of a
    :class:`~syncer.multicluster.ClusterCache`, and can't have one of the other.
    """

    def __init__(self, cluster: str, controller: str) -> None:
        self.cluster = cluster
        super().__init__(
            f"controller {controller} has a cluster {cluster!r} already, which another one would replace: "
            "a Manager's cluster and one of a ClusterCache need different names"
        )


class CallbackTimeout(SyncerError):
    """A function of the caller's hasn't returned in time; it was cancelled, unless it runs in a
    thread.
    """


class AlreadyExists(SyncerError):
    """The controllers of a cluster have been started already."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"the controllers of cluster {name} have already been started")


class NotExist(SyncerError):
    """The controllers of a cluster don't exist; ``why`` is more about that."""

    def __init__(self, name: str, why: str = "") -> None:
        self.name = name
        super().__init__(
            f"the controllers of cluster {name} don't exist{f': {why}' if why else ''}",
        )


class CannotStart(SyncerError):
    """The controllers of a cluster can't be started; ``__cause__`` is the reason, if it is known."""


class StillRunning(SyncerError):
    """The controllers of a cluster haven't ended in time."""


class NotInstalled(SyncerError):
    """What the controllers of a cluster need in it can't be installed or uninstalled; ``__cause__``
    is the reason.
    """
