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
    found = list(plugins.found(names))
    return [each if each.problems else each._replace(problems=tuple(_problems(each, more))) for each in found]


def note(found: FoundPlugin, plugins: Installed) -> str:
    """Return a note about using a sound plugin beside the built-in syncers; ``""`` if there is none."""
    if found.group != SYNCERS or found.problems or found.origin.package == OURS:
        return ""
    on = [syncer for syncer in plugins.built_in if syncer.config().enabled]
    others = [(what, other) for syncer, other, what in clashes([*on, found.plugin]) if syncer is found.plugin]
    return next((f"{what} {other.name}: set sync.{other.section}.enabled to false" for what, other in others), "")


def _problems(found: FoundPlugin, more: Callable[[FoundPlugin], Iterable[Problem]]) -> Iterator[Problem]:
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
    return _model(plugin).model_validate({**TRIAL, "sync": {direction: {name: {"enabled": True}}}}).cluster()


def _rights(plugin: type[Syncer]) -> object:
    cluster = _cluster(plugin)
    rights = needed([plugin()], settings=cluster.settings())
    return manifests(rights, cluster=cluster.name, home=cluster.host_namespace, host_namespaces=None)


def _translate(plugin: type[NameTranslator]) -> None:
    """Call a name translator with sample keys.

    Raises:
        TypeError: A result has the wrong type.
    """
    made: Any = plugin(cluster="vc", namespace="vc-ns")  # type: ignore[call-arg]
    for resource, key in _SAMPLES:
        place = made.to_host(resource, key)
        if not isinstance(place, Key):
            raise TypeError(f"to_host({resource}, {key}) gives {place!r}, not a Key")
        back = made.to_virtual(resource, place)
        if back not in (None, key):
            raise TypeError(f"to_virtual({resource}, {place}) gives {back!r}, not {key} or None")
    namespaces = made.host_namespaces()
    if namespaces is not None and not isinstance(namespaces, tuple):
        raise TypeError(f"host_namespaces() gives {namespaces!r}, not a tuple or None")


def _asked(plugin: Any, questions: dict[str, Callable[[], object]]) -> Iterator[Problem]:
    """Yield a problem for the first call that fails; the later calls need its result."""
    for what, ask in questions.items():
        try:
            ask()
        except Exception as raised:  # noqa: BLE001 — whatever a plugin's code raises is its problem, and named as such
            cause = raised.__cause__ if isinstance(raised, PluginError) else None
            error = cause if isinstance(cause, Exception) else raised
            yield raised_by(plugin, error, f"{what}: {type(error).__name__}: {error}")
            return
