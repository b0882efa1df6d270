"""Credentials: a test's tokens, and those of service accounts from TokenRequest."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from random import Random
from typing import Any

import msgspec

from kube_envtest.apiserver.bodies import parse
from kube_envtest.apiserver.clock import timestamp
from kube_envtest.apiserver.errors import ApiError, bad_request, cause, invalid, not_found, unauthorized
from kube_envtest.apiserver.metadata import random_uid
from kube_envtest.apiserver.rbac import User
from kube_envtest.apiserver.request import Call, Response, reply
from kube_envtest.apiserver.resources import CORE, ResourceType
from kube_envtest.apiserver.storage import Storage, decode, encode, key_of

Obj = dict[str, Any]

ISSUER = "https://kubernetes.default.svc.cluster.local"
SHORTEST = 600
DEFAULT_SECONDS = 3600
LONGEST = 1 << 32

TOKEN_REQUEST = ResourceType("authentication.k8s.io", "v1", "TokenRequest", "tokenrequests")
BOUND_TABLES = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class Tokens:
    """The users of bearer tokens.

    Service account tokens are JWTs that only this server signs (HS256).
    """

    def __init__(self, storage: Storage, users: Mapping[str, User], chance: Random) -> None:
        self._storage = storage
        self._chance = chance
        self._secret = chance.randbytes(32)
        self.users = dict(users)

    def user(self, token: str, now: float) -> User:
        """Return the user of a token.

        Raises:
            ApiError: Unauthorized.
        """
        found = self.users.get(token)
        if found is not None:
            return found
        claims = self.claims(token)
        if claims is None or claims["exp"] <= now or not self._alive(claims):
            raise unauthorized()
        account = claims["kubernetes.io"]
        namespace = account["namespace"]
        name = account["serviceaccount"]["name"]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        return User(f"system:serviceaccount:{namespace}:{name}", groups)

    def claims(self, token: str) -> Obj | None:
        """Return the claims of a JWT of this server; None for any other token."""
        head, _, signature = token.rpartition(".")
        if head.count(".") != 1 or not hmac.compare_digest(signature, self._signature(head)):
            return None
        try:
            found = decode(_bytes(head.partition(".")[2]))
        except (ValueError, msgspec.DecodeError):
            return None
        return found if isinstance(found, dict) else None

    def _alive(self, claims: Obj) -> bool:
        account = claims["kubernetes.io"]
        namespace = account["namespace"]
        owner = self._storage.get("/serviceaccounts", key_of(namespace, account["serviceaccount"]["name"]))
        if owner is None or owner.obj["metadata"]["uid"] != account["serviceaccount"]["uid"]:
            return False
        bound = account.get("pod")
        if bound is None:
            return True
        pod = self._storage.get("/pods", key_of(namespace, bound["name"]))
        return pod is not None and pod.obj["metadata"]["uid"] == bound["uid"]

    def _signature(self, text: str) -> str:
        return _text(hmac.new(self._secret, text.encode(), hashlib.sha256).digest())

    def request(self, call: Call, now: float) -> Response:
        """Handle a POST of a TokenRequest."""
        body = parse(call.request.body, call.request.content_type) if call.request.body else {}
        account = self._storage.get(call.table, call.key)
        if account is None:
            raise not_found(call.type, call.name)
        spec = body.get("spec") or {}
        seconds = _seconds(spec.get("expirationSeconds"))
        audiences = spec.get("audiences") or [ISSUER]
        bound = self._bound(call, spec.get("boundObjectRef"))
        claims = _claims(account.obj["metadata"], audiences, now, seconds) | {"jti": random_uid(self._chance)}
        claims["kubernetes.io"] |= bound
        return reply(201, _answer(account.obj["metadata"], spec, audiences, seconds, self.sign(claims), now))

    def sign(self, claims: Obj) -> str:
        """Return a JWT with these claims."""
        head = f"{_text(encode({'alg': 'HS256', 'typ': 'JWT'}))}.{_text(encode(claims))}"
        return f"{head}.{self._signature(head)}"

    def _bound(self, call: Call, reference: Obj | None) -> Obj:
        if not reference:
            return {}
        kind = reference.get("kind", "")
        name = reference.get("name", "")
        plural = BOUND_TABLES.get(kind)
        if plural is None:
            version = reference.get("apiVersion", "")
            raise bad_request(f"cannot bind token to object of type {version}, Kind={kind}")
        rt = next(one for one in CORE if one.plural == plural)
        namespace = ""
        if rt.namespaced:
            namespace = call.namespace
        found = self._storage.get(rt.table_name, key_of(namespace, name))
        if found is None:
            raise not_found(rt, name)
        meta = found.obj["metadata"]
        if kind == "Pod" and (found.obj.get("spec") or {}).get("serviceAccountName") != call.name:
            text = (
                f'cannot bind token for serviceaccount "{call.name}" to pod running with different serviceaccount name.'
            )
            raise bad_request(text)
        if reference.get("uid") and reference["uid"] != meta["uid"]:
            raise _other_uid(kind, name, reference["uid"])
        return {kind.lower(): {"name": name, "uid": meta["uid"]}}


def _other_uid(kind: str, name: str, uid: str) -> ApiError:
    why = (
        f"the UID in the bound object reference ({uid}) does not match the UID in record. "
        "The object might have been deleted and then recreated"
    )
    message = f'Operation cannot be fulfilled on {kind} "{name}": {why}'
    return ApiError(409, "Conflict", message, {"name": name, "kind": kind})


def _seconds(wanted: Any) -> int:
    if wanted is None:
        return DEFAULT_SECONDS
    if wanted < SHORTEST:
        text = f"Invalid value: {wanted}: may not specify a duration less than 10 minutes"
        raise invalid(TOKEN_REQUEST, "", [cause("spec.expirationSeconds", text)])
    if wanted > LONGEST:
        text = f"Invalid value: {wanted}: may not specify a duration larger than 2^32 seconds"
        raise invalid(TOKEN_REQUEST, "", [cause("spec.expirationSeconds", text)])
    return int(wanted)


def _claims(account: Obj, audiences: list[str], now: float, seconds: int) -> Obj:
    start = int(now)
    owner = {"name": account["name"], "uid": account["uid"]}
    return {
        "aud": audiences,
        "exp": start + seconds,
        "iat": start,
        "nbf": start,
        "iss": ISSUER,
        "sub": f"system:serviceaccount:{account['namespace']}:{account['name']}",
        "kubernetes.io": {"namespace": account["namespace"], "serviceaccount": owner},
    }


def _answer(account: Obj, spec: Obj, audiences: list[str], seconds: int, token: str, now: float) -> Obj:
    metadata = {key: account[key] for key in ("name", "namespace", "uid")}
    metadata["creationTimestamp"] = timestamp(now)
    wanted = {
        "audiences": audiences,
        "expirationSeconds": seconds,
        "boundObjectRef": spec.get("boundObjectRef"),
    }
    status = {"token": token, "expirationTimestamp": timestamp(int(now) + seconds)}
    head = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": metadata}
    return {**head, "spec": wanted, "status": status}


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
