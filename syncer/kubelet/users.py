"""Who a client is, and what it may do: both are asked of the virtual API server, as a kubelet does.

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

#: Seconds for which an answer of the virtual API server holds. A kubelet keeps it for up to five
#: minutes.
KEPT_SECONDS = 10.0
#: Most answers that are kept.
MOST_KEPT = 1024
#: Most reviews that are asked for at a time, and that wait: the connections to the virtual API
#: server are those of its syncers, too, and each token of a stranger takes a review.
MOST_ASKED, MOST_WAITING = 8, 256
#: The group of all users with a name; a certificate doesn't say it.
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

        Raises:
            Refused: There is neither, or the token isn't valid.
        """
        found = of_certificate(certificate) if certificate else None
        scheme, _, token = authorization.partition(" ")
        if found is None and scheme.lower() == "bearer" and token.strip():
            found = await self._of_token(token.strip())
        if found is None:
            raise RefusedRequest(401, "Unauthorized")
        return found

    async def authorize(
        self,
        user: User,
        verb: str,
        node: str,
        subresources: Sequence[str],
    ) -> None:
        """Check that a user is allowed one of the subresources of a node.

        Raises:
            Refused: None of them.
        """
        for subresource in subresources:
            if await self.may(
                user,
                verb=verb,
                version="v1",
                resource="nodes",
                subresource=subresource,
                name=node,
            ):
                return
        what = f"user={user.name}, verb={verb}, resource=nodes, subresource(s)={list(subresources)}"
        raise RefusedRequest(403, f"Forbidden ({what})")

    async def _of_token(self, token: str) -> User | None:
        kept = hashlib.sha256(token.encode()).digest()
        return await _once(self._users, kept, lambda: self._reviewed(token))

    async def _reviewed(self, token: str) -> User | None:
        status = await self._ask(TOKEN_REVIEWS, {"token": token})
        return _of_review(status.get("user")) if status.get("authenticated") is True else None

    async def may(self, user: User, **attributes: str) -> bool:
        """Return True if a user is allowed a request with these ``resourceAttributes``.

        Raises:
            Refused: The virtual API server doesn't say.
        """
        extra = tuple(sorted((name, tuple(values)) for name, values in user.extra.items()))
        kept = (user.name, user.uid, user.groups, extra, *attributes.items())
        return await _once(self._allowed, kept, lambda: self._is_allowed(user, attributes))

    async def _is_allowed(self, user: User, attributes: Obj) -> bool:
        spec: Obj = {
            "user": user.name,
            "groups": list(user.groups),
            "resourceAttributes": attributes,
        }
        if user.uid:
            spec["uid"] = user.uid
        if user.extra:
            spec["extra"] = {name: list(values) for name, values in user.extra.items()}
        return (await self._ask(ACCESS_REVIEWS, spec)).get("allowed") is True

    async def _ask(self, resource: Resource, spec: Obj) -> Obj:
        """Return the status of a review."""
        if self._waiting >= MOST_WAITING:
            raise RefusedRequest(503, "too many clients are being authenticated; try again later")
        self._waiting += 1
        try:
            async with self._asking:
                review = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
                status = (await self._virtual.create(resource, review)).get("status")
        except ClusterError as error:
            raise RefusedRequest(
                500,
                f"the API server does not say who may do this: {type(error).__name__}",
            ) from error
        finally:
            self._waiting -= 1
        return status if isinstance(status, dict) else {}


async def _once(
    kept: MutableMapping[K, asyncio.Task[V]],
    key: K,
    ask: Callable[[], Coroutine[Any, Any, V]],
) -> V:
    """Return a kept answer, or ask.

    Many who ask the same at a time share an answer; an error isn't kept.
    """
    task = kept.get(key)
    if task is None:
        task = kept[key] = asyncio.create_task(ask())
        task.add_done_callback(
            lambda done: kept.pop(key, None) if done.cancelled() or done.exception() else None,
        )
    return await asyncio.shield(task)


def of_certificate(certificate: Mapping[str, Any]) -> User | None:
    """Return the user of a verified certificate, as ``ssl`` decodes it.

    Its common name is the user's, its organisations are the groups.
    See kubernetes.io, "Authenticating: X.509 client certificates".
    """
    subject = [pair for part in certificate.get("subject", ()) for pair in part]
    names = [value for key, value in subject if key == "commonName"]
    if not names or not names[-1]:
        return None
    groups = [value for key, value in subject if key == "organizationName"]
    return User(names[-1], tuple(dict.fromkeys((*groups, AUTHENTICATED))))


def _of_review(user: Any) -> User | None:
    """Return the user of a review.

    Raises:
        Refused: It is malformed.
    """
    if not isinstance(user, dict):
        raise _malformed()
    name = user.get("username") or ""
    uid = user.get("uid") or ""
    extra = user.get("extra") or {}
    if not isinstance(name, str) or not isinstance(uid, str) or not isinstance(extra, dict):
        raise _malformed()
    groups = _strings(user.get("groups"))
    return User(name, groups, uid, {key: _strings(values) for key, values in extra.items()}) if name else None


def _strings(values: Any) -> tuple[str, ...]:
    if not isinstance(values or [], list) or not all(isinstance(each, str) for each in values or []):
        raise _malformed()
    return tuple(values or ())


def _malformed() -> RefusedRequest:
    return RefusedRequest(
        500,
        "the API server does not say who may do this: its review is malformed",
    )
