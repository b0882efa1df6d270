"""Checks of ``sync.custom`` entries against other kinds, other syncers, and the name translator."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from syncer.api import NameTranslator, Reference, Resource, Syncer
from syncer.api.dns_names import PLURAL_GROUP
from syncer.api.groups import is_built_in
from syncer.api.references import References, reference_of
from syncer.config.document import Mistake, as_mapping
from syncer.config.problems import guess
from syncer.directions import direction_class
from syncer.names.templated import fault_of, keeps_names
from syncer.resources.custom import CustomConfig
from syncer.translate.named import named

_RUN_PODS = "run Pods on the host, which the rules of sync.toHost.pods don't concern"
_CHANGE_API_SERVER = "change what the host's API server does for all"
_GIVE_RIGHTS = "give rights on the host"

#: By group, the effect of the objects of a built-in kind on the host; of the others, ``_EFFECT``.
_EFFECTS = {
    "apps": _RUN_PODS,
    "batch": _RUN_PODS,
    "autoscaling": "change how many Pods of the host run",
    "policy": "hold the host's evictions back",
    "admissionregistration.k8s.io": _CHANGE_API_SERVER,
    "apiextensions.k8s.io": _CHANGE_API_SERVER,
    "apiregistration.k8s.io": _CHANGE_API_SERVER,
    "flowcontrol.apiserver.k8s.io": _CHANGE_API_SERVER,
    "authentication.k8s.io": _GIVE_RIGHTS,
    "authorization.k8s.io": _GIVE_RIGHTS,
    "certificates.k8s.io": _GIVE_RIGHTS,
    "rbac.authorization.k8s.io": _GIVE_RIGHTS,
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
        section = as_mapping(as_mapping(self.sync.get(direction)).get(name))
        enabled = section.get("enabled")
        return enabled if isinstance(enabled, bool) else syncer.config().enabled


def custom(
    data: Mapping[str, Any], syncers: Sequence[type[Syncer]], translator: NameTranslator | None
) -> Iterator[Mistake]:
    """Yield the problems of every entry.

    ``translator`` is None if the configured one can't be created.
    """
    sync = as_mapping(data.get("sync"))
    entries: dict[str, CustomConfig] = {}
    for name, section in as_mapping(sync.get("custom")).items():
        config = _read(section)
        if config is not None:
            entries[name] = config

    given = _ReadEntries(entries, syncers, sync)
    for name, config in entries.items():
        if not config.enabled:
            continue
        mistakes = list(_built_in(given, name, config))
        if not mistakes:
            mistakes += _conflict(given, name, config)
        mistakes += _places(config)
        mistakes += _kinds(given, config)
        mistakes += _left_behind(name, config)
        mistakes += _template(config, translator)
        mistakes += _referenced(given, name, config)
        mistakes += _related(config, translator)
        for steps, message in mistakes:
            yield ("sync", "custom", name, *steps), message


def _read(section: Any) -> CustomConfig | None:
    """Return the entry; None if its own section reports a problem."""
    if section is None:
        section = {}
    try:
        return CustomConfig.model_validate(section)
    except ValidationError:
        return None


def _built_in(given: _ReadEntries, name: str, config: CustomConfig) -> Iterator[Mistake]:
    """Yield a problem if an entry is for a built-in kind.

    Tenants could create objects of it past the syncer that has rules for it, or no syncer knows
    the kind.
    """
    group = name.partition(".")[2]
    if config.direction != "toHost" or (config.built_in and group) or not is_built_in(group):
        return

    for syncer in given.syncers:
        if str(syncer.resource) == name and syncer.name == syncer.resource.plural:
            way_out = "where it is on" if given.is_on(syncer) else "set enabled to true there"
            why = f"{name} has rules of its own in sync.{syncer.section}"
            yield (), f"{why}, {way_out}. Remove this entry."
            return

    if re.fullmatch(PLURAL_GROUP, name):  # otherwise a problem of its own
        why = f"{name} is a kind of Kubernetes itself: its objects {_EFFECTS.get(group, _EFFECT)}."
        way_out = "If you want that, set builtIn to true, and list every name in references."
        yield (), f"{why} {way_out}"


def _conflict(given: _ReadEntries, name: str, config: CustomConfig) -> Iterator[Mistake]:
    """Yield a problem if another syncer syncs the entry's kind in the same direction."""
    for syncer in given.syncers:
        direction = direction_class(syncer)
        is_same_direction = direction.comes_up
        if config.direction == "toHost":
            is_same_direction = direction.goes_down
        if is_same_direction and str(syncer.resource) == name and given.is_on(syncer):
            way_out = f"set sync.{syncer.section}.enabled to false to have it here."
            yield (), f"is synced by {syncer.name} already; {way_out}"


def _places(config: CustomConfig) -> Iterator[Mistake]:
    """Yield a problem if no host object of an entry's kind is where the entry looks for it."""
    if config.direction != "fromHost":
        return
    if config.scope == "Namespaced" and not config.namespaces:
        why = "is Namespaced, and namespaces is empty, so nothing would appear"
        yield ("scope",), f"{why}: name the host namespaces there."
    if config.scope == "Cluster" and config.namespaces:
        why = "is for kinds with namespaces, and scope is Cluster"
        yield ("namespaces",), f"{why}: leave one of the two out."


def _left_behind(name: str, config: CustomConfig) -> Iterator[Mistake]:
    """Yield a problem for each reference without effect, as its field doesn't cross by default."""
    own = config.of(name)
    for path in config.references:
        if not own.goes_down(path) and not own.comes_up(path):
            why = "of a kind of Kubernetes itself nothing else crosses by default"
            yield ("references", path), f"is not below spec, and {why}; give down."


def _kinds(given: _ReadEntries, config: CustomConfig) -> Iterator[Mistake]:
    """Yield a problem for each kind that an entry refers to and no syncer syncs."""
    for steps, word in config.kinds():
        if problem := _unsynced(given, word):
            yield steps, problem


def _unsynced(given: _ReadEntries, word: str) -> str:
    """Return why objects of a kind aren't synced to the host; ``""`` if they are."""
    to_host = [syncer for syncer in given.syncers if direction_class(syncer).goes_down]
    enabled = [syncer.resource for syncer in to_host if given.is_on(syncer)]
    if named(word, enabled):
        return ""
    entry = given.entries.get(word)
    if entry is not None and entry.enabled:
        return ""

    disabled = named(word, [syncer.resource for syncer in to_host])
    if disabled:
        sections = [f"sync.{syncer.section}" for syncer in to_host if syncer.resource == disabled]
        return f"{word} is not synced; set {sections[0]}.enabled to true."
    if entry is not None:
        return f"{word} is not synced; set sync.custom.{word}.enabled to true."
    if "." in word:
        return f"{word} is not synced; give it a section of its own, sync.custom.{word}."

    known = [*(syncer.resource.kind for syncer in to_host), *given.entries]
    hint = guess(word, known)
    if not hint:
        hint = "Kinds of others are written plural.group, such as issuers.cert-manager.io."
    return f"nothing syncs a kind {word!r}. {hint}"


def _template(config: CustomConfig, translator: NameTranslator | None) -> Iterator[Mistake]:
    """Yield a problem if two objects could get the same name by the entry's template."""
    template = config.template
    if template is None or translator is None:
        return
    if fault := fault_of(template, translator, namespaced=config.scope != "Cluster"):
        hint = "" if config.scope else " For a kind without namespaces, set scope to Cluster."
        yield ("name",), f"{fault}.{hint}"


def _referenced(given: _ReadEntries, name: str, config: CustomConfig) -> Iterator[Mistake]:
    """Yield a problem if a kind that synced objects refer to has a template without the cluster.

    A reference to an object that the tenant doesn't have would be one to the host's own.
    """
    if config.template is None or config.template.has("cluster"):
        return

    referring: list[str] = []
    for other, entry in given.entries.items():
        if entry.enabled and any(word == name for _, word in entry.kinds()):
            referring.append(f"sync.custom.{other}")
    enabled = [syncer for syncer in given.syncers if given.is_on(syncer)]
    referring += [f"sync.{each.section}" for each in enabled if _may_refer_to(each, name)]

    if referring:
        message = (
            f"must have {{cluster}} in it, since objects of {referring[0]} refer to this kind: "
            "the name of one that the tenant doesn't have could be that of the host's own."
        )
        yield ("name",), message


def _may_refer_to(syncer: type[Syncer], name: str) -> bool:
    """Return True if a syncer's objects may refer to a kind."""
    references: References = getattr(syncer, "references", {})
    for referred in references.values():
        if isinstance(referred, Resource | Reference):
            targets = reference_of(referred).targets
            if any(str(target) == name for target in targets):
                return True
    return False


def _related(config: CustomConfig, translator: NameTranslator | None) -> Iterator[Mistake]:
    """Yield a problem for each rule by which a tenant could name the host's own objects."""
    if translator is None or not keeps_names(translator):
        return
    for index, related in enumerate(config.related):
        by = related.by
        is_named = related.origin == "host" and by.reference in config.references
        if is_named and not by.owner and not by.selector:
            message = (
                "finds objects of the host by a name that the tenant chooses, and names.translator "
                "leaves names as they are: the tenant could name any object of the host. "
                "Add by.selector or by.owner."
            )
            yield ("related", index, "by"), message
