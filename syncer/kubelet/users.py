"""Authenticates and authorizes clients by reviews of the virtual API server, as a kubelet does.

See kubernetes.io, "Kubelet authentication/authorization".
"""

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cachetools import TTLCache

from syncer.api.errors import ClusterError
from syncer.api.objects import Obj, Resource
from syncer.clusters.client import SideClient
from syncer.kubelet.errors import RefusedRequest
from syncer.resources.kinds import ACCESS_REVIEWS, TOKEN_REVIEWS

#: Seconds for which an answer of the virtual API server is valid. A kubelet keeps it for up to five
#: minutes.
KEPT_SECONDS = 10.0
#: Most answers that are kept.
MOST_KEPT = 1024
#: Most reviews that are requested at a time: the syncers use the connections to the virtual API
#: server, too.
MOST_ASKED = 8
#: Most reviews that wait: each unknown token takes one.
MOST_WAITING = 256
#: The group of all users with a name; it isn't in a certificate.
AUTHENTICATED = "system:authenticated"

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class User:
    """A user of the virtual cluster."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Users:
    """Asks the virtual API server about clients, and remembers the answers for a moment."""

    def __init__(self, virtual: SideClient) -> None:
        self._virtual = virtual
        clock = asyncio.get_running_loop().time
        self._users: TTLCache[bytes, asyncio.Task[User | None]] = TTLCache(
            MOST_KEPT,
            KEPT_SECONDS,
            clock,
        )
        self._allowed: TTLCache[tuple[Any, ...], asyncio.Task[bool]] = TTLCache(
            MOST_KEPT,
            KEPT_SECONDS,
            clock,
        )
        self._asking = asyncio.Semaphore(MOST_ASKED)
        self._waiting = 0

    async def user(self, certificate: Mapping[str, Any] | None, authorization: str) -> User:
        """Return the user of a verified certificate, else of a bearer token.

        ``authorization`` is the header of this name.

        Raises:
            RefusedRequest: There is neither, or the token isn't valid.
        """
        user = None
        if certificate:
            user = of_certificate(certificate)
        if user is None:
            scheme, _, token = authorization.partition(" ")
            token = token.strip()
            if scheme.lower() == "bearer" and token:
                key = hashlib.sha256(token.encode()).digest()
                user = await _once(self._users, key, lambda: self._review_token(token))
        if user is None:
            raise RefusedRequest(401, "Unauthorized")
        return user

    async def authorize(
        self,
        user: User,
        verb: str,
        node: str,
        subresources: Sequence[str],
    ) -> None:
        """Check that a user may access one of these subresources of a node.

        Raises:
            RefusedRequest: The user may access none of them.
        """
        for subresource in subresources:
            allowed = await self.may(
                user,
                verb=verb,
                version="v1",
                resource="nodes",
                subresource=subresource,
                name=node,
            )
            if allowed:
                return
        what = f"user={user.name}, verb={verb}, resource=nodes, subresource(s)={list(subresources)}"
        raise RefusedRequest(403, f"Forbidden ({what})")

    async def _review_token(self, token: str) -> User | None:
        """Return the user of a token; None if the token isn't valid."""
        status = await self._review(TOKEN_REVIEWS, {"token": token})
        if status.get("authenticated") is not True:
            return None
        return _of_review(status.get("user"))

    async def may(self, user: User, **attributes: str) -> bool:
        """Return True if a user may send a request with these ``resourceAttributes``.

        Raises:
            RefusedRequest: The virtual API server gives no answer.
        """
        extra = tuple(sorted((name, tuple(values)) for name, values in user.extra.items()))
        key = (user.name, user.uid, user.groups, extra, *attributes.items())
        return await _once(self._allowed, key, lambda: self._review_access(user, attributes))

    async def _review_access(self, user: User, attributes: Obj) -> bool:
        spec: Obj = {
            "user": user.name,
            "groups": list(user.groups),
            "resourceAttributes": attributes,
        }
        if user.uid:
            spec["uid"] = user.uid
        if user.extra:
            spec["extra"] = {name: list(values) for name, values in user.extra.items()}
        status = await self._review(ACCESS_REVIEWS, spec)
        return status.get("allowed") is True

    async def _review(self, resource: Resource, spec: Obj) -> Obj:
        """Create a review, and return its status.

        Raises:
            RefusedRequest: Too many reviews wait, or the virtual API server gives no answer.
        """
        if self._waiting >= MOST_WAITING:
            raise RefusedRequest(503, "too many clients are being authenticated; try again later")
        self._waiting += 1
        try:
            async with self._asking:
                review = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
                reviewed = await self._virtual.create(resource, review)
        except ClusterError as error:
            raise RefusedRequest(
                500,
                f"the API server did not review this request: {type(error).__name__}",
            ) from error
        finally:
            self._waiting -= 1

        status = reviewed.get("status")
        if not isinstance(status, dict):
            return {}
        return status


async def _once(
    kept: MutableMapping[K, asyncio.Task[V]],
    key: K,
    ask: Callable[[], Coroutine[Any, Any, V]],
) -> V:
    """Return the kept answer to a question, or ask it.

    Callers with the same question share one answer. An error isn't kept.
    """

    def forget_failure(done: asyncio.Task[V]) -> None:
        if done.cancelled() or done.exception():
            kept.pop(key, None)

    task = kept.get(key)
    if task is None:
        task = asyncio.create_task(ask())
        kept[key] = task
        task.add_done_callback(forget_failure)
    return await asyncio.shield(task)


def of_certificate(certificate: Mapping[str, Any]) -> User | None:
    """Return the user of a verified certificate, as ``ssl`` decodes it.

    The common name is the user's name, and the organisations are the groups.
    See kubernetes.io, "Authenticating: X.509 client certificates".
    """
    names = subject_values(certificate, "commonName")
    if not names or not names[-1]:
        return None
    groups = subject_values(certificate, "organizationName")
    return User(names[-1], tuple(dict.fromkeys((*groups, AUTHENTICATED))))


def subject_values(certificate: Mapping[str, Any], attribute: str) -> list[str]:
    """Return the values of an attribute in the subject of a certificate, as ``ssl`` decodes it."""
    values = []
    for part in certificate.get("subject", ()):
        for name, value in part:
            if name == attribute:
                values.append(value)
    return values


def _of_review(user: Any) -> User | None:
    """Return the user of a review; None if it has no name.

    Raises:
        RefusedRequest: ``user`` is malformed.
    """
    if not isinstance(user, dict):
        raise _malformed()
    name = user.get("username") or ""
    uid = user.get("uid") or ""
    extra = user.get("extra") or {}
    if not isinstance(name, str) or not isinstance(uid, str) or not isinstance(extra, dict):
        raise _malformed()
    groups = _strings(user.get("groups"))
    if not name:
        return None
    return User(name, groups, uid, {key: _strings(values) for key, values in extra.items()})


def _strings(values: Any) -> tuple[str, ...]:
    strings = values or []
    if not isinstance(strings, list):
        raise _malformed()
    for each in strings:
        if not isinstance(each, str):
            raise _malformed()
    return tuple(strings)


def _malformed() -> RefusedRequest:
    return RefusedRequest(500, "the API server's review of this request is malformed")
