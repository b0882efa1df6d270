"""Check plugins without a cluster: each keeps the contract, and its code answers what it is asked."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from syncer.api import Key, NameTranslator, PluginError, Problem, Resource, Syncer
from syncer.api.contract import deprecations
from syncer.config import SyncerConfig, VirtualCluster, config_with
from syncer.config.render import schema
from syncer.names import SingleNamespace
from syncer.plugins import OURS, SYNCERS, Found, Installed, clashes, raised_by
from syncer.rbac import manifests, needed

#: A virtual cluster as it would be configured.
TRIAL = {"cluster": "vc", "host": {"namespace": "vc-ns"}}
_SAMPLES = (
    (Resource("v1", "Pod", "pods"), Key("shop", "web")),
    (Resource("v1", "Node", "nodes", namespaced=False), Key("", "n1")),
)


def checked(plugins: Installed, names: Sequence[str], more: Callable[[Found], Iterable[Problem]]) -> list[Found]:
    """Return the plugins of these names with all their problems; ``more`` looks further at sound syncers."""
    found = list(plugins.found(names))
    with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):  # :func:`note` has them
        return [each if each.problems else each._replace(problems=tuple(_problems(each, more))) for each in found]


def note(found: Found, plugins: Installed) -> str:
    """Return what to do before a sound plugin can be used beside the built-in syncers, or for long; or ``""``."""
    if found.group != SYNCERS or found.problems or found.origin.package == OURS:
        return ""
    if deprecated := deprecations(found.plugin):
        return deprecated[0]
    on = [syncer for syncer in plugins.built_in if syncer.config().enabled]
    others = [(what, other) for syncer, other, what in clashes([*on, found.plugin]) if syncer is found.plugin]
    return next((f"{what} {other.name}: set sync.{other.section}.enabled to false" for what, other in others), "")


def _problems(found: Found, more: Callable[[Found], Iterable[Problem]]) -> Iterator[Problem]:
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
    """Ask a name translator for some names. Raises TypeError for an answer of a wrong type."""
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
    """Yield a problem for the first question that a plugin's code can't answer; the others need that answer, too."""
    for what, ask in questions.items():
        try:
            ask()
        except Exception as raised:  # noqa: BLE001 — whatever a plugin's code raises is its problem, and named as such
            cause = raised.__cause__ if isinstance(raised, PluginError) else None
            error = cause if isinstance(cause, Exception) else raised
            yield raised_by(plugin, error, f"{what}: {type(error).__name__}: {error}")
            return
