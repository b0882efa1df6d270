"""The samples of all kinds that the registry knows: the built-in ones, and those of a package given to hack/kind."""

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from syncer.api import NameTranslator, Side, Syncer
from syncer.config import SyncerConfig, config_with
from syncer.names import SingleNamespace
from syncer.plugins import installed
from syncer.testing import ApiServer
from syncer.testing.cases import load
from syncer.testing.merge import merged
from syncer.testing.samples import Sample, by_name

#: The folders of the samples: ours, and those that hack/kind adds.
OURS = Path(__file__).parent / "kinds"
FOLDERS = (OURS, *(Path(each) for each in os.environ.get("SYNCER_KINDS", "").split(os.pathsep) if each))
#: The cases of all kinds.
CASES = [case for folder in FOLDERS if (folder.parent / "cases").is_dir() for case in load(folder.parent / "cases")]
#: All samples, by the names of their syncers.
SAMPLES: Mapping[str, Sample] = by_name(FOLDERS)
#: Those of which every suite derives what it needs.
MADE: Mapping[str, Sample] = {name: sample for name, sample in SAMPLES.items() if sample.make is not None}


def registry() -> list[type[Syncer]]:
    """The built-in syncers, and those of the package."""
    return [*_registry()]


@functools.cache
def _registry() -> Sequence[type[Syncer]]:
    """Load and check them; each time takes a tenth of a second, of which a test of a daemon has two."""
    named = os.environ.get("SYNCER_NAMES", "").split(",")
    sections = [point.load().section for point in entry_points(group="syncer.syncers") if point.name in named]
    return installed().syncers(sections)


def config_model(
    syncers: Iterable[type[Syncer]], translator: type[NameTranslator] = SingleNamespace
) -> type[SyncerConfig]:
    """Return the configuration model of some syncers; it is made once, as pydantic takes long to make it."""
    return _config_model(tuple(syncers), translator)


@functools.lru_cache(maxsize=64)
def _config_model(syncers: tuple[type[Syncer], ...], translator: type[NameTranslator]) -> type[SyncerConfig]:
    return config_with(syncers, translator=translator)


def sync_of(*samples: Sample) -> dict[str, Any]:
    """The ``sync`` part of a configuration in which these kinds are on."""
    found: dict[str, Any] = {}
    for sample in samples or MADE.values():
        found = merged(found, dict(sample.sync))
    return found


def to_host() -> Mapping[str, Any]:
    """Return the section ``sync.toHost`` that enables all these kinds."""
    found: Mapping[str, Any] = sync_of()["toHost"]
    return found


def define(virtual: ApiServer, host: ApiServer, *samples: Sample) -> None:
    """Let both sides serve these kinds; without any, those of all samples."""
    for sample in samples or SAMPLES.values():
        for side, server in ((Side.VIRTUAL, virtual), (Side.HOST, host)):
            resource = sample.resource if side is Side.VIRTUAL else sample.syncer.host_resource
            try:
                server.objects(str(resource))
            except KeyError:
                server.put(sample.definition(side))
