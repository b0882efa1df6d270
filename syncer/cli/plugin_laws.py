"""Run the laws of :mod:`syncer.testing.laws` for an installed syncer, with generated objects."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from syncer.api import FieldPath, PluginError, Problem, Syncer, path_steps
from syncer.directions import direction_class
from syncer.plugins import OURS, SYNCERS, FoundPlugin, raised_by

if TYPE_CHECKING:
    from syncer.api import Obj

#: Examples for each law.
EXAMPLES = 25
#: Longest extract of an object that broke a law, in characters.
_SHOWN = 400


def must_be_there() -> None:
    """Refuse to run without the packages that the laws need.

    Raises:
        PluginError: A package is not installed.
    """
    try:
        import hypothesis
    except ImportError:
        message = "needs hypothesis. Run `pip install 'vsyncer[testing]'`"
        raise PluginError("--laws", message) from None
    assert hypothesis


def can_be_tried(found: FoundPlugin) -> bool:
    """Return True for a syncer to the host that is not built in.

    Objects can be generated for such a syncer.
    """
    if found.group != SYNCERS or found.origin.package == OURS:
        return False
    return direction_class(found.plugin).goes_down


def broken_laws(found: FoundPlugin) -> Iterator[Problem]:
    """Yield the first law that a syncer breaks; others are usually broken for the same reason."""
    if not can_be_tried(found):
        return
    from hypothesis.errors import Unsatisfiable

    from syncer.testing.laws import laws_for

    plugin = found.plugin
    direction, _, name = plugin.section.partition(".")
    with _repeatable():
        config = {"sync": {direction: {name: {"enabled": True}}}}
        laws: Any = laws_for(plugin, objects=_objects(plugin), config=config, examples=EXAMPLES)
        for law in [law for law in vars(laws) if law.startswith("test_")]:
            try:
                getattr(laws(), law)()
            except Unsatisfiable:
                continue  # no generated object meets the law's precondition
            except Exception as error:  # noqa: BLE001 — the law is broken, or the plugin's code raised
                why = f"{type(error).__name__}: {error}{_trial(error)}"
                yield raised_by(plugin, error, f"breaks a law: {why}")
                return


@contextmanager
def _repeatable() -> Iterator[None]:
    """Make hypothesis run the same examples each time, and store no failed ones on disk."""
    from hypothesis import Phase, settings

    settings.register_profile("before", settings.default)
    quick = settings(derandomize=True, database=None, print_blob=False, phases=[Phase.generate])
    settings.register_profile("plugins check", quick)
    settings.load_profile("plugins check")
    try:
        yield
    finally:
        settings.load_profile("before")


def _objects(plugin: type[Syncer]) -> Any:
    """Return a strategy for objects of the syncer's resource.

    They have arbitrary values at its ``down`` paths.
    """
    from hypothesis import strategies as st

    from syncer.testing.strategies import LABEL_MAPS, TEXT, objects

    values = st.one_of(
        TEXT,
        st.integers(0, 9),
        st.booleans(),
        LABEL_MAPS,
        st.lists(TEXT, max_size=2),
    )
    anything = st.dictionaries(st.sampled_from(["a", "b", "size"]), values, max_size=3)

    def built(tree: "Obj") -> Any:
        if not tree:
            return anything
        return st.fixed_dictionaries({step: built(below) for step, below in tree.items()})

    return objects(plugin.resource, built(_tree(plugin.down or ("spec",))))


def _tree(paths: tuple[FieldPath, ...]) -> "Obj":
    """Return paths as nested mappings: ``a.b`` and ``a.c`` → ``{a: {b: {}, c: {}}}``."""
    tree: Obj = {}
    for path in paths:
        node = tree
        for step in path_steps(path):
            node = node.setdefault(step, {})
    return tree


def _trial(error: Exception) -> str:
    """Return the example that broke the law, as hypothesis notes it on the error."""
    for note in getattr(error, "__notes__", ()):
        match = re.search(r"trial=Trial\((.*)\)", note, re.DOTALL)
        if match is None:
            continue
        example = " ".join(match[1].split()).rstrip(",")
        if len(example) > _SHOWN:
            example = f"{example[:_SHOWN]}…"
        return f"; tried with {example}" if example else ""
    return ""
