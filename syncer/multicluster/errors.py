"""The errors of the library for many clusters."""

from syncer.api.errors import ClusterError, NotConnected, SyncerError


class NotSynced(ClusterError):
    """The first list of a resource isn't complete, so nothing can be read from its cache yet.

    ``__cause__`` is the reason, if it is known.
    """


class CacheTooLarge(SyncerError):
    """The objects of a cluster take more memory than its options allow; it has ended."""


class NotRunning(SyncerError):
    """A change needs a cluster that isn't running, or one that is."""


class ClusterNotFound(NotConnected):
    """There is no cluster of this name: it hasn't joined yet, or has left."""

    def __init__(self, cluster: str, message: str = "") -> None:
        """``message`` is by default that there is no such cluster."""
        super().__init__(message or f"there is no cluster {cluster!r}", cluster=cluster)


class ClusterNameTaken(SyncerError):
    """There is a cluster of this name already: in a controller, of a
    :class:`~syncer.multicluster.Manager` where another is of a
    :class:`~syncer.multicluster.ClusterCache`, or in a
    :class:`~syncer.multicluster.ClusterRegistry`.
    """

    def __init__(self, cluster: str, message: str) -> None:
        self.cluster = cluster
        super().__init__(message)


class CallbackTimeout(SyncerError):
    """A function of the caller's hasn't returned in time; it was cancelled, unless it runs in a
    thread.
    """


class CannotStart(SyncerError):
    """The controllers of a cluster can't be started; ``__cause__`` is the reason, if known."""


class StillRunning(SyncerError):
    """The controllers of a cluster haven't ended in time."""


class NotInstalled(SyncerError):
    """What the controllers of a cluster need in it can't be installed or uninstalled; ``__cause__``
    is the reason.
    """
