"""Cases written in YAML: the objects, the request, and the expected decision.

::

    syncer: configmaps                  # of all cases of the file, as config, translator and given
    config: {sync: {toHost: {configMaps: {all: true}}}}
    translator: single-namespace        # unless it is another one, as in names.translator
    given:
      virtual:
        - apiVersion: v1
          kind: ConfigMap
          metadata: {name: db, namespace: shop, uid: u-1}
          data: {color: blue}
    cases:
      - name: a ConfigMap is copied
        ask: shop/db
        expect:
          writes: [{verb: apply, side: host, contains: {data: {color: blue}}}]
      - name: in step, nothing is written
        ask: shop/db
        given: {inStep: true}
        expect: {calls: []}

A test of a plugin's own folder::

    @pytest.mark.parametrize("case", load("tests/cases"), ids=str)
    def test_case(case):
        case.check()

The object in a write is compared as a whole under ``object``, and only in the given fields under
``contains``, where null stands for a field that isn't there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Self

from pydantic import AwareDatetime, Field, ValidationError, field_validator, model_validator

from syncer.api import ConfigError, Decision, Key, Obj, Refused, Section, Syncer, Write
from syncer.api.reasons import StateReason
from syncer.config.document import Document, read
from syncer.config.problems import explained
from syncer.engine.controllers.failure_reasons import failure_reason
from syncer.plugins import installed
from syncer.testing.differences import differences
from syncer.testing.memory import Sent
from syncer.testing.world import NOON, World
from syncer.translate.merge_patch import merged

Objects = tuple[Obj, ...]


class Sides(Section):
    """The objects of both sides."""

    virtual: Objects = ()
    host: Objects = ()


class Given(Sides):
    """The objects that exist when the syncer is called."""

    in_step: bool = False
    """Settle first, so that the copy exists."""

    changed: Sides = Sides()
    """Merge patches, each with kind and metadata of the object that changes (after ``inStep``)."""

    gone: Sides = Sides()
    """Objects, by kind and metadata, that vanish (after ``inStep``)."""


class ExpectedWrite(Section):
    """An expected write of the decision."""

    verb: Literal["apply", "delete", "bind", "conditions", "merge", "revoke"]
    side: Literal["virtual", "host"]
    object: Obj | None = None
    contains: Obj | None = None
    node: str | None = None
    grace: int | None = None


class Expected(Section):
    """The expected decision; a part that isn't given is not compared."""

    writes: tuple[ExpectedWrite, ...] | None = None
    calls: tuple[str, ...] | None = None
    """The API calls, as ``verb side resource namespace/name``."""
    reason: str | None = None
    """A part of the reason."""
    code: str | None = None
    """The code of the reason, or of the refusal."""
    outcome: Literal["in_step", "skipped", "pending"] | None = None
    after: float | None = None
    refused: str | None = None
    """A part of the refusal; nothing else but its code is compared then."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("expects nothing, so it could never fail")
        return self


class CaseModel(Section):
    """A case in a file."""

    name: str = Field(min_length=1)
    ask: str = Field(min_length=1)
    host_key: str | None = None
    config: Obj = Field(default_factory=dict)
    given: Given = Given()
    now: AwareDatetime | None = None
    expect: Expected


class CaseFile(Section):
    """A file with cases for a syncer."""

    syncer: str
    config: Obj = Field(default_factory=dict)
    given: Given = Given()
    now: AwareDatetime = NOON
    translator: str = "single-namespace"
    """The name translator, as in ``names.translator``."""
    cases: tuple[CaseModel, ...]

    @field_validator("translator")
    @classmethod
    def _is_installed(cls, name: str) -> str:
        if name not in installed().known_translators():
            raise ValueError(f"expected one of {', '.join(installed().known_translators())}")
        return name

    @model_validator(mode="after")
    def _has_cases(self) -> Self:
        if not self.cases:
            raise ValueError("has no cases")
        return self


@dataclass(frozen=True, slots=True)
class Case:
    """A loaded case."""

    path: str
    line: int | None
    file: CaseFile
    model: CaseModel

    def __str__(self) -> str:
        return f"{Path(self.path).stem}: {self.model.name}"

    def world(self, syncers: Iterable[type[Syncer]] | None = None) -> World:
        """Return the world of the case before the syncer is called.

        ``syncers`` None takes all built-in ones.
        """
        now: datetime = self.model.now or self.file.now
        translator = installed().translator(self.file.translator)
        assert translator is not None, "was looked at when the file was read"
        config = merged(self.file.config, self.model.config)
        world = World(syncers, config=config, now=now, translator=translator)
        controllers = (self.file.given, self.model.given)
        for given in controllers:
            world.given(virtual=given.virtual, host=given.host)
        for given in controllers:
            if given.in_step:
                world.settle(self.file.syncer, self.model.ask, host_key=self.model.host_key)
        for given in controllers:
            _change(world, given)
        return world

    def check(self, syncers: Iterable[type[Syncer]] | None = None) -> None:
        """Check the case.

        Raises:
            AssertionError: The decision differs; the message says where.
        """
        problems = list(self._problems(self.world(syncers)))
        if problems:
            where = f"{self.path}:{self.line}: {self.model.name}"
            raise AssertionError("\n".join([where, *(f"  {problem}" for problem in problems)]))

    def _problems(self, world: World) -> Iterable[str]:
        expect = self.model.expect
        refused = ""
        code = ""
        calls = []
        decision = Decision()
        try:
            decision = world.decide(self.file.syncer, self.model.ask, host_key=self.model.host_key)
            calls = world.apply(decision)
            if isinstance(decision.reason, StateReason):
                code = decision.reason.code.name
        except Refused as error:
            refused = str(error)
            code = failure_reason(error, refused).code.name
        if expect.code is not None and expect.code != code:
            yield f"code: expected {expect.code}, found {code or 'none'}"
        if refused or expect.refused is not None:
            if not (refused and expect.refused and expect.refused in refused):
                yield f"refused: expected {expect.refused!r}, found {refused!r}"
            return
        yield from _compared(expect, decision)
        yield from _called(expect, calls)


def load(path: str | Path) -> list[Case]:
    """Return the cases in a file, or in all ``*.yaml`` files below a folder.

    Raises:
        ConfigError: A file is invalid, with every problem and its line; or a folder has no cases.
    """
    top = Path(path)
    files = sorted(top.rglob("*.yaml")) if top.is_dir() else [top]
    if not files:
        raise FileNotFoundError(f"there is no *.yaml file below {top}")
    return [case for file in files for case in _cases(read(str(file)))]


def _cases(document: Document) -> list[Case]:
    try:
        file = CaseFile.model_validate(document.data)
    except ValidationError as error:
        problems = explained(error, CaseFile, document.data, document.problem)
        raise ConfigError(
            *sorted((*document.problems, *problems), key=lambda one: one.line or 0),
        ) from None
    if document.problems:
        raise ConfigError(*document.problems)
    cases: list[Case] = []
    for index, model in enumerate(file.cases):
        line = document.line(("cases", index))
        cases.append(Case(document.file, line, file, model))
    return cases


def _change(world: World, given: Given) -> None:
    for side, objects in (("virtual", given.changed.virtual), ("host", given.changed.host)):
        find = world.virtual if side == "virtual" else world.host
        for patch in objects:
            metadata = patch["metadata"]
            found = find(patch["kind"], Key(metadata.get("namespace", ""), metadata["name"]))
            name = f"{side} {patch['kind']} {metadata['name']}"
            assert found is not None, f"there is no {name} that could change"
            world.given(**{side: [merged(found, patch)]})
    world.gone(virtual=given.gone.virtual, host=given.gone.host)


def _compared(expect: Expected, decision: Decision) -> Iterable[str]:
    if expect.outcome is not None and expect.outcome != decision.outcome.value:
        found = f"{decision.outcome.value} ({decision.reason})"
        yield f"outcome: expected {expect.outcome}, found {found}"
    if expect.reason is not None and expect.reason not in decision.reason:
        yield f"reason: expected {expect.reason!r} in {decision.reason!r}"
    if expect.after is not None and expect.after != decision.after:
        yield f"after: expected {expect.after}, found {decision.after}"
    if expect.writes is not None:
        yield from _written(expect.writes, decision.writes)


def _written(expected: Sequence[ExpectedWrite], found: Sequence[Write]) -> Iterable[str]:
    if len(expected) != len(found):
        kinds = ", ".join(f"{write.verb.value} {write.side.value}" for write in found) or "none"
        yield f"writes: expected {len(expected)}, found {len(found)}: {kinds}"
        return
    for index, (wanted, write) in enumerate(zip(expected, found, strict=True)):
        path = f"writes[{index}]"
        values = {
            "verb": (wanted.verb, write.verb.value),
            "side": (wanted.side, write.side.value),
            "node": (wanted.node, write.node),
            "grace": (wanted.grace, write.grace),
        }
        for name, (value, actual) in values.items():
            if name in wanted.model_fields_set and value != actual:
                yield f"{path}.{name}: expected {value}, found {actual}"
        if wanted.object is not None:
            yield from differences(wanted.object, write.obj, path, whole=True)
        if wanted.contains is not None:
            yield from differences(wanted.contains, write.obj, path, whole=False)


def _called(expect: Expected, calls: Sequence[Sent]) -> Iterable[str]:
    if expect.calls is not None and list(expect.calls) != (found := [str(call) for call in calls]):
        yield f"calls: expected {list(expect.calls)}, found {found}"
