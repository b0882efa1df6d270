"""Editors of objects: the tenant, who remembers her own, and a user of the host."""

import base64
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from api import Api
from definitions import resource
from scene import Scene

from real_chaos.script import KINDS, SLOTS, Edit, Verb
from syncer.api import AlreadyExists, ClusterError, Key, NotFound, Obj, dig, is_deleting, labels_of, uid_of
from syncer.testing.objects import configmap, pod, secret, service

#: The kinds of which nothing flows back, so that only the tenant ever writes to a virtual object.
ONE_WAY = ("ConfigMap", "Secret")
#: A condition of a Pod that only a test reports.
CONDITION = "example.com/Reported"

Place = tuple[str, Key]


@dataclass(frozen=True, slots=True)
class Written:
    """The tenant's memory of an object."""

    uid: str
    version: str
    number: str

    @classmethod
    def of(cls, obj: Obj) -> "Written":
        """Read it from the reply to a write."""
        return cls(uid_of(obj), obj["metadata"]["resourceVersion"], labels_of(obj).get("number", ""))


class Tenant:
    """Edits virtual objects, and complains of whatever happens to them otherwise.

    ``known`` says what is there. A place in ``doubts`` may be or not, as a request got no answer, or a Pod is ending;
    one that is ``leaving`` may go without the tenant.
    """

    def __init__(self, scene: Scene, definition: Obj, namespaces: list[str]) -> None:
        self._api, self._definition, self._namespaces = scene.virtual, definition, namespaces
        self.known: dict[Place, Written] = {}
        self.doubts: set[Place] = set()
        self.leaving: set[Place] = set()
        self.complaints: list[str] = []
        self.done: Counter[str] = Counter()
        self._number = 0

    def place(self, edit: Edit) -> Place:
        """Return the kind and the key of the object."""
        return edit.kind, Key(self._namespaces[edit.slot % len(self._namespaces)], f"o-{edit.slot}")

    def do(self, edit: Edit) -> None:
        """Edit; what gets no good answer leaves doubts."""
        place = self.place(edit)
        try:
            if self._is_sure(place):
                self._do(edit.verb, place)
                self.done[edit.verb] += 1
        except ClusterError:
            self.doubts.add(place)

    def may_go(self, place: Place) -> None:
        """Take it that a Pod may go at any time, as its copy was deleted on the host; until there is another one."""
        if place[0] == "Pod":
            self.leaving.add(place)

    def missed(self) -> list[str]:
        """Return the objects that are no longer as the tenant left them."""
        sure = {place: known for place, known in self.known.items() if place not in self.doubts | self.leaving}
        return [line for place, known in sure.items() for line in self._of(place, known)]

    def leave(self) -> None:
        """Delete everything."""
        for kind in KINDS:
            for slot in range(SLOTS):
                self._drop(*self.place(Edit(Verb.DELETE, kind, slot)), grace=None)

    def _of(self, place: Place, known: Written) -> list[str]:
        found = self._api.get(*place)
        if found is None:
            return [f"{_named(place)} of the tenant is gone"]
        there = Written.of(found)
        if (there.uid, there.number) != (known.uid, known.number):
            return [f"{_named(place)} of the tenant is {there} and was {known}"]
        if place[0] in ONE_WAY and there.version != known.version:
            return [f"{_named(place)} of the tenant was written to by somebody else"]
        return []

    def _is_sure(self, place: Place) -> bool:
        """Look at what is in doubt; a Pod that is ending stays so."""
        if place in self.doubts:
            found = self._api.get(*place)
            if found is not None and is_deleting(found):
                return False
            self.doubts.discard(place)
            self.known.pop(place, None)
            if found is not None:
                self.known[place] = Written.of(found)
        return True

    def _do(self, verb: Verb, place: Place) -> None:
        match verb:
            case Verb.PUT:
                self._put(place)
            case Verb.DELETE:
                self._drop(*place, grace=None)
            case _:
                self._drop(*place, grace=0)
                self._put(place)

    def _put(self, place: Place) -> None:
        self._number += 1
        write = self._change if place in self.known else self._make
        self.known[place] = Written.of(write(place))

    def _make(self, place: Place) -> Obj:
        try:
            made = self._api.create(self._object(*place))
        except AlreadyExists:
            self.complaints.append(f"{_named(place)} is there, and the tenant has not made it")
            raise
        self.leaving.discard(place)
        return made

    def _change(self, place: Place) -> Obj:
        kind, key = place
        made = self._object(kind, key)
        parts: Obj = {part: made[part] for part in ("data", "spec") if part in made and kind != "Pod"}
        gone = {f"only-{number}": None for number in range(3)}
        labels = {"metadata": {"labels": {**gone, **made["metadata"]["labels"]}}}
        try:
            return self._api.patch(kind, key, {**parts, **labels})
        except NotFound:
            self._complain_of_loss(place)
            raise

    def _drop(self, kind: str, key: Key, *, grace: int | None) -> None:
        try:
            self._api.delete(kind, key, grace=grace if kind == "Pod" else None)
        except NotFound:
            self._complain_of_loss((kind, key))
        self.known.pop((kind, key), None)
        if kind == "Pod" and grace is None:
            self.doubts.add((kind, key))

    def _complain_of_loss(self, place: Place) -> None:
        if place in self.known and place not in self.doubts | self.leaving:
            self.complaints.append(f"{_named(place)} is gone, and the tenant has not deleted it")

    def _object(self, kind: str, key: Key) -> Obj:
        number = self._number
        metadata = {"labels": {"number": str(number), f"only-{number % 3}": "1"}}
        text = {"number": str(number), f"key-{number % 4}": f"value {number}"}
        parts: dict[str, Any] = {"namespace": key.namespace, "metadata": metadata}
        match kind:
            case "ConfigMap":
                return configmap(key.name, text, **parts)
            case "Secret":
                return secret(key.name, text, **parts)
            case "Service":
                return service(key.name, [80 + number % 5], **parts)
            case "Pod":
                return pod(key.name, spec={"terminationGracePeriodSeconds": 1}, **parts)
            case _:
                return resource(self._definition, key.name, spec={"size": number}, **parts)


class Stranger:
    """Changes, deletes and reports on copies on the host."""

    def __init__(self, scene: Scene) -> None:
        self._api: Api = scene.host
        self._place: Callable[[str, Key], Key] = scene.host_key
        self.done: Counter[str] = Counter()
        self._number = 0

    def do(self, verb: Verb, place: Place) -> None:
        """Do it, where there is a copy and the API server lets us."""
        self._number += 1
        kind, key = place[0], self._place(*place)
        try:
            self._do(verb, kind, key)
        except ClusterError:
            return
        self.done[verb] += 1

    def _do(self, verb: Verb, kind: str, key: Key) -> None:
        match verb, kind:
            case Verb.LOSE, _:
                self._api.delete(kind, key)
            case Verb.MEDDLE, _:
                self._api.patch(kind, key, self._meddled(kind))
            case Verb.REPORT, "Pod":
                self._api.patch(kind, key, {"status": self._condition()}, subresource="status", how="strategic")
            case Verb.REPORT, "Gadget":
                self._api.patch(kind, key, {"status": {"seen": self._number}}, subresource="status")

    def _meddled(self, kind: str) -> Obj:
        text = f"meddled {self._number}"
        match kind:
            case "ConfigMap":
                return {"data": {"number": text, "meddled": text}}
            case "Secret":
                return {"data": {"number": base64.b64encode(text.encode()).decode()}}
            case "Service":
                return {"spec": {"selector": {"app": f"meddled-{self._number}"}}}
            case "Pod":
                return {"metadata": {"labels": {"number": f"meddled-{self._number}"}}}
            case _:
                return {"spec": {"size": -self._number}}

    def _condition(self) -> Obj:
        return {"conditions": [{"type": CONDITION, "status": "True", "reason": f"N{self._number}"}]}


def reported(pod: Obj) -> str:
    """A report about a Pod, made by hand."""
    conditions = dig(pod, "status.conditions") or ()
    return next((each.get("reason", "") for each in conditions if each["type"] == CONDITION), "")


def _named(place: Place) -> str:
    return f"{place[0]} {place[1]}"
