"""The contract of syncers and name translators: the checks that every plugin must pass."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from pydantic import ValidationError

from syncer.api.config import Config
from syncer.api.metadata_rules import MetadataRules
from syncer.api.objects import Resource
from syncer.api.optional_roles import Indexes, Initialize, OwnController, Refers, Watches
from syncer.api.paths import FieldPath, is_within, metadata_key, path_steps, path_text
from syncer.api.reference_paths import ReferencePaths
from syncer.api.references import Reference, Referred
from syncer.api.roles import (
    API_VERSION,
    Deletion,
    FakeSyncUp,
    Sync,
    SyncDown,
    Syncer,
    SyncFromHost,
    SyncUp,
)
from syncer.api.selection import Selector
from syncer.api.sources import Index, Right, Source, Watch

#: Roles that are called with objects of the syncer's resource.
ASKED = (SyncDown, Sync, SyncUp, SyncFromHost, FakeSyncUp)
#: A syncer needs at least one of these roles; otherwise it is never called.
ROLES = (*ASKED, OwnController, Initialize, Indexes)

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_SECTION = re.compile(r"(toHost|fromHost|fake)\.[A-Za-z][A-Za-z0-9-]*")
_VERSION = re.compile(r"([a-z0-9][-a-z0-9.]*/)?v[0-9][a-z0-9]*")
_PLURAL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")
#: The attributes of a syncer that are tuples of paths.
_PATHS = ("down", "up", "both", "translates", "create_only", "exact")
_OF_METADATA = (
    "labels and annotations of the tenant's go to the host by themselves, and each that either side"
    " may change or that comes up is named by its key, such as"
    " /metadata/annotations/example.org~1team"
)
_TRANSLATES = ("to_host", "to_virtual", "host_namespaces")
#: Attributes that had other names before; one of the old name would never be read.
_RENAMED = {"heeds": "predicate", "concerns": "applies_to", "restores": "reverts_virtual_changes"}
#: The only methods that may be coroutines. All others are called on the event loop and must not
#: block.
_ASYNC = ("init", "register")


class Fault(NamedTuple):
    """A fault of a plugin."""

    #: A sentence with the fault and the way out.
    message: str
    #: The attribute or method at fault; ``""`` if the class as a whole is.
    attribute: str = ""


def syncer_faults(plugin: Any) -> list[Fault]:
    """Return the faults of a syncer. A basic fault hides those that depend on it."""
    for check in (_identity_faults, _class_faults, _made_faults):
        faults = list(check(plugin))
        if faults:
            return faults
    return []


def translator_faults(plugin: Any) -> list[Fault]:
    """Return the faults of a name translator."""
    if not inspect.isclass(plugin):
        return [Fault(f"{plugin!r} is not a class; the entry point has to name one")]
    missing = [name for name in _TRANSLATES if not callable(getattr(plugin, name, None))]
    if missing:
        return [Fault(f"{plugin.__name__} lacks the method {', '.join(missing)}")]
    if not _takes(plugin, (), {"cluster": "", "namespace": ""}):
        why = f"{plugin.__name__} can't be made with `cluster` and `namespace` given by keyword"
        return [Fault(why, "__init__")]
    return []


def _identity_faults(plugin: Any) -> Iterator[Fault]:
    """Yield a fault if the plugin is not a syncer class of this API version."""
    if isinstance(plugin, Syncer):
        yield Fault(f"an object of {type(plugin).__name__}, not a class; name the class itself")
    elif not (inspect.isclass(plugin) and issubclass(plugin, Syncer)):
        way_out = "derive it from Syncer and roles, or from Mirror"
        yield Fault(f"{plugin!r} is not a subclass of syncer.api.Syncer; {way_out}")
    elif plugin.api_version != API_VERSION:
        newer = isinstance(plugin.api_version, int) and plugin.api_version > API_VERSION
        way_out = "upgrade vsyncer" if newer else "upgrade the plugin"
        written_for = f"was written for version {plugin.api_version!r} of the plugin API"
        why = f"{written_for}; this is version {API_VERSION}"
        yield Fault(f"{why}: {way_out}", "api_version")


def _class_faults(plugin: type[Syncer]) -> Iterator[Fault]:
    """Yield the faults that show before the class is instantiated."""
    name = plugin.__name__
    needed = ("name", "resource") if issubclass(plugin, ASKED) else ("name",)
    lacking = [attribute for attribute in needed if not hasattr(plugin, attribute)]
    if lacking:
        yield Fault(f"{name} doesn't set {', '.join(lacking)}")
    missing = sorted(plugin.__abstractmethods__)
    if missing:
        yield Fault(f"{name} lacks the method {', '.join(missing)}")
    if not issubclass(plugin, ROLES):
        roles = ", ".join(role.__name__ for role in ROLES)
        yield Fault(f"{name} has no role; derive it from {roles} or Mirror")
    for old, new in _RENAMED.items():
        if hasattr(plugin, old):
            yield Fault(f"its {old} is called {new} now; rename it", old)
    yield from _combination_faults(plugin)
    if not lacking:
        yield from _section_faults(plugin)
    if not (inspect.isclass(plugin.config) and issubclass(plugin.config, Config)):
        why = f"its config {plugin.config!r} is not a subclass of syncer.api.Config"
        yield Fault(why, "config")
        return
    for option, kind in (("selector", Selector), ("metadata", MetadataRules)):
        if plugin.config.model_fields[option].annotation is not kind:
            why = f"that is a {kind.__name__} in every section. Call it otherwise"
            yield Fault(f"its config has an option `{option}` of its own, but {why}", "config")


def _combination_faults(plugin: type[Syncer]) -> Iterator[Fault]:
    """Yield the faults of roles that can't be combined, or are never called without another."""
    name = plugin.__name__
    if issubclass(plugin, SyncFromHost) and issubclass(plugin, SyncDown | SyncUp):
        yield Fault(f"{name} has SyncFromHost beside SyncDown or SyncUp; make two syncers of it")
    if issubclass(plugin, SyncUp) and not issubclass(plugin, SyncDown | SyncFromHost):
        why = "which is only about the copies of SyncDown"
        way_out = (
            "for objects that begin on the host, derive it from SyncFromHost"
            " and rename sync_up to sync_from_host"
        )
        yield Fault(f"{name} has SyncUp without SyncDown, {why}; {way_out}")
    elif issubclass(plugin, Sync) and not issubclass(plugin, SyncDown | SyncFromHost):
        why = f"{name} has Sync alone, which is never asked"
        yield Fault(f"{why}; derive it from SyncDown or SyncFromHost, too")
    is_or_fake = issubclass(plugin, SyncFromHost) and issubclass(plugin, FakeSyncUp)
    reverts = getattr(plugin, "reverts_virtual_changes", False)
    if is_or_fake and not issubclass(plugin, SyncDown) and not reverts:
        why = f"{name} has FakeSyncUp beside SyncFromHost"
        way_out = "set reverts_virtual_changes and host_key"
        yield Fault(f"{why}; {way_out}, so that a virtual key leads to the host object")


def _section_faults(plugin: type[Syncer]) -> Iterator[Fault]:
    section = getattr(plugin, "section", None)
    if section is None or not _is_like(_SECTION, section):
        forms = "toHost.name, fromHost.name or fake.name"
        yield Fault(f"its section {section!r} is not of the form {forms}", "section")
        return
    word = re.sub(r"-|(?=[A-Z])", "_", section.partition(".")[2]).lower()
    if hasattr(Config, word):
        why = f"its section {section!r} can't be called so, the word has another meaning there"
        yield Fault(why, "section")


def _made_faults(plugin: type[Syncer]) -> Iterator[Fault]:
    """Yield the faults that show once the class is instantiated."""
    made, raised = _attempt(plugin)
    if raised:
        why = f"{plugin.__name__}() raises {raised}; it is made without arguments"
        yield Fault(why, "__init__")
        return
    yield from _attribute_faults(made)
    yield from _method_faults(made)
    _, raised = _attempt(plugin.config)
    if raised:
        why = f"its config {plugin.config.__name__} can't be made of defaults alone: {raised}"
        yield Fault(f"{why}; give each option a default", "config")

    # Indexes and watches are needed before the daemon connects.
    if isinstance(made, Indexes):
        yield from _list_faults("indexes", made.indexes, Index)
    if isinstance(made, Watches):
        yield from _list_faults("watches", made.watches, Watch)


def _attribute_faults(made: Syncer) -> Iterator[Fault]:
    if not _is_like(_NAME, made.name):
        why = f"its name {made.name!r} is not lower-case letters, digits, '-' and '.'"
        yield Fault(why, "name")
    if hasattr(made, "resource"):
        yield from _resource_faults("resource", made.resource)
        if made.host_resource is not made.resource:
            yield from _resource_faults("host_resource", made.host_resource)
    path_faults: list[Fault] = []
    for attribute in _PATHS:
        path_faults += _path_faults(made, attribute)
    yield from path_faults or _idle_faults(made)
    if isinstance(made, Refers):
        yield from _reference_faults(made)
    if not isinstance(made.metadata, MetadataRules):
        why = f"its metadata {made.metadata!r} is not MetadataRules of labels and annotations"
        yield Fault(why, "metadata")
    yield from _deletion_faults(made)
    for attribute, kind in (
        ("reads", Source),
        ("rights", Right),
        ("refers_to", Resource),
        ("owns", Resource),
    ):
        value = getattr(made, attribute, ())
        if not isinstance(value, tuple) or not all(isinstance(each, kind) for each in value):
            yield Fault(f"its {attribute} is not a tuple of {kind.__name__}", attribute)


def _deletion_faults(made: Syncer) -> Iterator[Fault]:
    """Yield the faults of ``deletion``: it must be one of its values, and have an effect."""
    values = get_args(Deletion)
    if made.deletion not in values:
        yield Fault(f"its deletion {made.deletion!r} is not one of {', '.join(values)}", "deletion")
        return
    if made.own_deletion:
        why = "own_deletion handles it"
    elif not isinstance(made, SyncDown):
        why = "it makes no copies"
    else:
        return
    if made.deletion != Syncer.deletion:
        yield Fault(f"its deletion is {made.deletion}, but {why}; leave it out", "deletion")


def _path_faults(made: Syncer, attribute: str) -> Iterator[Fault]:
    """Yield the faults of an attribute that has to be a tuple of paths."""
    value = getattr(made, attribute)
    if not isinstance(value, tuple) or not all(_is_path(path) for path in value):
        why = f'its {attribute} {value!r} is not a tuple of dotted paths, such as ("spec",)'
        yield Fault(why, attribute)
        return
    for path in value:
        if path_steps(path)[0] != "metadata":
            continue
        if attribute in ("down", "create_only") or not metadata_key(path):
            yield Fault(f"its {attribute} has {path!r}; {_OF_METADATA}", attribute)


def _idle_faults(made: Syncer) -> Iterator[Fault]:
    """Yield the faults of paths about fields that cross, but that lie outside of these fields."""
    for attribute, first, second in (("create_only", "down", "both"), ("exact", "down", "up")):
        paths = getattr(made, attribute)
        crossing = (*getattr(made, first), *getattr(made, second))
        idle = [path for path in paths if not any(is_within(path, own) for own in crossing)]
        if idle and paths is not getattr(Syncer, attribute):
            why = f"its {attribute} has {idle[0]!r}, which is neither in {first} nor in {second}"
            yield Fault(why, attribute)


def _reference_faults(made: Refers) -> Iterator[Fault]:
    """Yield the faults of ``references``: its paths must cross, its values must be references."""
    references = made.references
    kinds = get_args(Referred)
    is_mapping = isinstance(references, Mapping)
    if not is_mapping or not all(isinstance(each, kinds) for each in references.values()):
        form = "a mapping of paths to Resource, Reference, Selects or Rewritten"
        yield Fault(f"its references is not {form}", "references")
        return
    try:
        ReferencePaths(references)
    except (TypeError, ValueError) as error:
        yield Fault(f"its references can't be: {error}", "references")
        return
    owners: tuple[FieldPath, ...] = ()
    shared: tuple[FieldPath, ...] = ()
    if isinstance(made, Syncer):
        owners = (*made.down, *made.both, *made.up)
        shared = made.both
    for path, each in references.items():
        holder = path_steps(path)[:-1]
        parted = [one for one in shared if is_within(path, one) and not is_within(holder, one)]
        if isinstance(each, Reference) and each.beside and parted:
            why = f"both has {parted[0]!r}, but what stands beside it says what it is the name of"
            yield Fault(f"its {why}; put {path_text(holder)} there", "both")
        if not metadata_key(path) and not any(is_within(path, owner) for owner in owners):
            why = f"its references has {path!r}, which is in none of down, both and up"
            yield Fault(why, "references")


def _is_path(path: Any) -> bool:
    try:
        steps = path_steps(path)
    except (TypeError, ValueError):
        return False
    plain = isinstance(path, tuple) or not set(path) & set(" \t\n[]")
    return bool(steps) and plain and all(isinstance(step, str) and step for step in steps)


def _resource_faults(attribute: str, value: Any) -> Iterator[Fault]:
    if not isinstance(value, Resource):
        example = 'Resource("v1", "Pod", "pods")'
        yield Fault(f"its {attribute} {value!r} is not a Resource, such as {example}", attribute)
        return
    for field, form in (("api_version", _VERSION), ("kind", _KIND), ("plural", _PLURAL)):
        text = getattr(value, field)
        if not _is_like(form, text):
            why = f"its {attribute} has the {field} {text!r}, which can't be one"
            yield Fault(why, attribute)


def _method_faults(made: Syncer) -> Iterator[Fault]:
    """Yield a fault for each method whose signature differs from the role's."""
    for base, name, function in _methods_of_api(made):
        own = getattr(made, name)
        parameters = inspect.signature(function).parameters
        wanted = [parameter for parameter in parameters if parameter != "self"]
        if not _takes(own, wanted, {}):
            why = f"its {name} can't be called with ({', '.join(wanted)}), as {base} has it"
            yield Fault(why, name)
        elif name not in _ASYNC and inspect.iscoroutinefunction(own):
            rule = f"a syncer decides without waiting, only {' and '.join(_ASYNC)} may"
            yield Fault(f"its {name} is async; {rule}", name)
    if isinstance(made, Initialize) and not inspect.iscoroutinefunction(made.init):
        yield Fault("its init is not async", "init")


def _methods_of_api(made: Syncer) -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Yield the methods that the class overrides.

    Each as the role's name, the method's name, and the role's own function.
    """
    for base in type(made).__mro__:
        if not base.__module__.startswith("syncer.api."):
            continue
        for name, function in vars(base).items():
            if not inspect.isfunction(function) or name.startswith("_"):
                continue
            if getattr(type(made), name, None) is not function:
                yield base.__name__, name, function


def _list_faults(
    name: str, method: Callable[[], Sequence[Any]], kind: type[Index | Watch]
) -> Iterator[Fault]:
    def listed() -> list[Any]:
        return list(method())

    found, raised = _attempt(listed)
    if raised:
        yield Fault(f"its {name}() raises {raised}", name)
    for each in found or ():
        if not isinstance(each, kind) or not isinstance(each.source, Source):
            why = f"its {name}() gives {each!r}, which is no {kind.__name__} of a Source"
            yield Fault(why, name)
            continue
        function = each.values if isinstance(each, Index) else each.keys
        if not callable(function):
            yield Fault(f"its {name}() gives a {kind.__name__} without a function", name)


def _is_like(form: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and form.fullmatch(value) is not None


def _takes(
    function: Callable[..., Any], positional: Sequence[Any], by_name: dict[str, Any]
) -> bool:
    try:
        inspect.signature(function).bind(*positional, **by_name)
    except TypeError:
        return False
    except ValueError:  # implemented in C, without a signature
        return True
    return True


def _attempt(call: Callable[[], Any]) -> tuple[Any, str]:
    """Call into a plugin.

    Return the result, and the error in a single line (``""`` if there was none).
    """
    try:
        return call(), ""
    except ValidationError as error:
        messages = []
        for fault in error.errors(include_url=False):
            option = ".".join(map(str, fault["loc"]))
            messages.append(f"{option}: {fault['msg']}")
        return None, "; ".join(messages)
    except Exception as error:  # noqa: BLE001 — any error of a plugin's code is a fault of it
        text = "; ".join(line.strip() for line in str(error).splitlines()[:3])
        return None, f"{type(error).__name__}: {text}"
