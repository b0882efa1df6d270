"""Where clusters come from: a provider reports them to a fleet, with their logins."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from syncer.api.errors import ConfigError, Problem
from syncer.clusters.client import Client
from syncer.clusters.kubeconfig import Kubeconfig, find_files
from syncer.clusters.login import Login, signature
from syncer.multicluster.callbacks import call, name_of
from syncer.multicluster.logins import CannotConnect, Reason, must_be_plain, of_files
from syncer.observe.logs import get_logger

#: Seconds between two looks at files.
LOOK_SECONDS = 10.0
#: Default seconds in which a function has to say which clusters there are.
LIST_SECONDS = 60.0

log = get_logger(__name__)


async def _has_none() -> Login:
    raise CannotConnect(Reason.UNREADABLE, "its provider gives neither a login nor a client")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvidedCluster:
    """A cluster as its provider knows it.

    ``read`` reads its login again. It raises :class:`~syncer.multicluster.CannotConnect` if there
    is none, and another error if it can't be asked for now. Or there is a ``client``, which its
    owner has made and closes: the cache connects and probes over that. ``version`` changes whenever
    the login may have. A cluster that isn't ``ready`` is not connected to. ``labels`` and
    ``namespaces`` are for filters: the namespaces of the host that the cluster may be copied to.
    One that doesn't ``queue`` is dialled at once, however many clusters are being dialled.
    """

    read: Callable[[], Awaitable[Login]] = _has_none
    client: Client | None = None
    version: object = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    namespaces: frozenset[str] = frozenset()
    ready: bool = True
    queue: bool = True


class Fleet(Protocol):
    """Gets from a provider the clusters that there are."""

    def put(self, name: str, member: ProvidedCluster) -> None:
        """Add a cluster, or replace it as its provider knows it now.

        One with ``#`` in its name is left alone: it could be that of another provider.
        """
        ...

    def remove(self, name: str) -> None:
        """Remove a cluster that its provider no longer has; unknown names are ignored."""
        ...


class Provider(Protocol):
    """Finds clusters. With a ``name``, its clusters are called ``name#cluster``."""

    name: str

    async def run(self, fleet: Fleet) -> None:
        """Tell the fleet which clusters there are, until cancelled."""


class StaticProvider:
    """Clusters with logins that are known from the beginning; more can be put and removed later."""

    def __init__(self, members: Mapping[str, ProvidedCluster | Login], *, name: str = "") -> None:
        self.name = name
        self._members = {each: _member(member) for each, member in members.items()}
        self._fleet: Fleet | None = None

    def put(self, name: str, member: ProvidedCluster | Login) -> None:
        """Add or replace a cluster."""
        self._members[name] = _member(member)
        if self._fleet is not None:
            self._fleet.put(name, self._members[name])

    def remove(self, name: str) -> None:
        """Remove a cluster."""
        self._members.pop(name, None)
        if self._fleet is not None:
            self._fleet.remove(name)

    async def run(self, fleet: Fleet) -> None:
        """Tell the fleet of the clusters."""
        self._fleet = fleet
        try:
            for name, member in self._members.items():
                fleet.put(name, member)
            await asyncio.Event().wait()
        finally:
            self._fleet = None


def _member(given: ProvidedCluster | Login) -> ProvidedCluster:
    if isinstance(given, ProvidedCluster):
        return given

    async def read() -> Login:
        return given

    return ProvidedCluster(read=read, version=given)


#: Clusters by their names.
ProvidedClusters = Mapping[str, ProvidedCluster]


class CallableProvider:
    """Clusters as a function returns them, asked at intervals, in seconds.

    It may be async; else it runs in a thread. While it raises, or hasn't returned after ``timeout``
    seconds, the clusters stay as they are.
    """

    def __init__(
        self,
        members: Callable[[], Awaitable[ProvidedClusters] | ProvidedClusters],
        *,
        name: str = "",
        interval: float = LOOK_SECONDS,
        timeout: float = LIST_SECONDS,
    ) -> None:
        self.name = name
        self._members = members
        self._interval = interval
        self._timeout = timeout

    async def run(self, fleet: Fleet) -> None:
        """Tell the fleet of all changes."""
        what = f"{name_of(self._members)} of provider {self.name}"
        known: ProvidedClusters = {}
        while True:
            try:
                found = await call(self._members, what=what, timeout=self._timeout)
            except Exception as error:  # noqa: BLE001  (whatever it raises, the clusters stay)
                text = "a provider can't list its clusters"
                log.warning(text, provider=self.name, error=str(error))
            else:
                report(fleet, known, found)
                known = found
            await asyncio.sleep(self._interval)


def report(fleet: Fleet, known: ProvidedClusters, found: ProvidedClusters) -> None:
    """Tell a fleet of the differences between two sets of clusters."""
    for name in known.keys() - found.keys():
        fleet.remove(name)
    for name, member in found.items():
        if name not in known or _has_changed(known[name], member):
            fleet.put(name, member)


def _has_changed(former: ProvidedCluster, member: ProvidedCluster) -> bool:
    """Compare all but the function that reads the login, which may be another one each time."""
    return (
        former.version != member.version
        or dict(former.labels) != dict(member.labels)
        or former.namespaces != member.namespaces
        or former.ready != member.ready
    )


class ContextsProvider(CallableProvider):
    """The contexts of kubeconfig files; all of them, or the named ones.

    Files of one's own may run programs and name others, as for kubectl. Unless the files are
    ``trusted``, they are refused what those in Secrets are (:mod:`syncer.multicluster.logins`).
    """

    def __init__(
        self,
        path: str = "",
        *,
        contexts: Iterable[str] = (),
        trusted: bool = True,
        name: str = "",
        environ: Mapping[str, str] | None = None,
        interval: float = LOOK_SECONDS,
    ) -> None:
        super().__init__(self._contexts, name=name, interval=interval)
        self._path = path
        self._chosen = tuple(contexts)
        self._environ = os.environ if environ is None else environ
        self._trusted = trusted

    async def _contexts(self) -> ProvidedClusters:
        files = find_files(self._path, self._environ)
        if not files:
            hint = "Name one, or set KUBECONFIG."
            raise ConfigError(Problem("there is no kubeconfig", file=self._path, hint=hint))
        if not self._trusted:
            must_be_plain(files)

        version = [signature(file) for file in files]
        members = {}
        for name in self._chosen or Kubeconfig(files).contexts:
            read = _reader(files, name, self._environ, trusted=self._trusted)
            members[name] = ProvidedCluster(read=read, version=version)
        return members


class FolderProvider(CallableProvider):
    """A folder of kubeconfigs: a cluster for each file that a pattern matches, called as the file
    without its ending.

    Files of one's own may run programs and name others, as for kubectl. Unless the files are
    ``trusted``, they are refused what those in Secrets are (:mod:`syncer.multicluster.logins`).
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        pattern: str = "*.kubeconfig",
        trusted: bool = True,
        name: str = "",
        environ: Mapping[str, str] | None = None,
        interval: float = LOOK_SECONDS,
    ) -> None:
        super().__init__(self._files, name=name, interval=interval)
        self._folder = Path(folder)
        self._pattern = pattern
        self._environ = os.environ if environ is None else environ
        self._trusted = trusted

    async def _files(self) -> ProvidedClusters:
        if not self._folder.is_dir():
            raise ConfigError(Problem("no such folder", file=str(self._folder)))

        members = {}
        for file in sorted(self._folder.glob(self._pattern)):
            if file.is_file():
                read = _reader([file], "", self._environ, trusted=self._trusted)
                members[file.stem] = ProvidedCluster(read=read, version=signature(file))
        return members


def _reader(
    files: Sequence[Path],
    context: str,
    environ: Mapping[str, str],
    *,
    trusted: bool,
) -> Callable[[], Awaitable[Login]]:
    def read_files() -> Login:
        return of_files(files, context=context, environ=environ, trusted=trusted)

    async def read() -> Login:
        for file in files:
            if not file.is_file():
                raise CannotConnect(Reason.KUBECONFIG_MISSING, f"there is no file {file}")
        return await asyncio.to_thread(read_files)

    return read
