"""Discovery: groups, resources, version, health, OpenAPI."""

from typing import Any

from kube_envtest.apiserver import openapi
from kube_envtest.apiserver.errors import ApiError, NoSuchPath, unknown_path
from kube_envtest.apiserver.request import Request, Response, read_accept, reply
from kube_envtest.apiserver.resources import BUILTIN, Registry, ResourceType
from kube_envtest.apiserver.storage import encode

Obj = dict[str, Any]

MAJOR = "1"
MINOR = "36"
PATCH = "0"
#: The version that this server reports.
GIT_VERSION = f"v{MAJOR}.{MINOR}.{PATCH}+inprocess"

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

BUILTIN_GROUPS = {rt.group for rt in BUILTIN}

HEALTH = ("/healthz", "/livez", "/readyz")

#: The kind that a subresource accepts: group, version, kind.
SUBRESOURCE_KINDS = {
    "scale": ("autoscaling", "v1", "Scale"),
    "binding": ("", "", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}

SUBRESOURCE_VERBS = {
    "binding": ["create"],
    "eviction": ["create"],
    "token": ["create"],
    "finalize": ["update"],
}


class Discovery:
    """Answers paths that are no resource."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def answer(self, request: Request) -> Response:
        """Return the response to a GET of such a path.

        Raises:
            NoSuchPath: There is no such path.
        """
        path = request.path.rstrip("/") or "/"
        if request.method == "GET":
            if path.startswith(HEALTH):
                return Response(200, b"ok", "text/plain; charset=utf-8")
            found = self._document(request, path)
            if found is not None:
                return found
        raise self._missing(path)

    def _missing(self, path: str) -> ApiError:
        """Return a ``Status`` below paths that the server itself serves, plain text elsewhere."""
        parts = path.strip("/").split("/")
        own = parts[0] == "api" or (parts[0] == "apis" and len(parts) > 1 and parts[1] in BUILTIN_GROUPS)
        return unknown_path() if own else NoSuchPath()

    def _document(self, request: Request, path: str) -> Response | None:
        parts = path.strip("/").split("/")
        match parts:
            case [""]:
                return reply(200, {"paths": self._paths()})
            case ["version"]:
                return reply(200, VERSION)
            case ["api"]:
                return self._aggregated(request, core=True) or reply(200, CORE_VERSIONS)
            case ["apis"]:
                return self._aggregated(request, core=False) or reply(200, self._groups())
            case ["api", "v1"]:
                return reply(200, self._resources("", "v1"))
            case ["apis", group] if group in self._registry.groups():
                return reply(200, {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)})
            case ["apis", group, version] if version in self._registry.versions(group):
                return reply(200, self._resources(group, version))
            case ["openapi", "v2"]:
                return reply(200, openapi.version_2(self._registry))
            case ["openapi", "v3"]:
                return reply(200, openapi.index(self._registry))
            case ["openapi", "v3", *parts]:
                return self._openapi(parts)
        return None

    def _openapi(self, parts: list[str]) -> Response | None:
        group, version = (parts[1], parts[2]) if len(parts) == 3 else ("", parts[-1])
        types = [rt for rt in self._registry.all() if (rt.group, rt.version) == (group, version)]
        return reply(200, openapi.version_3(types)) if types else None

    def _paths(self) -> list[str]:
        found = ["/api", "/api/v1", "/apis"]
        for group in self._registry.groups():
            found += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in self._registry.versions(group))]
        return [*found, *HEALTH, "/openapi/v2", "/openapi/v3", "/version"]

    def _groups(self) -> Obj:
        groups = [self._group(group) for group in self._registry.groups()]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _group(self, group: str) -> Obj:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version} for version in self._registry.versions(group)
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _types(self, group: str, version: str) -> list[ResourceType]:
        found = [rt for rt in self._registry.all() if (rt.group, rt.version) == (group, version)]
        return sorted(found, key=lambda rt: rt.plural)

    def _resources(self, group: str, version: str) -> Obj:
        listed = []
        for rt in self._types(group, version):
            listed.append(_resource(rt))
            listed.extend(_subresource(rt, name) for name in rt.subresources)
        version_text = f"{group}/{version}" if group else version
        return {
            "kind": "APIResourceList",
            **({"apiVersion": "v1"} if group else {}),
            "groupVersion": version_text,
            "resources": listed,
        }

    def _aggregated(self, request: Request, *, core: bool) -> Response | None:
        accept = read_accept(request.accept)
        if accept.form != "APIGroupDiscoveryList" or accept.parameters.get("v") != "v2":
            return None
        groups = [""] if core else self._registry.groups()
        items = []
        for group in groups:
            metadata = {}
            if group:
                metadata["name"] = group
            items.append({"metadata": metadata, "versions": self._versions(group)})
        body = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
        return Response(200, encode(body), AGGREGATED)

    def _versions(self, group: str) -> list[Obj]:
        return [
            {
                "version": version,
                "resources": [_aggregated_resource(rt) for rt in self._types(group, version)],
                "freshness": "Current",
            }
            for version in self._registry.versions(group)
        ]


def _resource(rt: ResourceType) -> Obj:
    out: Obj = {"name": rt.plural, "singularName": rt.singular, "namespaced": rt.namespaced, "kind": rt.kind}
    out["verbs"] = list(rt.verbs)
    if rt.short_names:
        out["shortNames"] = list(rt.short_names)
    if rt.categories:
        out["categories"] = list(rt.categories)
    return out


def _subresource(rt: ResourceType, name: str) -> Obj:
    out: Obj = {"name": f"{rt.plural}/{name}", "singularName": "", "namespaced": rt.namespaced}
    group, version, kind = SUBRESOURCE_KINDS.get(name, ("", "", rt.kind))
    foreign = {"group": group, "version": version} if group else {}
    return {**out, **foreign, "kind": kind, "verbs": _verbs(name)}


def _verbs(subresource: str) -> list[str]:
    return SUBRESOURCE_VERBS.get(subresource, ["get", "patch", "update"])


def _aggregated_resource(rt: ResourceType) -> Obj:
    out: Obj = {
        "resource": rt.plural,
        "responseKind": _response_kind(rt),
        "scope": "Namespaced" if rt.namespaced else "Cluster",
        "singularResource": rt.singular,
        "verbs": list(rt.verbs),
    }
    if rt.short_names:
        out["shortNames"] = list(rt.short_names)
    if rt.categories:
        out["categories"] = list(rt.categories)
    if rt.subresources:
        out["subresources"] = [_aggregated_subresource(rt, name) for name in rt.subresources]
    return out


def _aggregated_subresource(rt: ResourceType, name: str) -> Obj:
    kind = _response_kind(rt)
    if name in SUBRESOURCE_KINDS:
        kind = dict(zip(("group", "version", "kind"), SUBRESOURCE_KINDS[name], strict=True))
    return {"subresource": name, "responseKind": kind, "verbs": _verbs(name)}


def _response_kind(rt: ResourceType) -> Obj:
    """Return the kind of a response; the real server leaves group and version of a built-in
    resource's own kind empty.
    """
    group, version = (rt.group, rt.version) if rt.custom else ("", "")
    return {"group": group, "version": version, "kind": rt.kind}


VERSION: Obj = {
    "major": MAJOR,
    "minor": MINOR,
    "gitVersion": GIT_VERSION,
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}

CORE_VERSIONS: Obj = {
    "kind": "APIVersions",
    "versions": ["v1"],
    "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:443"}],
}
