"""What no section can check alone. Works on what was given, so that it speaks even where something else is wrong."""

from collections.abc import Iterator, Mapping
from typing import Any

from syncer.api import NameTranslator
from syncer.config.custom_checks import custom
from syncer.config.document import Steps
from syncer.config.model import SyncerConfig
from syncer.config.owner_checks import owners
from syncer.config.patch_checks import patches
from syncer.config.values import listen_on

Found = tuple[Steps, str]


def across(data: Mapping[str, Any], model: type[SyncerConfig]) -> Iterator[Found]:
    """The places where options contradict one another, and what to do about it."""
    yield from _namespace(data, model)
    yield from _addresses(data, model)
    yield from _patches(data, model)
    yield from owners(data, model.syncers)
    yield from custom(data, model.syncers, _translator(data, model))


def _option(data: Mapping[str, Any], model: type[SyncerConfig], section: str, option: str) -> Any:
    """The value given for an option, else its default."""
    part = data.get(section)
    if isinstance(part, Mapping) and option in part:
        return part[option]
    return getattr(model.model_fields[section].default, option)


def _namespace(data: Mapping[str, Any], model: type[SyncerConfig]) -> Iterator[Found]:
    if _option(data, model, "host", "namespace") != "":
        return
    part = data.get("leaderElection")
    if isinstance(part, Mapping) and part.get("enabled") is True:
        yield ("host", "namespace"), "is required for leader election: its Lease is there."
    elif getattr(model.translator_class, "needs_namespace", True):
        yield ("host", "namespace"), "is required: the namespace on the host that copies are put in."


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


def _patches(data: Mapping[str, Any], model: type[SyncerConfig]) -> Iterator[Found]:
    prefix = _option(data, model, "marks", "prefix")
    if isinstance(prefix, str):
        yield from patches(data, [syncer.resource for syncer in model.syncers], prefix)


def _translator(data: Mapping[str, Any], model: type[SyncerConfig]) -> NameTranslator | None:
    """The name translator; None where what it is made of is wrong itself."""
    cluster, namespace = data.get("cluster"), _option(data, model, "host", "namespace")
    if model.translator_class is None or not (isinstance(cluster, str) and isinstance(namespace, str)):
        return None
    make: Any = model.translator_class
    made: NameTranslator = make(cluster=cluster, namespace=namespace)
    return made
