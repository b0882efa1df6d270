"""What holds for every syncer, checked by hypothesis.

One import and one line a syncer::

    from syncer.testing import laws, strategies

    TestConfigMaps = laws.laws_for(ConfigMaps, objects=strategies.configmaps())

:data:`LAWS` are checked on each of many trials, in which things happen to the objects; the
``test_`` functions are laws that need trials of their own. The names say what holds; a failure
shows the function.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from syncer.api import (
    Key,
    NameTranslator,
    Obj,
    Side,
    Sync,
    Syncer,
    is_deleting,
    key_of,
    labels_of,
    uid_of,
)
from syncer.directions import direction_of
from syncer.names import SingleNamespace
from syncer.names.forms import form_of
from syncer.rights.rbac import allows
from syncer.rights.rbac import needed as rights_of
from syncer.testing.memory import Sent
from syncer.testing.strategies import LABELS, NAMES
from syncer.testing.trial import Event, Scene, Trial
from syncer.testing.unknown import MARKER, count, planted
from syncer.testing.world import World
from syncer.translate.merge_patch import merged

__all__ = ["Scene", "Trial", "laws_for"]

#: Worlds are slower to create than numbers, and some laws are only about some objects.
_UNCHECKED = (HealthCheck.too_slow, HealthCheck.filter_too_much)

_FOREIGN = {
    "metadata": {
        "labels": {"app": "changed"},
        "annotations": {"example.org/note": "by somebody else"},
    }
}

#: The events that may happen before a law is checked.
EVENTS: Mapping[str, Event] = {
    "somebody edits the copy": lambda trial: trial.change_copy(_FOREIGN),
    "the copy loses its contents": lambda trial: trial.change_copy(
        {"data": None, "immutable": None},
    ),
    "somebody deletes the copy": Trial.remove_copy,
    "the original is made again": Trial.remake_source,
    "the syncer is asked once": Trial.step_once,
    "the syncer is asked until it rests": Trial.settle,
}

#: Asserts a property of a trial; the law about host keys also takes two keys.
Law = Callable[..., None]

#: Pairs of keys, including those whose parts give the same text when joined by ``-x-``.
_PAIRS = st.one_of(
    st.tuples(st.builds(Key, LABELS, NAMES), st.builds(Key, LABELS, NAMES)),
    st.builds(lambda a, b, c: (Key(c, f"{a}-x-{b}"), Key(f"{b}-x-{c}", a)), LABELS, LABELS, LABELS),
)


def laws_for(
    syncer: type[Syncer] | Syncer,
    *,
    objects: st.SearchStrategy[Any],
    config: Mapping[str, Any] | None = None,
    translator: type[NameTranslator] = SingleNamespace,
    together: Iterable[type[Syncer]] = (),
    dropped: Iterable[str] = (),
    events: Mapping[str, Event] | None = None,
    examples: int = 50,
) -> type:
    """Return a class of tests for pytest.

    Args:
        syncer: The syncer.
        objects: A strategy for virtual objects of the syncer, or for a :class:`Scene` if others
            must exist too (a Secret needs a Pod that uses it), or if the objects begin on the host.
        config: The configuration, without the name translator.
        translator: The class of the name translator.
        together: Syncers that must be enabled as well.
        dropped: Dotted paths of fields that the copy leaves out on purpose.
        events: Further events that may happen to the objects unseen, by name.
        examples: The number of examples for each test.
    """
    made = syncer() if isinstance(syncer, type) else syncer
    world = partial(World, [made, *together], config=config, translator=translator)
    happen = {**EVENTS, **(events or {})}
    trials = st.builds(
        Trial,
        syncer=st.just(made),
        scene=objects.map(_scene),
        make=st.just(world),
        history=st.lists(st.sampled_from(sorted(happen)), max_size=4),
        events=st.just(happen),
        dropped=st.just(tuple(dropped)),
    )
    checked = [test_what_happens, test_squatters_are_left_alone, test_owners_stay_behind]
    direction = direction_of(made)
    if direction.by_host and (made.down or not direction.goes_down):
        checked.append(test_unknown_fields_are_kept)
    tests = {law.__name__: _test(made.name, law, {"trial": trials}, examples) for law in checked}
    if direction.goes_down:
        law = test_no_two_keys_share_a_host_key
        empty = st.builds(Trial, st.just(made), st.just(Scene(Key("", ""))), st.just(world))
        tests[law.__name__] = _test(made.name, law, {"trial": empty, "keys": _PAIRS}, examples)
    return type(f"LawsOf{made.name.title().replace('-', '')}", (), tests)


def test_what_happens(trial: Trial) -> None:
    """Whatever has happened, each law of :data:`LAWS` holds once the syncer is at rest."""
    trial.live()
    trial.settle()
    for law in LAWS:
        law(trial)


def it_is_at_rest(trial: Trial) -> None:
    """Check that nothing is left to write after a decision, even for a new process."""
    assert trial.step() == [], "when it is called again, something is left to write"
    assert trial.restart().step() == [], "after a restart, something is left to write"


def its_marks_lead_back(trial: Trial) -> None:
    """Check that the marks of a copy name the key that it is the copy of."""
    copied = trial.copied()
    known = trial.world.settings
    if copied is not None and direction_of(trial.syncer).goes_down:
        key = known.marks.virtual_key(copied)
        wanted = trial.scene.key
        assert key == wanted, f"the copy's marks lead back to {key}, not to {wanted}"
        ours = known.marks.is_ours(
            copied,
            cluster=known.identity,
            resource=trial.syncer.resource,
            made_for=direction_of(trial.syncer).made_for,
        )
        assert ours, "the copy doesn't bear the marks of a copy"


def copies_end_when_they_are_to(trial: Trial) -> None:
    """Check that a copy goes with the mark of its original's deletion, or stays until that is gone,
    as ``deletion`` of its syncer says.
    """
    direction = direction_of(trial.syncer)
    before = trial.copied()
    if not direction.remakes or before is None or trial.refused:
        return
    trial.mark_source()
    trial.settle()
    after = trial.copied()
    if direction.outlasts_mark:
        stays = after is not None and uid_of(after) == uid_of(before)
        assert stays, f"the copy is gone, and the original isn't: {trial.refused}"
    else:
        assert trial.refused or after is None or is_deleting(after), (
            "the original is being deleted, and the copy is not"
        )


def nothing_is_left_behind(trial: Trial) -> None:
    """Check that no copy is left when the original is gone, from any state."""
    syncer = trial.syncer
    trial.remove_source()
    trial.settle()
    if direction_of(syncer).comes_up and not isinstance(syncer, Sync):
        return  # its status stays as long as the virtual side keeps it
    assert trial.refused == "", f"it can't be cleaned up: {trial.refused}"
    assert trial.copies() == [], "the original is gone, and the copy is not"


def only_what_is_marked_is_touched(trial: Trial) -> None:
    """Check that no unmarked object is written or deleted, and none outside the namespaces of the
    virtual cluster.
    """
    for sent, before in trial.sent:
        assert _may(trial, sent, before), f"{sent}: the object is not ours"
        assert _inside(trial, sent), f"{sent}: the namespace is not one of this virtual cluster"
    for forbidden in ("without our mark", "may write to"):
        prevented = [refusal for refusal in trial.refusals if forbidden in refusal]
        assert not prevented, f"the flow had to prevent it: {prevented[0]}"


def no_more_rights_are_needed_than_generated(trial: Trial) -> None:
    """Check that every request is allowed by the rights that are generated for the syncer."""
    granted = rights_of([trial.syncer], settings=trial.world.settings)
    for sent, _ in trial.sent:
        is_allowed = allows(granted, sent.side, sent.resource, sent.verb, sent.subresource)
        assert is_allowed, f"no right to {sent}"


def names_fit(trial: Trial) -> None:
    """Check that an API server accepts the name of every object that is created."""
    for sent, _ in trial.sent:
        if sent.verb == "create" and not sent.subresource:
            fits = form_of(sent.resource).fits(sent.key.name)
            assert fits, f"{sent}: no name for a {sent.resource.kind}"


def nothing_of_ours_belongs_to_what_is_not(trial: Trial) -> None:
    """Check that each owner of a copy is a copy itself, or the copy's namespace; otherwise the
    garbage collector would delete the copy with its owner.
    """
    for side in Side:
        there = trial.objects(side)
        namespaces = {key_of(obj).name: uid_of(obj) for obj in there if obj["kind"] == "Namespace"}
        ours = [obj for obj in there if trial.marked(obj)]
        uids = {uid_of(obj) for obj in ours}
        for obj in ours if side is trial.copy_side() else ():
            owners = obj["metadata"].get("ownerReferences") or ()
            known = {*uids, namespaces.get(key_of(obj).namespace)}
            lost = [owner["name"] for owner in owners if owner["uid"] not in known]
            copy = f"{obj['kind']} {key_of(obj)}"
            assert not lost, f"{copy} would go with {lost[0]}, which is not ours"


def doing_nothing_has_a_reason(trial: Trial) -> None:
    """Check that a decision without writes has a reason."""
    assert all(trial.idle), "a decision that writes nothing gives no reason"


def inputs_are_not_changed(trial: Trial) -> None:
    """Check that the syncer doesn't change its arguments."""
    assert not trial.changed_inputs, "the syncer has changed what it was given"


#: The laws, in the order in which they are checked: the third and the fourth delete the original.
LAWS: tuple[Law, ...] = (
    it_is_at_rest,
    its_marks_lead_back,
    copies_end_when_they_are_to,
    nothing_is_left_behind,
    only_what_is_marked_is_touched,
    no_more_rights_are_needed_than_generated,
    names_fit,
    nothing_of_ours_belongs_to_what_is_not,
    doing_nothing_has_a_reason,
    inputs_are_not_changed,
)


def test_squatters_are_left_alone(trial: Trial) -> None:
    """Another's object at the copy's key is left alone, whether or not it bears our label."""
    trial.settle()
    copied = trial.copied()
    assume(copied is not None)
    assert copied is not None, "there is no copy"
    side = trial.copy_side()
    for labels in _labels_of_others(trial, copied):
        squatter = merged(
            copied,
            {"metadata": {"uid": "squatter", "labels": labels, "annotations": None}},
        )
        other = Trial(trial.syncer, trial.scene, trial.make)
        other.world.given(**{side.value: [squatter]})
        find = other.world.host if side is Side.HOST else other.world.virtual
        before = find(squatter["kind"], key_of(squatter))
        other.settle()
        after = find(squatter["kind"], key_of(squatter))
        assert after == before, "an object that is not ours was changed"


def test_owners_stay_behind(trial: Trial) -> None:
    """The owners of the original are not owners of the copy."""
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web-1",
        "uid": "owner-1",
        "controller": True,
    }
    for source in trial.sources():
        owned = merged(source, {"metadata": {"ownerReferences": [owner]}})
        trial.world.given(**{trial.source_side().value: [owned]})
    trial.settle()
    nothing_of_ours_belongs_to_what_is_not(trial)


def test_unknown_fields_are_kept(trial: Trial) -> None:
    """An unknown field is in the copy, unless its path is listed as dropped."""
    paths = trial.syncer.down if trial.source_side() is Side.VIRTUAL else None
    for source in trial.sources()[:1]:
        changed = planted(source, paths=paths, dropped=trial.dropped)
        trial.world.given(**{trial.source_side().value: [changed]})
    trial.settle()
    copied = trial.copied()
    assume(copied is not None)
    lost = f"a field {MARKER!r} was lost on the way"
    assert count(copied) >= sum(count(source) for source in trial.sources()), lost


def test_no_two_keys_share_a_host_key(trial: Trial, keys: tuple[Key, Key]) -> None:
    """No two keys have the same host key."""
    one, other = keys
    assume(one != other)
    known = trial.world.settings
    host_key = trial.syncer.host_key(known, one)
    other_host_key = trial.syncer.host_key(known, other)
    assert host_key != other_host_key, f"{one} and {other} share the host key {host_key}"


# -- checking --------------------------------------------------------------------------------------


def _test(name: str, law: Law, drawn: dict[str, st.SearchStrategy[Any]], examples: int) -> Any:
    def test(self: Any, **arguments: Any) -> None:
        law(**arguments)

    # Hypothesis stores failures under this name.
    test.__name__ = f"{law.__name__}_{name.replace('-', '_')}"
    test.__doc__ = law.__doc__
    checked = given(**drawn)(test)
    return settings(max_examples=examples, deadline=None, suppress_health_check=_UNCHECKED)(checked)


def _scene(found: Any) -> Scene:
    return found if isinstance(found, Scene) else Scene(key_of(found), (found,))


def _may(trial: Trial, sent: Sent, before: Obj | None) -> bool:
    """Return True if a request concerns our object: it bears the mark, or it is the tenant's own
    object of the key.
    """
    if sent.subresource == "token":
        return sent.side is Side.VIRTUAL
    if sent.verb == "create" and not sent.subresource:
        return trial.marked(sent.body)
    own = sent.side is Side.VIRTUAL and (sent.resource, sent.key) == (
        trial.syncer.resource,
        trial.scene.key,
    )
    return own or before is None or trial.marked(before)


def _inside(trial: Trial, sent: Sent) -> bool:
    if sent.side is Side.VIRTUAL or not sent.resource.namespaced:
        return True
    namespaces = direction_of(trial.syncer).own_namespaces(trial.world.settings)
    if namespaces is None:
        namespaces = trial.world.settings.names.host_namespaces()
    return namespaces is None or sent.key.namespace in namespaces


def _labels_of_others(trial: Trial, copied: Obj) -> list[dict[str, None]]:
    """Return label changes that make a copy someone else's.

    On the host, our label alone makes no object ours: a controller there may have copied it from a
    copy.
    """
    marks = trial.world.settings.marks
    unmarked: dict[str, None] = {key: None for key in labels_of(copied) if marks.is_mark(key)}
    return [unmarked, {}] if trial.copy_side() is Side.HOST else [unmarked]
