"""Checks across sections.

They read the given values rather than the model, so they also run when other options are wrong.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from syncer.api import Marks, NameTranslator
from syncer.config.custom_checks import custom
from syncer.config.document import Steps
from syncer.config.list_form import COMMON, LIST
from syncer.config.model import SyncerConfig
from syncer.config.owner_checks import owners
from syncer.config.patch_checks import patches
from syncer.config.values import listen_on
from syncer.directions import resources_of

Found = tuple[Steps, str]


def across(data: Mapping[str, Any], model: type[SyncerConfig]) -> Iterator[Found]:
    """Yield contradictions between options of a configuration in list form, each with how to resolve it."""
    yield from _addresses(data, model)
    entries = data.get(LIST)
    for number, entry in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(entry, Mapping):
            yield from _of_cluster(data, entry, number, model)
    if isinstance(entries, list) and len(entries) > 1:
        why = "is one too many: this version serves one virtual cluster."
        yield (LIST, 1), f"{why} Run a daemon for each of the others, with a file of its own."


def _of_cluster(
    data: Mapping[str, Any], entry: Mapping[str, Any], number: int, model: type[SyncerConfig]
) -> Iterator[Found]:
    """Yield the problems of a virtual cluster, with its own sections laid over the common ones."""
    own = {name: entry[name] for name in COMMON if entry.get(name) is not None}
    whole = {**data, **own}
    yield from _namespace(whole, entry, number, model)
    sync = (
        *patches(whole, [each for syncer in model.syncers for each in resources_of(syncer)[:1]], _marks(whole, model)),
        *owners(whole, model.syncers, _marks(whole, model)),
        *custom(whole, model.syncers, _translator(whole, entry, model)),
    )
    for steps, message in sync:
        yield ((LIST, number, *steps) if "sync" in own else steps), message


def _option(data: Mapping[str, Any], model: type[SyncerConfig], section: str, option: str) -> Any:
    """Return the given value of an option, or its default."""
    part = data.get(section)
    if isinstance(part, Mapping) and option in part:
        return part[option]
    return getattr(model.model_fields[section].default, option)


def _namespace(
    data: Mapping[str, Any], entry: Mapping[str, Any], number: int, model: type[SyncerConfig]
) -> Iterator[Found]:
    if entry.get("hostNamespace", "") != "":
        return
    if getattr(_translator_class(data, model), "needs_namespace", True):
        yield (LIST, number, "hostNamespace"), "is required: the namespace on the host for the copies."
        return
    election = data.get("leaderElection")
    if isinstance(election, Mapping) and election.get("enabled") is True and not election.get("namespace"):
        why = "is required for leader election, as there is no host namespace: the namespace on the host for its Lease."
        yield ("leaderElection", "namespace"), why


def _addresses(data: Mapping[str, Any], model: type[SyncerConfig]) -> Iterator[Found]:
    metrics, health = (_option(data, model, section, "address") for section in ("metrics", "health"))
    if not (isinstance(metrics, str) and metrics == health):
        return
    try:
        place = listen_on(metrics)
    except ValueError:
        return
    if place and place[1] != 0:
        yield ("health", "address"), f"is the same as metrics.address, {metrics!r}: each needs a port of its own."


def _marks(data: Mapping[str, Any], model: type[SyncerConfig]) -> Marks:
    """Return the configured marks; the default ones if their prefix is invalid."""
    prefix = _option(data, model, "marks", "prefix")
    return Marks(prefix) if isinstance(prefix, str) else Marks()


def _translator_class(data: Mapping[str, Any], model: type[SyncerConfig]) -> type[NameTranslator] | None:
    name = _option(data, model, "names", "translator")
    return model.translators(name) if isinstance(name, str) else None


def _translator(data: Mapping[str, Any], entry: Mapping[str, Any], model: type[SyncerConfig]) -> NameTranslator | None:
    """Return the name translator of a virtual cluster; None if its class, name or namespace is wrong."""
    cluster, namespace = entry.get("name"), entry.get("hostNamespace", "")
    make: Any = _translator_class(data, model)
    if make is None or not (isinstance(cluster, str) and isinstance(namespace, str)):
        return None
    made: NameTranslator = make(cluster=cluster, namespace=namespace)
    return made
