"""A transport that reads from an API server, and records each write instead of sending it."""

import itertools
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from syncer.api.objects import Key, Obj, is_deleting
from syncer.clusters import codec
from syncer.clusters.api_requests import DRY_RUN, PATCH_TYPES
from syncer.clusters.paths import Target
from syncer.clusters.transport import HttpRequest, HttpResponse, Stream, Transport
from syncer.translate.alike import same
from syncer.translate.merge_patch import merged
from syncer.translate.pointers import Unfit, patched
from syncer.translate.times import written

#: The first made-up resourceVersion: later than any real one, so that a response counts as new.
LATEST = 10**18
#: The prefix of made-up uids and tokens.
MADE_UP = "dry-run"
#: Default lifetime of a token, in seconds.
TOKEN_SECONDS = 3600

#: API groups of reviews: they are answered, not stored.
_QUESTIONS = ("authorization.k8s.io", "authentication.k8s.io")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class UnsentWrite:
    """A write that was not sent: its RBAC verb and its target.

    ``content`` is the object, the patch or the delete options; ``before`` and ``after`` are the
    object before and after the write, None if there is none.
    """

    verb: str
    target: Target
    content: Any
    before: Obj | None = None
    after: Obj | None = None

    def __str__(self) -> str:
        return f"{self.verb} {self.target}"


class DryRun:
    """Sends reads, and records every write in :attr:`writes`, in order, without sending it.

    A write returns the object as it would be afterwards, with a made-up uid and resourceVersion,
    and a later ``GET`` returns it; lists and watches show the real state. A write is refused if the
    object exists, doesn't exist, or is another one; other refusals of the server are unknown here.
    Values that the server sets (defaults, allocated addresses) are missing.
    """

    def __init__(self, transport: Transport) -> None:
        self.writes: list[UnsentWrite] = []
        self._transport = transport
        #: The objects as they would be, by path; None if an object would be deleted.
        self._would_be: dict[str, Obj | None] = {}
        self._numbers = itertools.count(1)

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a read; answer a write as if it had been made."""
        target = Target.of(request.path)
        if request.method == "GET":
            if target is not None and target.path in self._would_be:
                return await self._live(target, request)
            return await self._transport.send(request)
        if target is None:
            message = "a dry run sends no write, and the path of this one names no resource"
            return _status(405, "MethodNotAllowed", message)
        stores_nothing = target.group in _QUESTIONS or request.path.endswith(DRY_RUN)
        if request.method == "POST" and stores_nothing:
            return await self._transport.send(request)

        try:
            content = codec.decode(request.body or b"{}")
        except codec.DecodeError:
            return _status(415, "UnsupportedMediaType", "a dry run reads JSON only")
        match request.method:
            case "POST":
                return await self._create(target, content, request)
            case "DELETE":
                return await self._delete(target, content, request)
            case _:
                return await self._change(target, content, request)

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[Stream]:
        """Watch the real state."""
        return self._transport.stream(request)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def _create(self, target: Target, content: Obj, request: HttpRequest) -> HttpResponse:
        if target.subresource:
            self._record(request, target, content, None, content)
            if target.subresource == "token":
                content = _with_token(content)
            return _response(201, content)

        metadata = content.get("metadata") or {}
        name = metadata.get("name") or f"{metadata.get('generateName', '')}{self._made_up()}"
        named = replace(target, key=Key(target.key.namespace, name))
        live = await self._live(named, request)
        if live.status == 200:
            return _status(409, "AlreadyExists", f"{named} already exists", named)
        if live.status != 404:
            return live

        self._record(request, named, content, None, content)
        created = {**content, "metadata": {**metadata, "name": name, "uid": self._made_up()}}
        return self._keep(named, created, 201)

    async def _change(self, target: Target, content: Any, request: HttpRequest) -> HttpResponse:
        """Answer a PUT or PATCH; a patch that changes nothing keeps the version."""
        live = await self._live(target, request)
        if live.status == 404 and request.content_type == PATCH_TYPES["apply"]:
            return await self._create(replace(target, subresource=""), content, request)
        if live.status != 200:
            return live

        before = codec.decode(live.body)
        expected: Obj = {}
        if isinstance(content, dict):
            expected = content.get("metadata") or {}
        if _is_other(before, expected):
            return _conflict(target)

        if request.method == "PUT":
            changed = _put(before, content, target)
            self._record(request, target, content, before, changed)
            return self._keep(target, changed)
        try:
            changed = _patched_by(before, content, request)
        except Unfit as error:
            self._record(request, target, content, before, before)
            message = f"the JSON patch of {target} can't be applied: {error}"
            return _status(422, "Invalid", message, target)
        self._record(request, target, content, before, changed)
        if same(changed, before):
            return live
        return self._keep(target, changed)

    async def _delete(self, target: Target, options: Obj, request: HttpRequest) -> HttpResponse:
        """Answer a DELETE; an object with finalizers is only marked, others are deleted."""
        if not target.key.name:
            self.writes.append(UnsentWrite("deletecollection", target, options))
            return _status(200, "", "")
        live = await self._live(target, request)
        if live.status != 200:
            return live

        obj = codec.decode(live.body)
        if _is_other(obj, options.get("preconditions") or {}):
            return _conflict(target)

        self._record(request, target, options, obj, None)
        metadata = obj["metadata"]
        if not metadata.get("finalizers"):
            self._would_be[target.path] = None
            return _status(200, "", "")
        if not is_deleting(obj):
            metadata["deletionTimestamp"] = written(datetime.now(UTC))
            metadata["deletionGracePeriodSeconds"] = 0
        return self._keep(target, obj)

    async def _live(self, target: Target, request: HttpRequest) -> HttpResponse:
        """Return the object as it is, or as it would be after the writes so far."""
        if target.path not in self._would_be:
            read = HttpRequest("GET", target.path, timeout=request.timeout)
            return await self._transport.send(read)
        obj = self._would_be[target.path]
        if obj is None:
            return _status(404, "NotFound", f"{target} would be deleted", target)
        return _response(200, obj)

    def _keep(self, target: Target, obj: Obj, status: int = 200) -> HttpResponse:
        """Remember an object as it would be, with a new version, and return it as the response."""
        version = str(LATEST + next(self._numbers))
        kept = {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}}
        self._would_be[target.path] = kept
        return _response(status, kept)

    def _made_up(self) -> str:
        return f"{MADE_UP}-{next(self._numbers)}"

    def _record(
        self,
        request: HttpRequest,
        target: Target,
        content: Any,
        before: Obj | None,
        after: Obj | None,
    ) -> None:
        write = UnsentWrite(_VERBS[request.method], target, content, before, after)
        self.writes.append(write)


def _response(status: int, obj: Obj) -> HttpResponse:
    return HttpResponse(status, {"content-type": "application/json"}, codec.encode(obj))


def _status(code: int, reason: str, message: str, target: Target | None = None) -> HttpResponse:
    """Return a ``Status`` object: a refusal with a reason, a success without one."""
    status: Obj = {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Success",
        "code": code,
    }
    if reason:
        status["status"] = "Failure"
        status["reason"] = reason
        status["message"] = message
        status["details"] = {}
        if target is not None:
            status["details"] = {
                "name": target.key.name,
                "group": target.group,
                "kind": target.plural,
            }
    return _response(code, status)


def _conflict(target: Target) -> HttpResponse:
    message = f"the uid or resourceVersion of {target} is not the one in the request"
    return _status(409, "Conflict", message, target)


def _is_other(live: Obj, expected: Obj) -> bool:
    """Return True if a write names another uid or version than the live object's."""
    for name in ("uid", "resourceVersion"):
        if expected.get(name) and expected[name] != live["metadata"].get(name):
            return True
    return False


def _with_token(request: Obj) -> Obj:
    """Return a TokenRequest with a token that no API server accepts."""
    seconds = (request.get("spec") or {}).get("expirationSeconds") or TOKEN_SECONDS
    ends = written(datetime.now(UTC) + timedelta(seconds=seconds))
    return {**request, "status": {"token": MADE_UP, "expirationTimestamp": ends}}


def _put(live: Obj, content: Obj, target: Target) -> Obj:
    changed = content
    if target.subresource:
        changed = {**live, target.subresource: content.get(target.subresource)}
    return {**changed, "metadata": {**live["metadata"], **(changed.get("metadata") or {})}}


def _patched_by(live: Obj, patch: Any, request: HttpRequest) -> Obj:
    if request.content_type == PATCH_TYPES["json"]:
        return patched(live, patch)
    return merged(live, patch, by_key=request.content_type == PATCH_TYPES["strategic"])
