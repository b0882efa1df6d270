"""create, update, patch, delete and deletecollection: from the request to the response."""

from collections.abc import Callable
from typing import Any

from kube_envtest.apiserver.bodies import identified, read_object
from kube_envtest.apiserver.convert import to_version
from kube_envtest.apiserver.deletion import DeleteOptions, Deleter, options_of
from kube_envtest.apiserver.errors import ApiError, bad_request, details
from kube_envtest.apiserver.objects import Objects
from kube_envtest.apiserver.patching import APPLY, applied, patch_kind, patched
from kube_envtest.apiserver.reads import Reader
from kube_envtest.apiserver.request import Call, Response, reply
from kube_envtest.apiserver.resources import ResourceType
from kube_envtest.apiserver.storage import Entry, Storage, decode, encode

Obj = dict[str, Any]

#: Checks that the caller may also do the verb; raises ``Forbidden``.
Permit = Callable[[Call, str], None]


class Writer:
    """Answers changing requests."""

    def __init__(self, storage: Storage, objects: Objects, deleter: Deleter, reader: Reader, permit: Permit) -> None:
        self._storage = storage
        self._objects = objects
        self._deleter = deleter
        self._reader = reader
        self._permit = permit

    def create(self, call: Call, now: float) -> Response:
        """Handle a POST to a collection."""
        obj = read_object(call.type, call.request.body, call.request.content_type)
        return self._reply(call, 201, self._objects.create(call, obj), now)

    def _reply(self, call: Call, status: int, entry: Entry, now: float) -> Response:
        headers = {}
        if call.warnings:
            warnings = [f"299 - {encode(text).decode()}" for text in call.warnings]
            headers["Warning"] = ", ".join(warnings)
        return Response(status, self._reader.view(call, now).one(entry), headers=headers)

    def update(self, call: Call, now: float) -> Response:
        """Handle a PUT of an object, or of its status."""
        obj = read_object(call.type, call.request.body, call.request.content_type)
        name = obj["metadata"].get("name") or ""
        if not name:
            raise bad_request("name must be provided")
        _same_name(call, name)
        found = self._storage.get(call.table, call.key)
        if found is None and call.type.create_on_update and not call.subresource:
            self._permit(call, "create")
            return self._reply(call, 201, self._objects.create(call, obj), now)
        entry = self._objects.update(call, self._objects.existing(call), obj)
        return self._reply(call, 200, entry, now)

    def patch(self, call: Call, now: float) -> Response:
        """Handle a PATCH of an object, or of its status."""
        form = patch_kind(call)
        if form == APPLY:
            return self._apply(call, now)
        entry = self._objects.existing(call)
        doc = patched(call, form, private(call.type, entry))
        doc = identified(call.type, doc)
        _same_name(call, doc["metadata"].get("name") or "")
        return self._reply(call, 200, self._objects.update(call, entry, doc), now)

    def _apply(self, call: Call, now: float) -> Response:
        entry = self._storage.get(call.table, call.key)
        live = None if entry is None else private(call.type, entry)
        content = applied(call, live)
        if entry is not None:
            return self._reply(call, 200, self._objects.update(call, entry, content, manage=False), now)
        if call.subresource:
            self._objects.existing(call)
        self._permit(call, "create")
        _refuse_uid(call, content)
        return self._reply(call, 201, self._objects.create(call, content, manage=False), now)

    def delete(self, call: Call, now: float) -> Response:
        """Handle a DELETE of an object."""
        options = options_of(call, now)
        entry = self._objects.existing(call)
        left, gone = self._deleter.delete(call.type, entry, options)
        if gone and not call.type.returns_deleted:
            return reply(200, _success(call.type, entry))
        status = 200
        if options.old_style and not gone:
            status = 202
        return self._reply(call, status, left, now)

    def delete_collection(self, call: Call, now: float) -> Response:
        """Handle a DELETE of all selected objects; the response is a list of them."""
        options = options_of(call, now)
        chosen = self._reader.matching(call)
        self.delete_all(call.type, chosen, options)
        metadata = {"resourceVersion": str(self._storage.revision)}
        return Response(200, self._reader.view(call, now).many(chosen, metadata))

    def delete_all(self, rt: ResourceType, entries: list[Entry], options: DeleteOptions) -> None:
        """Delete objects one by one, except those that are gone already."""
        for entry in entries:
            current = self._storage.get(rt.table_name, entry.key)
            if current is not None:
                self._deleter.delete(rt, current, options)


def private(rt: ResourceType, entry: Entry) -> Obj:
    """Return a copy of an object in the version of the path."""
    copied: Obj = decode(encode(to_version(rt, entry.obj)))
    return copied


def _same_name(call: Call, name: str) -> None:
    if name != call.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")


def _refuse_uid(call: Call, content: Obj) -> None:
    uid = content["metadata"].get("uid")
    if uid:
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        message = f'Operation cannot be fulfilled on {call.type.full_name} "{call.name}": {why}'
        raise ApiError(409, "Conflict", message, details(call.type, call.name))


def _success(rt: ResourceType, entry: Entry) -> Obj:
    meta = entry.obj["metadata"]
    about = {**details(rt, meta["name"]), "uid": meta["uid"]}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": about}
