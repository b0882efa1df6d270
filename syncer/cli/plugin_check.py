"""Check plugins without a cluster: their contract, and that their code can be called."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from syncer.api import Key, NameTranslator, PluginError, Problem, Resource, Syncer
from syncer.config import SyncerConfig, VirtualCluster, config_with
from syncer.config.render import schema
from syncer.names import SingleNamespace
from syncer.plugins import OURS, SYNCERS, FoundPlugin, Installed, clashes, raised_by
from syncer.rights.rbac import manifests, needed

#: The configuration of a made-up virtual cluster.
TRIAL = {"cluster": "vc", "host": {"namespace": "vc-ns"}}
_SAMPLES = (
    (Resource("v1", "Pod", "pods"), Key("shop", "web")),
    (Resource("v1", "Node", "nodes", namespaced=False), Key("", "n1")),
)


def checked(
    plugins: Installed, names: Sequence[str], more: Callable[[FoundPlugin], Iterable[Problem]]
) -> list[FoundPlugin]:
    """Check the named plugins, and add their problems; ``more`` checks sound syncers further."""
    checked: list[FoundPlugin] = []
    for found in list(plugins.found(names)):
        problems = found.problems or tuple(_problems(found, more))
        checked.append(found._replace(problems=problems))
    return checked


def note(found: FoundPlugin, plugins: Installed) -> str:
    """Return a note about a built-in syncer that a sound plugin conflicts with; ``""`` if there is
    none.
    """
    if found.group != SYNCERS or found.problems or found.origin.package == OURS:
        return ""
    enabled = [syncer for syncer in plugins.built_in if syncer.config().enabled]
    for syncer, other, what in clashes([*enabled, found.plugin]):
        if syncer is found.plugin:
            return f"{what} {other.name}: set sync.{other.section}.enabled to false"
    return ""


def _problems(
    found: FoundPlugin,
    more: Callable[[FoundPlugin], Iterable[Problem]],
) -> Iterator[Problem]:
    plugin = found.plugin
    if found.group != SYNCERS:
        yield from _asked(plugin, {"its translations are wrong": lambda: _translate(plugin)})
        return
    questions: dict[str, Callable[[], object]] = {
        "there is no schema of its section": lambda: schema(_model(plugin)),
        "it can't say whether it applies to a virtual cluster": lambda: _cluster(plugin).enabled(),
        "the rights that it needs can't be computed": lambda: _rights(plugin),
    }
    problems = list(_asked(plugin, questions))
    yield from problems or more(found)


def _model(plugin: type[Syncer]) -> type[SyncerConfig]:
    return config_with([plugin], translator=SingleNamespace)


def _cluster(plugin: type[Syncer]) -> VirtualCluster:
    direction, _, name = plugin.section.partition(".")
    sync = {direction: {name: {"enabled": True}}}
    return _model(plugin).model_validate({**TRIAL, "sync": sync}).cluster()


def _rights(plugin: type[Syncer]) -> object:
    cluster = _cluster(plugin)
    rights = needed([plugin()], settings=cluster.settings())
    return manifests(
        rights,
        cluster=cluster.name,
        home=cluster.host_namespace,
        host_namespaces=None,
    )


def _translate(plugin: type[NameTranslator]) -> None:
    """Call a name translator with sample keys.

    Raises:
        TypeError: A result has the wrong type.
    """
    make: Any = plugin
    translator = make(cluster="vc", namespace="vc-ns")
    for resource, key in _SAMPLES:
        host_key = translator.to_host(resource, key)
        if not isinstance(host_key, Key):
            raise TypeError(f"to_host({resource}, {key}) gives {host_key!r}, not a Key")
        virtual = translator.to_virtual(resource, host_key)
        if virtual not in (None, key):
            result = f"gives {virtual!r}, not {key} or None"
            raise TypeError(f"to_virtual({resource}, {host_key}) {result}")

    namespaces = translator.host_namespaces()
    if namespaces is not None and not isinstance(namespaces, tuple):
        raise TypeError(f"host_namespaces() gives {namespaces!r}, not a tuple or None")


def _asked(plugin: Any, questions: dict[str, Callable[[], object]]) -> Iterator[Problem]:
    """Yield a problem for the first call that fails; the later calls need its result."""
    for what, ask in questions.items():
        try:
            ask()
        except Exception as raised:  # noqa: BLE001 — reported as a problem of the plugin
            cause = raised.__cause__ if isinstance(raised, PluginError) else None
            error = cause if isinstance(cause, Exception) else raised
            yield raised_by(plugin, error, f"{what}: {type(error).__name__}: {error}")
            return
