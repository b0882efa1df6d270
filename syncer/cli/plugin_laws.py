"""Run the laws of :mod:`syncer.testing.laws` over an installed syncer, with objects that are made up for it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from syncer.api import FieldPath, PluginError, Problem, Syncer, path_steps
from syncer.directions import way_of
from syncer.plugins import OURS, SYNCERS, Found, raised_by

if TYPE_CHECKING:
    from syncer.api import Obj

#: Trials of each law.
EXAMPLES = 25
#: Characters of an object that broke a law; more are no help.
_SHOWN = 400


def must_be_there() -> None:
    """Raise PluginError if the packages that the laws need are not installed."""
    try:
        import hypothesis
    except ImportError:
        raise PluginError("--laws", "needs hypothesis. Run `pip install 'vsyncer[testing]'`") from None
    assert hypothesis


def can_be_tried(found: Found) -> bool:
    """Return True for a syncer that copies virtual objects and isn't built in: objects can be made up for it."""
    return found.group == SYNCERS and found.origin.package != OURS and way_of(found.plugin).goes_down


def broken_laws(found: Found) -> Iterator[Problem]:
    """Yield the first law that a plugin's syncer breaks: mostly it breaks others for the same reason."""
    if not can_be_tried(found):
        return
    from hypothesis.errors import Unsatisfiable

    from syncer.testing.laws import laws_for

    plugin, (direction, _, name) = found.plugin, found.plugin.section.partition(".")
    with _repeatable():
        on = {"sync": {direction: {name: {"enabled": True}}}}
        laws: Any = laws_for(plugin, objects=_objects(plugin), config=on, examples=EXAMPLES)
        for law in [law for law in vars(laws) if law.startswith("test_")]:
            try:
                getattr(laws(), law)()
            except Unsatisfiable:
                continue  # none of the objects brings it about
            except Exception as error:  # noqa: BLE001 — it says that the law is broken, or comes from the plugin's code
                yield raised_by(plugin, error, f"breaks a law: {type(error).__name__}: {error}{_trial(error)}")
                return


@contextmanager
def _repeatable() -> Iterator[None]:
    """Let hypothesis make the same trials each time, and no folder for those that failed."""
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
    """Return a strategy for objects of the syncer's resource, with any values at its ``down`` paths."""
    from hypothesis import strategies as st

    from syncer.testing.strategies import LABEL_MAPS, TEXT, objects

    values = st.one_of(TEXT, st.integers(0, 9), st.booleans(), LABEL_MAPS, st.lists(TEXT, max_size=2))
    anything = st.dictionaries(st.sampled_from(["a", "b", "size"]), values, max_size=3)

    def built(tree: "Obj") -> Any:
        return st.fixed_dictionaries({step: built(below) for step, below in tree.items()}) if tree else anything

    return objects(plugin.resource, built(_tree(plugin.down or ("spec",))))


def _tree(paths: tuple[FieldPath, ...]) -> "Obj":
    """Return paths as nested mappings: ``a.b`` and ``a.c`` → ``{a: {b: {}, c: {}}}``."""
    tree: Obj = {}
    for path in paths:
        place = tree
        for step in path_steps(path):
            place = place.setdefault(step, {})
    return tree


def _trial(error: Exception) -> str:
    """Return the trial that broke the law, as hypothesis notes it on the error."""
    notes = (re.search(r"trial=Trial\((.*)\)", note, re.DOTALL) for note in getattr(error, "__notes__", ()))
    said = next((" ".join(note[1].split()).rstrip(",") for note in notes if note), "")
    return f"; tried with {said if len(said) <= _SHOWN else said[:_SHOWN] + '…'}" if said else ""
