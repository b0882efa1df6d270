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
ONE_DIRECTION = ("ConfigMap", "Secret")
#: A condition of a Pod that only a test reports.
CONDITION = "example.com/Reported"

ObjectId = tuple[str, Key]


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
        self.known: dict[ObjectId, Written] = {}
        self.doubts: set[ObjectId] = set()
        self.leaving: set[ObjectId] = set()
        self.complaints: list[str] = []
        self.done: Counter[str] = Counter()
        self._number = 0

    def object_id(self, edit: Edit) -> ObjectId:
        """Return the kind and the key of the object."""
        return edit.kind, Key(self._namespaces[edit.slot % len(self._namespaces)], f"o-{edit.slot}")

    def do(self, edit: Edit) -> None:
        """Edit; what gets no good answer leaves doubts."""
        object_id = self.object_id(edit)
        try:
            if self._is_sure(object_id):
                self._do(edit.verb, object_id)
                self.done[edit.verb] += 1
        except ClusterError:
            self.doubts.add(object_id)

    def may_go(self, object_id: ObjectId) -> None:
        """Take it that a Pod may go at any time, as its copy was deleted on the host; until there is another one."""
        if object_id[0] == "Pod":
            self.leaving.add(object_id)

    def missed(self) -> list[str]:
        """Return the objects that are no longer as the tenant left them."""
        sure = {
            object_id: known for object_id, known in self.known.items() if object_id not in self.doubts | self.leaving
        }
        return [line for object_id, known in sure.items() for line in self._of(object_id, known)]

    def leave(self) -> None:
        """Delete everything."""
        for kind in KINDS:
            for slot in range(SLOTS):
                self._drop(*self.object_id(Edit(Verb.DELETE, kind, slot)), grace=None)

    def _of(self, object_id: ObjectId, known: Written) -> list[str]:
        found = self._api.get(*object_id)
        if found is None:
            return [f"{_named(object_id)} of the tenant is gone"]
        there = Written.of(found)
        if (there.uid, there.number) != (known.uid, known.number):
            return [f"{_named(object_id)} of the tenant is {there} and was {known}"]
        if object_id[0] in ONE_DIRECTION and there.version != known.version:
            return [f"{_named(object_id)} of the tenant was written to by somebody else"]
        return []

    def _is_sure(self, object_id: ObjectId) -> bool:
        """Look at what is in doubt; a Pod that is ending stays so."""
        if object_id in self.doubts:
            found = self._api.get(*object_id)
            if found is not None and is_deleting(found):
                return False
            self.doubts.discard(object_id)
            self.known.pop(object_id, None)
            if found is not None:
                self.known[object_id] = Written.of(found)
        return True

    def _do(self, verb: Verb, object_id: ObjectId) -> None:
        match verb:
            case Verb.PUT:
                self._put(object_id)
            case Verb.DELETE:
                self._drop(*object_id, grace=None)
            case _:
                self._drop(*object_id, grace=0)
                self._put(object_id)

    def _put(self, object_id: ObjectId) -> None:
        self._number += 1
        write = self._change if object_id in self.known else self._make
        self.known[object_id] = Written.of(write(object_id))

    def _make(self, object_id: ObjectId) -> Obj:
        try:
            made = self._api.create(self._object(*object_id))
        except AlreadyExists:
            self.complaints.append(f"{_named(object_id)} is there, and the tenant has not made it")
            raise
        self.leaving.discard(object_id)
        return made

    def _change(self, object_id: ObjectId) -> Obj:
        kind, key = object_id
        made = self._object(kind, key)
        parts: Obj = {part: made[part] for part in ("data", "spec") if part in made and kind != "Pod"}
        gone = {f"only-{number}": None for number in range(3)}
        labels = {"metadata": {"labels": {**gone, **made["metadata"]["labels"]}}}
        try:
            return self._api.patch(kind, key, {**parts, **labels})
        except NotFound:
            self._complain_of_loss(object_id)
            raise

    def _drop(self, kind: str, key: Key, *, grace: int | None) -> None:
        try:
            self._api.delete(kind, key, grace=grace if kind == "Pod" else None)
        except NotFound:
            self._complain_of_loss((kind, key))
        self.known.pop((kind, key), None)
        if kind == "Pod" and grace is None:
            self.doubts.add((kind, key))

    def _complain_of_loss(self, object_id: ObjectId) -> None:
        if object_id in self.known and object_id not in self.doubts | self.leaving:
            self.complaints.append(f"{_named(object_id)} is gone, and the tenant has not deleted it")

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
        self._host_key: Callable[[str, Key], Key] = scene.host_key
        self.done: Counter[str] = Counter()
        self._number = 0

    def do(self, verb: Verb, object_id: ObjectId) -> None:
        """Do it, where there is a copy and the API server lets us."""
        self._number += 1
        kind, key = object_id[0], self._host_key(*object_id)
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


def _named(object_id: ObjectId) -> str:
    return f"{object_id[0]} {object_id[1]}"
