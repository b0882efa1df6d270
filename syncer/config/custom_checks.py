"""Checks of ``sync.custom`` entries against other kinds, other syncers, and the name translator."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from syncer.api import NameTranslator, Reference, Resource, Syncer
from syncer.api.dns_names import PLURAL_GROUP
from syncer.api.groups import is_built_in
from syncer.api.references import reference_of
from syncer.config.document import Mistake
from syncer.config.problems import guess
from syncer.directions import way_of
from syncer.names.templated import keeps_names, lack
from syncer.resources.custom import CustomConfig
from syncer.translate.named import named

#: By group, what the objects of a built-in kind do on the host; of the others, ``_EFFECT``.
_EFFECTS = {
    **dict.fromkeys(("apps", "batch"), "run Pods on the host, which the rules of sync.toHost.pods don't concern"),
    "autoscaling": "change how many Pods of the host run",
    "policy": "hold the host's evictions back",
    **dict.fromkeys(
        (
            f"{group}.k8s.io"
            for group in ("admissionregistration", "apiextensions", "apiregistration", "flowcontrol.apiserver")
        ),
        "change what the host's API server does for all",
    ),
    **dict.fromkeys(
        (f"{group}.k8s.io" for group in ("authentication", "authorization", "certificates", "rbac.authorization")),
        "give rights on the host",
    ),
}
_EFFECT = "act on the host by no rule of a syncer, and could name its objects"


class _ReadEntries(NamedTuple):
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
) -> Iterator[Mistake]:
    """Yield the problems of every entry.

    ``translator`` is None if the configured one can't be created.
    """
    sync = _mapping(data.get("sync"))
    entries = {name: config for name, each in _mapping(sync.get("custom")).items() if (config := _read(each))}
    given = _ReadEntries(entries, syncers, sync)
    for name, config in entries.items():
        if config.enabled:
            place = ("sync", "custom", name)
            found = [
                *(list(_built_in(given, name, config)) or _conflict(given, name, config)),
                *_kinds(given, config),
                *_left_behind(name, config),
                *_template(config, translator),
                *_referenced(given, name, config),
                *_related(config, translator),
            ]
            yield from ((place + steps, message) for steps, message in found)


def _read(data: Any) -> CustomConfig | None:
    """Return the entry; None if its own section reports a problem."""
    try:
        return CustomConfig.model_validate({} if data is None else data)
    except ValidationError:
        return None


def _built_in(given: _ReadEntries, name: str, config: CustomConfig) -> Iterator[Mistake]:
    """Yield a problem if tenants could create objects of a built-in kind past the syncer that has rules for it, or
    of one that no syncer knows.
    """
    group = name.partition(".")[2]
    own = [syncer for syncer in given.syncers if str(syncer.resource) == name and syncer.name == syncer.resource.plural]
    if config.direction != "toHost" or (config.built_in and group) or not is_built_in(group):
        return
    if own:
        why = f"{name} has rules of its own in sync.{own[0].section}"
        on = given.is_on(own[0])
        yield (), f"{why}, {'where it is on' if on else 'set enabled to true there'}. Remove this entry."
    elif re.fullmatch(PLURAL_GROUP, name):  # otherwise a problem of its own
        why = f"{name} is a kind of Kubernetes itself: its objects {_EFFECTS.get(group, _EFFECT)}."
        yield (), f"{why} If that is what you want, set builtIn to true, and list every name in references."


def _conflict(given: _ReadEntries, name: str, config: CustomConfig) -> Iterator[Mistake]:
    """Yield a problem if another syncer syncs the entry's kind in the same direction."""
    for syncer in given.syncers:
        way = way_of(syncer)
        begins = way.goes_down if config.direction == "toHost" else way.comes_up
        if begins and str(syncer.resource) == name and given.is_on(syncer):
            yield (), f"is synced by {syncer.name} already; set sync.{syncer.section}.enabled to false to have it here."


def _kinds(given: _ReadEntries, config: CustomConfig) -> Iterator[Mistake]:
    """Yield a problem for each kind that an entry refers to and no syncer syncs."""
    for steps, word in config.kinds():
        if problem := _unsynced(given, word):
            yield steps, problem


def _left_behind(name: str, config: CustomConfig) -> Iterator[Mistake]:
    """Yield a problem for each reference that would do nothing, as its field doesn't cross by default."""
    own = config.of(name)
    for path in config.references:
        if not own.goes_down(path) and not own.comes_up(path):
            why = "is not below spec, and of a kind of Kubernetes itself nothing else crosses by default; give down"
            yield ("references", path), f"{why}."


def _unsynced(given: _ReadEntries, word: str) -> str:
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


def _template(config: CustomConfig, translator: NameTranslator | None) -> Iterator[Mistake]:
    template = config.template
    if template is None or translator is None:
        return
    namespaced = config.scope != "Cluster"
    if missing := lack(template, translator, namespaced=namespaced):
        hint = "" if config.scope else " For a kind without namespaces, set scope to Cluster."
        yield ("name",), f"{missing}.{hint}"


def _referenced(given: _ReadEntries, name: str, config: CustomConfig) -> Iterator[Mistake]:
    """Yield a problem if a kind that synced objects refer to has a template without the cluster.

    A reference to an object that the tenant doesn't have would be one to the host's own.
    """
    if config.template is None or config.template.has("cluster"):
        return
    by_entry = [
        f"sync.custom.{other}" for other, each in given.entries.items() if each.enabled and name in _names_of(each)
    ]
    by_syncer = [f"sync.{syncer.section}" for syncer in given.syncers if given.is_on(syncer) and _names(syncer, name)]
    if namers := [*by_entry, *by_syncer]:
        why = f"must have {{cluster}} in it, since objects of {namers[0]} refer to this kind"
        yield ("name",), f"{why}: the name of one that the tenant doesn't have could be that of the host's own."


def _names_of(config: CustomConfig) -> set[str]:
    return {word for _, word in config.kinds()}


def _names(syncer: type[Syncer], name: str) -> bool:
    """Return True if a syncer's objects may refer to a kind."""
    references: Mapping[str, Any] = getattr(syncer, "references", {})
    known = (reference_of(said) for said in references.values() if isinstance(said, Resource | Reference))
    return any(str(target) == name for each in known for target in each.targets)


def _related(config: CustomConfig, translator: NameTranslator | None) -> Iterator[Mistake]:
    """Yield a problem for each rule by which a tenant could name the host's own objects."""
    if translator is None or not keeps_names(translator):
        return
    for place, related in enumerate(config.related):
        by = related.by
        if related.origin == "host" and by.reference in config.references and not (by.owner or by.selector):
            why = "finds what is on the host by a name that the tenant says, and names.translator leaves names as they"
            yield (
                ("related", place, "by"),
                f"{why} are: they could name whatever is there. Add by.selector or by.owner.",
            )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
