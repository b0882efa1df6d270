"""Two values are equal only as JSON values, and a copy is a function of its original, not of its history."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from kube_envtest import virtual_time
from syncer.api import Config, Key, Mirror, Obj, Resource, Settings, Side, SyncRequest
from syncer.api.decision import Warned
from syncer.clusters.client import SideClient
from syncer.engine.controllers.builder import build_pair
from syncer.engine.reconcile.plan import PlannedWrite, PostponedFields, ServerAnswer
from syncer.names import SingleNamespace
from syncer.testing import ApiServer
from syncer.testing.objects import crd, namespace
from syncer.translate.alike import covers, same
from syncer.translate.three_way import digest
from syncer.workqueue.queue import Queue

WIDGETS = Resource("example.org/v1", "Widget", "widgets")
SETTINGS = Settings("vc", "vc-ns", SingleNamespace(cluster="vc", namespace="vc-ns"))
KEY = Key("shop", "x")

#: Values that Python, YAML or a parser of quantities could take for one another.
_SCALARS = st.one_of(
    st.sampled_from([None, True, False, 0, 1, 3, 0.0, 1.0, 1.5, 10**16, 1e16]),
    st.sampled_from(["", "0", "1", "1.0", "01", "3", "+3", "true", "null", "1000m", "1Gi", "1024Mi", "0e9"]),
)
_NAMES = st.sampled_from(["a", "b", "c.d/e~1"])
VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_NAMES, inner, max_size=3)),
    max_leaves=10,
)
SPECS = st.dictionaries(_NAMES, VALUES, max_size=3)


@st.composite
def changed(draw: st.DrawFn, value: Any) -> Any:
    """Draw a value that is like another one in most parts, in another order, with more fields and some other ones."""
    if draw(st.integers(0, 9)) == 0:
        return draw(VALUES)
    if isinstance(value, dict):
        kept = {name: draw(changed(value[name])) for name in reversed(value) if draw(st.integers(0, 9))}
        return kept | (draw(SPECS) if draw(st.integers(0, 3)) == 0 else {})
    if isinstance(value, list):
        return [draw(changed(item)) for item in value]
    if isinstance(value, int | float) and draw(st.booleans()):
        return draw(st.sampled_from([float(value), str(value), bool(value)]))
    return value


PAIRS = VALUES.flatmap(lambda value: st.tuples(st.just(value), changed(value)))


# -- equality --------------------------------------------------------------------------------------


def leaves(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the leaves of a JSON value as their canonical texts (RFC 8785), and each map and list, with their paths."""
    if isinstance(value, dict):
        yield at, "{}"
        for name, below in value.items():
            yield from leaves(below, (*at, name))
    elif isinstance(value, list):
        yield at, f"[{len(value)}]"
        for number, item in enumerate(value):
            yield from leaves(item, (*at, number))
    else:
        is_whole = isinstance(value, float) and value.is_integer()
        yield at, json.dumps(int(value) if is_whole else value)


@given(PAIRS)
def test_values_are_the_same_if_all_their_leaves_are(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert same(one, other) == (dict(leaves(one)) == dict(leaves(other))) == same(other, one)
    assert same(one, json.loads(json.dumps(one)))


@given(PAIRS)
def test_values_have_the_same_digest_if_they_are_the_same(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert (digest([one]) == digest([other])) == same(one, other)


@example(([{"a": None, "b": 1}], [{"b": 1}]))
@given(PAIRS)
def test_custom_resource_has_all_that_is_wanted_if_it_has_all_leaves(pair: tuple[Any, Any]) -> None:
    want, live = pair
    assert covers(want, live, verbatim=True) == (dict(leaves(want)).items() <= dict(leaves(live)).items())


@given(PAIRS)
def test_built_in_object_covers_all_leaves_but_null_and_empty_lists(
    pair: tuple[Any, Any],
) -> None:
    want, live = pair
    there = dict(leaves(live))

    def lacks(at: tuple[str | int, ...], text: str) -> bool:
        says_nothing = text == "null" and at and isinstance(at[-1], str)
        is_missing = text == "[0]" and there.get(at, "null") == "null"
        return there.get(at) != text and not says_nothing and not is_missing

    assert covers(want, live) == (not any(lacks(at, text) for at, text in leaves(want)))


# -- no history ------------------------------------------------------------------------------------


class Widgets(Mirror[Config]):
    """Objects of any shape."""

    name = "widgets"
    resource = WIDGETS
    down = ("spec",)


class Copies:
    """The copies of a virtual object in an API server, made by the daemon's own calls."""

    def __init__(self) -> None:
        self.host, virtual = ApiServer(seed="host"), ApiServer(seed="virtual")
        self.host.put(namespace("vc-ns"))
        self.host.put(crd("widgets.example.org"))
        self.wrote_nothing = 0
        self.pair = build_pair(
            SETTINGS,
            [(Widgets(), Config())],
            virtual=SideClient("vc", Side.VIRTUAL, virtual.transport()),
            host=SideClient("host", Side.HOST, self.host.transport()),
            queue=Queue(clock=lambda: 0.0),
            clock=lambda: 0.0,
            utcnow=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            has_status=lambda side, resource: True,
        )

    def answered(self, planned: PlannedWrite, answer: ServerAnswer) -> None:
        if not answer.changed:
            self.wrote_nothing += 1

    def replaced(self) -> None:
        raise AssertionError("a write was refused")

    def postponed(self, postponed: PostponedFields) -> None:
        raise AssertionError(postponed.reason)

    def refused(self, postponed: PostponedFields, error: Exception) -> None:
        raise error

    def warned(self, warning: Warned) -> None:
        raise AssertionError(warning)

    async def made_of(self, specs: Sequence[Obj]) -> tuple[Obj, str | None]:
        """Return the spec of the copy, and the names of our fields, after the original had one spec after another."""
        for version, spec in enumerate(specs, 1):
            metadata = {"name": KEY.name, "namespace": KEY.namespace, "uid": "u1", "resourceVersion": str(version)}
            virtual = {"apiVersion": WIDGETS.api_version, "kind": WIDGETS.kind, "metadata": metadata, "spec": spec}
            self.pair.informers.store(Side.VIRTUAL, WIDGETS).seen_live(virtual)
            request = SyncRequest(self.pair.name, Widgets.name, KEY)
            await self.pair.applier.apply(self.pair.plan(request), self)
            assert self.pair.plan(request).calls == [], "it is in step at once"
            assert not self.wrote_nothing
        [copy] = self.host.objects("widgets.example.org")
        return copy["spec"], copy["metadata"]["annotations"].get(SETTINGS.marks.fields)


@given(SPECS.flatmap(lambda first: st.tuples(st.just(first), changed(first), changed(first))))
def test_copy_after_changes_is_the_copy_that_is_made_of_the_last_state(specs: tuple[Any, ...]) -> None:
    history = [spec if isinstance(spec, dict) else {"a": spec} for spec in specs]

    async def main() -> None:
        spec, names = await Copies().made_of(history)
        fresh, fresh_names = await Copies().made_of(history[-1:])
        assert same(fresh, history[-1])
        assert dict(leaves(spec)) == dict(leaves(fresh))
        assert names == fresh_names

    virtual_time.run(main())
