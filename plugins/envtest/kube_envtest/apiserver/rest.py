"""From a request to its response: resolve the path, authorise the user, call the handler."""

from collections.abc import Callable, Mapping
from typing import Protocol

from kube_envtest.apiserver.clock import timestamp
from kube_envtest.apiserver.errors import ApiError, NoSuchPath, method_not_allowed, unknown_path
from kube_envtest.apiserver.reads import Reader
from kube_envtest.apiserver.request import Call, Request, Response, Target, parse_target, reply
from kube_envtest.apiserver.resources import Registry, ResourceType
from kube_envtest.apiserver.watch import Watch
from kube_envtest.apiserver.writes import Writer

Handler = Callable[[Call, float], Response]

OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "POST": "create"}
COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}

WATCHED = ("true", "1")


class Authority(Protocol):
    """Authorises requests."""

    def permit(self, call: Call, verb: str) -> None:
        """Check that the caller may do ``verb`` to the object of the call.

        Raises:
            ApiError: Forbidden.
        """

    def permit_path(self, request: Request) -> None:
        """Check that the caller may read a path that is no resource.

        Raises:
            ApiError: Forbidden.
        """


class Rest:
    """Answers requests for resources; ``other`` answers all other paths."""

    def __init__(
        self,
        registry: Registry,
        reader: Reader,
        writer: Writer,
        subresources: Mapping[str, Handler],
        authority: Authority,
        other: Callable[[Request], Response],
    ) -> None:
        self._registry = registry
        self._reader = reader
        self._subresources = subresources
        self._authority = authority
        self._other = other
        self._objects: dict[str, Handler] = {
            "get": reader.get,
            "list": reader.listing,
            "create": writer.create,
            "update": writer.update,
            "patch": writer.patch,
            "delete": writer.delete,
            "deletecollection": writer.delete_collection,
        }

    def answer(self, request: Request, call: Call | None, now: float) -> Response | Watch:
        """Return the response, or the watch that was started; ``call`` is the result of ``call_of``."""
        try:
            return self._answer(request, call, now)
        except ApiError as problem:
            return refusal(problem)

    def _answer(self, request: Request, call: Call | None, now: float) -> Response | Watch:
        if call is None:
            self._authority.permit_path(request)
            return self._other(request)
        self._authority.permit(call, call.verb)
        if call.verb == "watch":
            return self._reader.watch(call, now)
        return self._handler(call)(call, now)

    def call_of(self, request: Request, now: float) -> Call | None:
        """Return the resource, object and verb of a request; None if the path is no resource."""
        target = parse_target(request.path)
        if target.group is None:
            return None
        rt = self._registry.find(target.group, target.version, target.plural)
        if rt is None or not _fits(rt, target):
            return None
        namespace = target.namespace if rt.namespaced else ""
        verb = _verb(request, target)
        return Call(request, rt, verb, namespace, target.name, target.subresource, timestamp(now))

    def _handler(self, call: Call) -> Handler:
        if not call.subresource:
            if call.verb not in call.type.verbs or (call.verb == "create" and not _creatable(call)):
                raise method_not_allowed()
            special = self._subresources.get(f"{call.type.full_name}:{call.verb}")
            return special or self._objects[call.verb]
        if call.subresource not in call.type.subresources:
            raise unknown_path()
        special = self._subresources.get(f"{call.subresource}:{call.verb}")
        if special is not None:
            return special
        if call.subresource == "status" and call.verb in ("get", "update", "patch"):
            return self._objects[call.verb]
        raise method_not_allowed()


def _creatable(call: Call) -> bool:
    return not call.name and (bool(call.namespace) or not call.type.namespaced)


def _verb(request: Request, target: Target) -> str:
    if target.name:
        return OBJECT_VERBS.get(request.method, "")
    verb = COLLECTION_VERBS.get(request.method, "")
    return "watch" if verb == "list" and request.query.get("watch") in WATCHED else verb


def _fits(rt: ResourceType, target: Target) -> bool:
    """Return True if the path has a namespace exactly if the resource is namespaced."""
    if rt.namespaced:
        return bool(target.namespace) or not target.name
    return not target.namespace or rt.plural == "namespaces"


def refusal(problem: ApiError) -> Response:
    """Return the response to a failed request."""
    if isinstance(problem, NoSuchPath):
        return Response(404, b"404 page not found\n", "text/plain; charset=utf-8")
    answer = reply(problem.code, problem.status())
    answer.headers = problem.headers
    return answer
