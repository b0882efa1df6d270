"""Checks across sections.

They read the given values rather than the model, so they also run when other options are wrong.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from syncer.api import Key, Marks, NameTranslator
from syncer.config.custom_checks import custom
from syncer.config.document import Mistake, Steps, as_list, as_mapping
from syncer.config.list_form import COMMON, LIST, SECRETS
from syncer.config.model import SyncerConfig
from syncer.config.namespace_checks import namespaces, trust
from syncer.config.owner_checks import owners
from syncer.config.patch_checks import patches
from syncer.config.scheduler_checks import scheduler
from syncer.config.values import listen_on
from syncer.config.virtual_cluster import name_problem, probe_key
from syncer.directions import resources_of
from syncer.resources.namespaces import BUILT_IN

#: A name of a virtual cluster, for checks of what Secrets have in common.
PROBE = "probe"

#: The options for the Lease that several virtual clusters share, with what each is.
_LEASE_OPTIONS = (
    ("name", "the name of the Lease"),
    ("namespace", "the namespace on the host of the Lease"),
)


def across(data: Mapping[str, Any], model: type[SyncerConfig]) -> Iterator[Mistake]:
    """Yield contradictions between options, each with how to resolve it.

    ``data`` is a configuration in list form.
    """
    yield from _addresses(data, model)

    secrets = data.get(SECRETS)
    given = data.get(LIST)
    if isinstance(given, list | tuple) and not given and not secrets:
        yield (LIST,), "must not be empty."

    entries = as_list(given)
    common = tuple(_options(data, model))
    for number, entry in enumerate(entries):
        if isinstance(entry, Mapping):
            yield from _namespace(_whole(data, entry), entry, number, model)
            yield from _sections(data, entry, (LIST, number), model, common)
    if len(entries) > 1:
        yield from _apart(data, entries, model)

    yield from _secrets(data, as_list(secrets), model, common)
    if secrets or len(entries) > 1:
        yield from _shared_lease(data)


def _whole(data: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with an entry's own sections laid over the common ones."""
    return {**data, **_own(entry)}


def _own(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections that an entry has itself."""
    return {name: entry[name] for name in COMMON if entry.get(name) is not None}


# -- a virtual cluster -----------------------------------------------------------------------------


def _sections(
    data: Mapping[str, Any],
    entry: Mapping[str, Any],
    path: Steps,
    model: type[SyncerConfig],
    common: Iterable[Mistake],
) -> Iterator[Mistake]:
    """Yield the problems of the sections of a virtual cluster.

    ``path`` leads to its entry. A section that it doesn't have itself is the one at the top;
    ``common`` are the problems of the options there.
    """
    own = _own(entry)
    whole = _whole(data, entry)
    translator = _translator(whole, entry, model)
    mistakes = (
        *trust(as_mapping(whole.get("names")), _translator_class(whole, model)),
        *namespaces(whole, model.syncers, translator),
        *(_options(whole, model) if own else common),
        *custom(whole, model.syncers, translator),
    )
    for steps, message in mistakes:
        if steps[0] in own:
            yield (*path, *steps), message
        else:
            yield steps, message

    if translator is not None and (problem := name_problem(translator, entry["name"])):
        yield (*path, "name"), problem


def _options(data: Mapping[str, Any], model: type[SyncerConfig]) -> Iterator[Mistake]:
    """Yield the problems of options that are the same whatever the virtual cluster is named."""
    marks = _marks(data, model)
    resources = [resource for syncer in model.syncers for resource in resources_of(syncer)[:1]]
    yield from patches(data, resources, marks)
    yield from owners(data, model.syncers, marks)
    yield from scheduler(data)
    yield from _given_marks(data, marks)
    yield from _allowed_marks(data, marks)


def _namespace(
    data: Mapping[str, Any], entry: Mapping[str, Any], number: int, model: type[SyncerConfig]
) -> Iterator[Mistake]:
    """Yield a problem if a listed virtual cluster lacks a host namespace, or has a wrong one."""
    path = (LIST, number, "hostNamespace")
    namespace = entry.get("hostNamespace", "")
    if namespace != "":
        if problem := _built_in(data, namespace, model):
            yield path, problem
        return

    if getattr(_translator_class(data, model), "needs_namespace", True):
        yield path, "is required: the namespace on the host for the copies."
        return

    election = as_mapping(data.get("leaderElection"))
    if election.get("enabled") is True and not election.get("namespace"):
        why = "is required for leader election, as there is no host namespace"
        message = f"{why}: the namespace on the host for its Lease."
        yield ("leaderElection", "namespace"), message


def _built_in(data: Mapping[str, Any], namespace: Any, model: type[SyncerConfig]) -> str:
    """Return why a host namespace is one of the host's own; ``""`` if it isn't, or may be."""
    if not isinstance(namespace, str) or namespace not in BUILT_IN:
        return ""
    if _option(data, model, "host", "built_in_namespace", "builtInNamespace"):
        return ""
    return (
        f"{namespace} is a namespace of the host cluster itself: the copies would be among its "
        "objects. Create one for this virtual cluster, or set host.builtInNamespace to true."
    )


def _given_marks(data: Mapping[str, Any], marks: Marks) -> Iterator[Mistake]:
    """Yield the labels and annotations for host namespaces that are marks."""
    path = ("sync", "toHost", "namespaces")
    section = data
    for step in path:
        section = as_mapping(section.get(step))

    for part in ("labels", "annotations"):
        for key in as_mapping(section.get(part)):
            if isinstance(key, str) and marks.is_mark(key):
                way_out = f"choose a key outside {marks.prefix}/."
                message = f"{key} is a mark, by which our objects are known; {way_out}"
                yield (*path, part), message


def _allowed_marks(data: Mapping[str, Any], marks: Marks) -> Iterator[Mistake]:
    """Yield the rules that allow a mark, which never crosses."""
    for direction, kinds in as_mapping(data.get("sync")).items():
        for kind, section in as_mapping(kinds).items():
            rules = as_mapping(as_mapping(section).get("metadata"))
            path = ("sync", direction, kind, "metadata")
            for part in ("labels", "annotations"):
                for key in as_list(as_mapping(rules.get(part)).get("allow")):
                    if isinstance(key, str) and marks.is_mark(key):
                        why = f"{key} is a mark, by which our objects are known: it never crosses."
                        yield (*path, part, "allow"), f"{why} Remove it."


# -- several virtual clusters ----------------------------------------------------------------------


def _secrets(
    data: Mapping[str, Any],
    entries: Sequence[Any],
    model: type[SyncerConfig],
    common: Iterable[Mistake],
) -> Iterator[Mistake]:
    """Yield the problems of Secrets with virtual clusters; ``common`` as for :func:`_sections`."""
    #: The number of the first entry that reads Secrets, by namespace and selector.
    readers: dict[tuple[Any, str], int] = {}

    for number, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            continue
        path = (SECRETS, number)
        homes = [home for home in as_list(entry.get("hostNamespaces")) if isinstance(home, str)]
        probe = {**entry, "name": PROBE, "hostNamespace": homes[0] if homes else ""}
        whole = _whole(data, entry)
        yield from _sections(data, probe, path, model, common)

        translator = _translator(whole, probe, model)
        if translator is not None and homes and translator.host_namespaces() is None:
            section = (*path, "names") if "names" in _own(entry) else ("names",)
            message = (
                "puts copies into host namespaces that tenants name, so a Secret could lead "
                "outside of hostNamespaces: take single-namespace for virtual clusters of Secrets."
            )
            yield (*section, "translator"), message

        for index, home in enumerate(homes):
            if problem := _built_in(whole, home, model):
                yield (*path, "hostNamespaces", index), problem

        secrets = (entry.get("namespace"), str(entry.get("selector", "")))
        reader = readers.setdefault(secrets, number)
        if reader != number:
            message = f"is read by {SECRETS}[{reader}], too, with the same selector."
            yield (*path, "namespace"), message


def _apart(
    data: Mapping[str, Any],
    entries: Sequence[Any],
    model: type[SyncerConfig],
) -> Iterator[Mistake]:
    """Yield the virtual clusters with the name of another one, or with copies of the same names."""
    #: The number of the first entry with a name.
    named: dict[str, int] = {}
    #: The number and the name of the first entry that puts its copies at a host key.
    taken: dict[Key, tuple[int, str]] = {}

    for number, entry in enumerate(entries):
        name = as_mapping(entry).get("name")
        if not isinstance(name, str):
            continue
        path = (LIST, number, "name")

        other = named.setdefault(name, number)
        if other != number:
            yield path, f"is {name}, as that of {LIST}[{other}]: each needs a name of its own."
            continue

        translator = _translator(_whole(data, entry), entry, model)
        if translator is None:
            continue
        other, other_name = taken.setdefault(probe_key(translator), (number, name))
        if other != number:
            message = (
                f"puts copies under the same names as {other_name} ({LIST}[{other}]): "
                "give it a names.translator that has the cluster's name in it."
            )
            yield path, message


def _shared_lease(data: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield the options of the Lease that several virtual clusters need and that aren't given."""
    election = as_mapping(data.get("leaderElection"))
    if election.get("enabled") is not True:
        return
    for option, meaning in _LEASE_OPTIONS:
        if not election.get(option):
            message = f"is required with several virtual clusters: {meaning} for all of them."
            yield ("leaderElection", option), message


def _addresses(data: Mapping[str, Any], model: type[SyncerConfig]) -> Iterator[Mistake]:
    """Yield a problem for each of metrics, health and page that listens where another one does."""
    taken: list[tuple[str, str, str, int]] = []
    for section in ("metrics", "health", "page"):
        given = _option(data, model, section, "address")
        try:
            address = listen_on(given) if isinstance(given, str) else None
        except ValueError:  # reported by its own section
            continue
        if address is None or address[1] == 0:
            continue
        host, port = address
        for other, text, other_host, other_port in taken:
            if port == other_port and (host == other_host or "" in (host, other_host)):
                message = f"has the port of {other}.address, {text!r}: each needs one of its own."
                yield (section, "address"), message
                break
        taken.append((section, given, host, port))


# -- values in force -------------------------------------------------------------------------------


def _option(
    data: Mapping[str, Any],
    model: type[SyncerConfig],
    section: str,
    option: str,
    alias: str = "",
) -> Any:
    """Return the given value of an option, or its default; ``alias`` is its name in a file."""
    given = as_mapping(data.get(section))
    name = alias or option
    if name in given:
        return given[name]
    return getattr(model.model_fields[section].default, option)


def _marks(data: Mapping[str, Any], model: type[SyncerConfig]) -> Marks:
    """Return the configured marks; the default ones if their prefix is invalid."""
    prefix = _option(data, model, "marks", "prefix")
    return Marks(prefix) if isinstance(prefix, str) else Marks()


def _translator_class(
    data: Mapping[str, Any],
    model: type[SyncerConfig],
) -> type[NameTranslator] | None:
    """Return the class of the configured name translator; None if there is none of this name."""
    name = _option(data, model, "names", "translator")
    return model.translators(name) if isinstance(name, str) else None


def _translator(
    data: Mapping[str, Any],
    entry: Mapping[str, Any],
    model: type[SyncerConfig],
) -> NameTranslator | None:
    """Return the name translator of a virtual cluster.

    None if its class, its name or its host namespace is wrong.
    """
    cluster = entry.get("name")
    namespace = entry.get("hostNamespace", "")
    make: Any = _translator_class(data, model)
    if make is None or not isinstance(cluster, str) or not isinstance(namespace, str):
        return None
    translator: NameTranslator = make(cluster=cluster, namespace=namespace)
    return translator
