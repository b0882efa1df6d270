"""Authorisation: RBAC from the stored roles, or everything allowed."""

from collections.abc import Iterable
from typing import Any

from kube_envtest.apiserver import rbac
from kube_envtest.apiserver.errors import forbidden, forbidden_path
from kube_envtest.apiserver.rbac import User
from kube_envtest.apiserver.request import Call, Request
from kube_envtest.apiserver.selectors import exact_name
from kube_envtest.apiserver.storage import Storage

Obj = dict[str, Any]

GROUP = "rbac.authorization.k8s.io"

#: The user of the server itself.
SYSTEM = User("system:apiserver", ("system:masters",))


class Rbac:
    """Decides by the stored Roles and bindings."""

    def __init__(self, storage: Storage, *, enabled: bool) -> None:
        self._storage = storage
        self._enabled = enabled

    def _stored(self, plural: str) -> Iterable[Obj]:
        return [entry.obj for entry in self._storage.scan(f"{GROUP}/{plural}")]

    def allowed(self, user: User, attributes: Obj) -> bool:
        """Return True if RBAC allows it; ``attributes`` are the arguments of ``rbac.authorise``."""
        if not self._enabled or "system:masters" in user.groups:
            return True
        return rbac.authorise(
            user,
            **attributes,
            roles=self._stored("roles"),
            cluster_roles=self._stored("clusterroles"),
            role_bindings=self._stored("rolebindings"),
            cluster_role_bindings=self._stored("clusterrolebindings"),
        )

    def permit(self, call: Call, verb: str) -> None:
        """Check that the caller may do ``verb`` to the object of the call.

        Raises:
            ApiError: Forbidden.
        """
        namespace = call.name if call.type.plural == "namespaces" else call.namespace
        name = call.name
        if not name and verb in ("list", "watch"):
            # The source is `k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`.
            name = exact_name(call.query.get("fieldSelector", ""))
        attributes = {
            "verb": verb,
            "group": call.type.group,
            "resource": call.type.plural,
            "subresource": call.subresource,
            "namespace": namespace,
            "name": name,
        }
        if not self.allowed(call.request.user, attributes):
            raise forbidden(call.type, name, denial(call.request.user, attributes))

    def permit_path(self, request: Request) -> None:
        """Check that the caller may use a path that is no resource.

        Raises:
            ApiError: Forbidden.
        """
        verb = request.method.lower()
        if not self.allowed_path(request.user, verb, request.path):
            raise forbidden_path(request.user.name, verb, request.path)

    def allowed_path(self, user: User, verb: str, path: str) -> bool:
        """Return True if RBAC allows a path that is no resource."""
        if not self._enabled or "system:masters" in user.groups:
            return True
        return rbac.authorise_url(
            user,
            verb,
            path,
            cluster_roles=self._stored("clusterroles"),
            cluster_role_bindings=self._stored("clusterrolebindings"),
        )


def denial(user: User, attributes: Obj) -> str:
    """Return why something is forbidden, in the real server's words."""
    resource = attributes["resource"]
    if attributes["subresource"]:
        resource += f"/{attributes['subresource']}"
    where = f'in the namespace "{attributes["namespace"]}"' if attributes["namespace"] else "at the cluster scope"
    what = f'{attributes["verb"]} resource "{resource}" in API group "{attributes["group"]}"'
    return f'User "{user.name}" cannot {what} {where}'
