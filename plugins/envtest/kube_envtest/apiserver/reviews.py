"""Reviews: access reviews, token reviews, "who am I"."""

from typing import Any

from kube_envtest.apiserver.authority import Rbac, denial
from kube_envtest.apiserver.bodies import read_object
from kube_envtest.apiserver.errors import ApiError, cause, invalid
from kube_envtest.apiserver.rbac import User
from kube_envtest.apiserver.request import Call, Response, reply
from kube_envtest.apiserver.tokens import ISSUER, Tokens

Obj = dict[str, Any]


class Reviews:
    """Handlers of ``create`` for each kind of review."""

    def __init__(self, authority: Rbac, tokens: Tokens) -> None:
        self._authority = authority
        self._tokens = tokens

    def self_access(self, call: Call, now: float) -> Response:
        """Answer a SelfSubjectAccessReview about the caller."""
        del now
        body = self._body(call)
        return self._access(call, body, call.request.user)

    def access(self, call: Call, now: float) -> Response:
        """Answer a SubjectAccessReview or LocalSubjectAccessReview about a user."""
        del now
        body = self._body(call)
        spec = body["spec"]
        if not spec.get("user") and not spec.get("groups"):
            text = "Invalid value: null: at least one of user or group must be specified"
            raise invalid(call.type, "", [cause("spec.user", text)])
        return self._access(call, body, User(spec.get("user", ""), tuple(spec.get("groups") or ())))

    def _body(self, call: Call) -> Obj:
        body = read_object(call.type, call.request.body, call.request.content_type)
        body.setdefault("spec", {})
        return body

    def _access(self, call: Call, body: Obj, user: User) -> Response:
        spec = body["spec"]
        resource = spec.get("resourceAttributes")
        path = spec.get("nonResourceAttributes")
        if (resource is None) == (path is None):
            text = "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"
            raise invalid(call.type, "", [cause("spec.resourceAttributes", text)])
        if path is not None:
            allowed = self._authority.allowed_path(user, path.get("verb", ""), path.get("path", ""))
            why = ""
        else:
            attributes = {key: resource.get(key, "") for key in ATTRIBUTES}
            allowed = self._authority.allowed(user, attributes)
            why = denial(user, attributes)
        status: Obj = {"allowed": allowed}
        if not allowed and path is None:
            status["reason"] = why
        return reply(201, {**body, "metadata": body["metadata"], "status": status})

    def me(self, call: Call, now: float) -> Response:
        """Answer a SelfSubjectReview: the name and groups of the caller."""
        del now
        user = call.request.user
        info = {"username": user.name, "groups": list(user.groups)}
        return reply(201, {**self._body(call), "status": {"userInfo": info}})

    def token(self, call: Call, now: float) -> Response:
        """Answer a TokenReview: the user of a token."""
        body = self._body(call)
        try:
            user = self._tokens.user(body["spec"].get("token", ""), now)
        except ApiError:
            status: Obj = {"user": {}, "error": "[invalid bearer token]"}
            return reply(201, {**body, "status": status})
        info = {"username": user.name, "groups": list(user.groups)}
        audiences = body["spec"].get("audiences") or [ISSUER]
        return reply(201, {**body, "status": {"authenticated": True, "user": info, "audiences": audiences}})


ATTRIBUTES = ("verb", "group", "resource", "subresource", "namespace", "name")
