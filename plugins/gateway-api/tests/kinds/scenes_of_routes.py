"""What the samples of all routes have in common."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from vsyncer_gateway_api.gateways import GatewaySyncer
from vsyncer_gateway_api.kinds import GROUP, REFERENCE_GRANTS

from syncer.api import Obj, Resource, Syncer, key_of
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.objects import build
from syncer.testing.samples import Sample

GATEWAYS: Mapping[str, Any] = {"mappings": {"infra/shared": "gateways/web", "edge/*": "edge"}}
HOSTS = ["*.example.org"]

#: Where routes find Services: in their own namespace, and in those that ReferenceGrants are for.
NAMESPACES = ("shop", "bank", "other")
PARENTS = st.sampled_from(
    [
        {"name": "web", "namespace": "gateways"},
        {"name": "web", "namespace": "gateways", "sectionName": "https", "kind": "Gateway"},
        {"name": "outer", "namespace": "edge", "port": 443, "group": GROUP},
        {"name": "web"},
        {"name": "web", "group": "", "kind": "Service"},
    ]
)
BACKENDS = strategies.some(
    {
        "name": strategies.NAMES,
        "namespace": st.sampled_from(NAMESPACES),
        "kind": "Service",
        "port": 80,
    }
)
#: Rules with backends, and requests that are copied to another one.
MIRRORED = {
    "backendRefs": st.lists(BACKENDS, max_size=2),
    "filters": st.lists(
        st.builds(
            lambda backend: {"type": "RequestMirror", "requestMirror": {"backendRef": backend}},
            BACKENDS,
        ),
        max_size=1,
    ),
}
STATUS: Obj = {
    "parents": [
        {
            "parentRef": {"name": "shared", "namespace": "infra"},
            "controllerName": "example.org/gateway",
            "conditions": [{"type": "Accepted", "status": "True"}],
        }
    ]
}


def granting(resource: Resource, namespace: str) -> Obj:
    """Return a ReferenceGrant for all Services of a namespace."""
    spec = {
        "from": [{"group": GROUP, "kind": resource.kind, "namespace": each} for each in NAMESPACES],
        "to": [{"group": "", "kind": "Service"}],
    }
    return build(REFERENCE_GRANTS, "routes", namespace=namespace, spec=spec)


def scenes(resource: Resource, rules: st.SearchStrategy[Any]) -> st.SearchStrategy[Scene]:
    """Return scenes with a route, and with ReferenceGrants in some namespaces."""
    spec = strategies.some(
        {
            "parentRefs": st.lists(PARENTS, max_size=2),
            "hostnames": st.lists(
                st.sampled_from(["shop.example.org", "*.example.org", "example.com"]), max_size=2
            ),
            "rules": st.lists(rules, max_size=2),
        }
    )
    routes = strategies.objects(resource, strategies.some({"spec": spec, "status": STATUS}))

    def scene(route: Obj, namespaces: set[str]) -> Scene:
        grants = tuple(granting(resource, each) for each in sorted(namespaces))
        return Scene(key_of(route), (route, *grants))

    return st.builds(scene, routes, st.sets(st.sampled_from(NAMESPACES)))


def report(status: str) -> Obj:
    """Return a merge patch: the host reports on the only parent of a route."""
    conditions = [{"type": "Accepted", "status": status}]
    return {"status": {"parents": [{**STATUS["parents"][0], "conditions": conditions}]}}


def sample(
    syncer: type[Syncer], section: str, resource: Resource, rules: st.SearchStrategy[Any]
) -> Sample:
    """Return the sample of a kind of routes.

    Args:
        syncer: The syncer of the kind.
        section: The name of its options in ``sync.toHost``.
        resource: The kind.
        rules: The rules of a route.
    """
    return Sample(
        syncer=syncer,
        objects=scenes(resource, rules),
        make=lambda name: build(
            resource,
            name,
            spec={
                "parentRefs": [{"name": "web", "namespace": "gateways"}],
                "hostnames": ["shop.example.org"],
                "rules": [{"backendRefs": [{"name": "web", "port": 80}]}],
            },
        ),
        change={"spec": {"hostnames": ["other.example.org"]}},
        tamper={"spec": {"hostnames": ["theirs.example.org"]}},
        reports=(report("Unknown"), report("True")),
        config={
            "sync": {
                "toHost": {section: {"allowedHosts": HOSTS}},
                "fromHost": {"gateways": GATEWAYS},
            }
        },
        together=(GatewaySyncer,),
        dropped=("spec",),  # a route with an unknown field in it is refused
    )
