"""Checks of ``sync.custom`` entries against other kinds, other syncers, and the name translator."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from syncer.api import NameTranslator, Syncer
from syncer.config.document import Steps
from syncer.config.problems import guess
from syncer.directions import way_of
from syncer.names.templated import lack
from syncer.resources.custom import CustomConfig
from syncer.translate.named import named

Found = tuple[Steps, str]


class _Given(NamedTuple):
    """The readable entries, and the syncers with sections of their own."""

    entries: Mapping[str, CustomConfig]
    syncers: Sequence[type[Syncer]]
    #: The sections that the file has below ``sync``.
    sync: Mapping[str, Any]

    def is_on(self, syncer: type[Syncer]) -> bool:
        """Return True if a syncer is enabled, by the file or by default."""
        direction, _, name = syncer.section.partition(".")
        enabled = _mapping(_mapping(self.sync.get(direction)).get(name)).get("enabled")
        return enabled if isinstance(enabled, bool) else syncer.config().enabled


def custom(
    data: Mapping[str, Any], syncers: Sequence[type[Syncer]], translator: NameTranslator | None
) -> Iterator[Found]:
    """Yield the problems of every entry.

    ``translator`` is None if the configured one can't be created.
    """
    sync = _mapping(data.get("sync"))
    entries = {name: config for name, each in _mapping(sync.get("custom")).items() if (config := _read(each))}
    given = _Given(entries, syncers, sync)
    for name, config in entries.items():
        if config.enabled:
            place = ("sync", "custom", name)
            found = [*_conflict(given, name, config), *_kinds(given, config), *_template(config, translator)]
            yield from ((place + steps, message) for steps, message in found)


def _read(data: Any) -> CustomConfig | None:
    """Return the entry; None if its own section reports a problem."""
    try:
        return CustomConfig.model_validate({} if data is None else data)
    except ValidationError:
        return None


def _conflict(given: _Given, name: str, config: CustomConfig) -> Iterator[Found]:
    """Yield a problem if another syncer syncs the entry's kind in the same direction."""
    for syncer in given.syncers:
        way = way_of(syncer)
        begins = way.goes_down if config.direction == "toHost" else way.comes_up
        if begins and str(syncer.resource) == name and given.is_on(syncer):
            yield (), f"is synced by {syncer.name} already; set sync.{syncer.section}.enabled to false to have it here."


def _kinds(given: _Given, config: CustomConfig) -> Iterator[Found]:
    """Yield a problem for each kind that an entry refers to and no syncer syncs."""
    for steps, word in config.kinds():
        if problem := _unsynced(given, word):
            yield steps, problem


def _unsynced(given: _Given, word: str) -> str:
    there = [syncer for syncer in given.syncers if way_of(syncer).goes_down]
    on = [syncer for syncer in there if given.is_on(syncer)]
    if named(word, [syncer.resource for syncer in on]) or _is_on(given.entries.get(word)):
        return ""
    off = named(word, [syncer.resource for syncer in there])
    if off:
        sections = [f"sync.{syncer.section}" for syncer in there if syncer.resource == off]
        return f"{word} is not synced; set {sections[0]}.enabled to true."
    if word in given.entries:
        return f"{word} is not synced; set sync.custom.{word}.enabled to true."
    if "." in word:
        return f"{word} is not synced; give it a section of its own, sync.custom.{word}."
    known = [*(syncer.resource.kind for syncer in there), *given.entries]
    hint = guess(word, known) or "Kinds of others are written plural.group, such as issuers.cert-manager.io."
    return f"nothing syncs a kind {word!r}. {hint}"


def _is_on(config: CustomConfig | None) -> bool:
    return config is not None and config.enabled


def _template(config: CustomConfig, translator: NameTranslator | None) -> Iterator[Found]:
    template = config.template
    if template is None or translator is None:
        return
    namespaced = config.scope != "Cluster"
    if missing := lack(template, translator, namespaced=namespaced):
        hint = "" if config.scope else " For a kind without namespaces, set scope to Cluster."
        yield ("name",), f"{missing}.{hint}"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
