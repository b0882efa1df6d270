"""Checks across sections.

They read the given values rather than the model, so they also run when other options are wrong.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from syncer.api import Key, Marks, NameTranslator
from syncer.config.custom_checks import custom
from syncer.config.document import Mistake, Steps
from syncer.config.list_form import COMMON, LIST, SECRETS
from syncer.config.model import SyncerConfig
from syncer.config.namespace_checks import namespaces, trust
from syncer.config.owner_checks import owners
from syncer.config.patch_checks import patches
from syncer.config.values import listen_on
from syncer.config.virtual_cluster import place_of
from syncer.directions import resources_of
from syncer.resources.namespaces import BUILT_IN

#: A name of a virtual cluster, for checks of what Secrets have in common.
PROBE = "probe"

_OWN_NAMESPACE = "Create one for this virtual cluster, or set host.builtInNamespace to true."


def across(data: Mapping[str, Any], model: type[SyncerConfig]) -> Iterator[Mistake]:
    """Yield contradictions between options of a configuration in list form, each with how to resolve it."""
    yield from _addresses(data, model)
    entries, secrets = data.get(LIST), data.get(SECRETS)
    if isinstance(entries, list | tuple) and not entries and not secrets:
        yield (LIST,), "must not be empty."
    for number, entry in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(entry, Mapping):
            yield from _namespace(_whole(data, entry), entry, number, model)
            yield from _sections(data, entry, (LIST, number), model)
    if isinstance(entries, list) and len(entries) > 1:
        yield from _apart(data, entries, model)
    if isinstance(secrets, list):
        yield from _secrets(data, secrets, model)
    if secrets or (isinstance(entries, list) and len(entries) > 1):
        yield from _shared_lease(data)


def _whole(data: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with an entry's own sections laid over the common ones."""
    return {**data, **_own(entry)}


def _own(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in COMMON if entry.get(name) is not None}


def _sections(
    data: Mapping[str, Any], entry: Mapping[str, Any], place: Steps, model: type[SyncerConfig]
) -> Iterator[Mistake]:
    """Yield the problems of the sections of a virtual cluster."""
    own, whole = _own(entry), _whole(data, entry)
    names, translator = whole.get("names"), _translator(whole, entry, model)
    given = names if isinstance(names, Mapping) else {}
    found = (
        *trust(given, _translator_class(whole, model)),
        *namespaces(whole, model.syncers, translator),
        *patches(whole, [each for syncer in model.syncers for each in resources_of(syncer)[:1]], _marks(whole, model)),
        *owners(whole, model.syncers, _marks(whole, model)),
        *custom(whole, model.syncers, translator),
        *_given_marks(whole, _marks(whole, model)),
        *_allowed_marks(whole, _marks(whole, model)),
    )
    for steps, message in found:
        yield ((*place, *steps) if steps[0] in own else steps), message


def _secrets(data: Mapping[str, Any], entries: list[Any], model: type[SyncerConfig]) -> Iterator[Mistake]:
    """Yield the problems of Secrets with virtual clusters."""
    seen: dict[tuple[Any, Any], int] = {}
    for number, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            continue
        place, homes = (SECRETS, number), entry.get("hostNamespaces")
        known = [each for each in homes if isinstance(each, str)] if isinstance(homes, list) else []
        probe = {**entry, "name": PROBE, "hostNamespace": known[0] if known else ""}
        whole = _whole(data, entry)
        yield from _sections(data, probe, place, model)
        translator = _translator(whole, probe, model)
        if translator is not None and known and translator.host_namespaces() is None:
            where = (*place, "names") if "names" in _own(entry) else ("names",)
            why = "puts copies into host namespaces that tenants name, so a Secret could lead outside of hostNamespaces"
            yield (*where, "translator"), f"{why}: take single-namespace for virtual clusters of Secrets."
        for step, each in enumerate(known):
            if problem := _built_in(whole, each, model):
                yield (*place, "hostNamespaces", step), problem
        read = entry.get("namespace"), str(entry.get("selector", ""))
        if (other := seen.setdefault(read, number)) != number:
            yield (*place, "namespace"), f"is read by {SECRETS}[{other}], too, with the same selector."


def _apart(data: Mapping[str, Any], entries: list[Any], model: type[SyncerConfig]) -> Iterator[Mistake]:
    """Yield the virtual clusters that another one has the name of, or whose copies would be at the same places."""
    names: dict[str, int] = {}
    places: dict[Key, tuple[int, str]] = {}
    for number, entry in enumerate(entries):
        name = entry.get("name") if isinstance(entry, Mapping) else None
        if not isinstance(name, str):
            continue
        if (other := names.setdefault(name, number)) != number:
            yield (LIST, number, "name"), f"is {name}, as that of {LIST}[{other}]: each needs a name of its own."
            continue
        translator = _translator(_whole(data, entry), entry, model)
        if translator is None:
            continue
        place = place_of(translator)
        other, of = places.setdefault(place, (number, name))
        if other != number:
            why = f"puts copies under the same names as {of} ({LIST}[{other}])"
            yield (LIST, number, "name"), f"{why}: give it a names.translator that has the cluster's name in it."


def _shared_lease(data: Mapping[str, Any]) -> Iterator[Mistake]:
    election = data.get("leaderElection")
    if isinstance(election, Mapping) and election.get("enabled") is True:
        for option, what in (
            ("name", "the name of the Lease"),
            ("namespace", "the namespace on the host of the Lease"),
        ):
            if not election.get(option):
                yield ("leaderElection", option), f"is required with several virtual clusters: {what} for all of them."


def _option(data: Mapping[str, Any], model: type[SyncerConfig], section: str, option: str, alias: str = "") -> Any:
    """Return the given value of an option, or its default; ``alias`` is its name in a file."""
    part = data.get(section)
    if isinstance(part, Mapping) and (alias or option) in part:
        return part[alias or option]
    return getattr(model.model_fields[section].default, option)


def _namespace(
    data: Mapping[str, Any], entry: Mapping[str, Any], number: int, model: type[SyncerConfig]
) -> Iterator[Mistake]:
    if (namespace := entry.get("hostNamespace", "")) != "":
        if problem := _built_in(data, namespace, model):
            yield (LIST, number, "hostNamespace"), problem
        return
    if getattr(_translator_class(data, model), "needs_namespace", True):
        yield (LIST, number, "hostNamespace"), "is required: the namespace on the host for the copies."
        return
    election = data.get("leaderElection")
    if isinstance(election, Mapping) and election.get("enabled") is True and not election.get("namespace"):
        why = "is required for leader election, as there is no host namespace: the namespace on the host for its Lease."
        yield ("leaderElection", "namespace"), why


def _built_in(data: Mapping[str, Any], namespace: Any, model: type[SyncerConfig]) -> str:
    """Return why a host namespace is one of the host's own; ``""`` if it isn't, or may be."""
    if not isinstance(namespace, str) or namespace not in BUILT_IN:
        return ""
    if _option(data, model, "host", "built_in_namespace", "builtInNamespace"):
        return ""
    why = f"{namespace} is a namespace of the host cluster itself: the copies would be among its objects."
    return f"{why} {_OWN_NAMESPACE}"


def _given_marks(data: Mapping[str, Any], marks: Marks) -> Iterator[Mistake]:
    """Yield the labels and annotations for host namespaces that are marks."""
    section: Any = data
    for step in ("sync", "toHost", "namespaces"):
        section = section.get(step) if isinstance(section, Mapping) else None
    for part in ("labels", "annotations") if isinstance(section, Mapping) else ():
        for key in given if isinstance(given := section.get(part), Mapping) else ():
            if isinstance(key, str) and marks.is_mark(key):
                why = f"{key} is a mark, by which our objects are known; choose a key outside {marks.prefix}/."
                yield ("sync", "toHost", "namespaces", part), why


def _allowed_marks(data: Mapping[str, Any], marks: Marks) -> Iterator[Mistake]:
    """Yield the rules that allow a mark, which never crosses."""
    directions = data.get("sync")
    for direction, kinds in directions.items() if isinstance(directions, Mapping) else ():
        for kind, section in kinds.items() if isinstance(kinds, Mapping) else ():
            rules = section.get("metadata") if isinstance(section, Mapping) else None
            for part in ("labels", "annotations") if isinstance(rules, Mapping) else ():
                given = rules.get(part) if isinstance(rules, Mapping) else None
                allowed = given.get("allow") if isinstance(given, Mapping) else None
                for key in allowed if isinstance(allowed, list) else ():
                    if isinstance(key, str) and marks.is_mark(key):
                        why = f"{key} is a mark, by which our objects are known: it never crosses. Remove it."
                        yield ("sync", direction, kind, "metadata", part, "allow"), why


def _addresses(data: Mapping[str, Any], model: type[SyncerConfig]) -> Iterator[Mistake]:
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
