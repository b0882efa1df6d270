"""Hypothesis strategies for objects as tenants may create them: valid for an API server, and as odd
as it allows.

The strategies are for :func:`syncer.testing.laws.laws_for`. Strings that a server doesn't restrict
are any text; maps may be empty, null or absent; and every object may have forged marks, foreign
finalizers and owners.
"""

import base64
from typing import Any

from hypothesis import strategies as st

from syncer.api import Obj, Resource
from syncer.testing.objects import build
from syncer.translate.merge_patch import merged

Made = st.SearchStrategy[Obj]

_WORDS = st.sampled_from(["a", "b", "db", "web", "x", "0", "a-x-b", "x-a", "long" * 15])
#: DNS-1123 labels, with the parts that are difficult for name translators.
LABELS = st.lists(_WORDS, min_size=1, max_size=3).map("-".join)
LABELS = LABELS.map(lambda text: text[:63].rstrip("-"))
#: DNS-1035 labels, for Services.
SERVICE_NAMES = LABELS.map(lambda text: f"s{text}"[:63])
#: DNS-1123 subdomains of any valid length.
NAMES = st.one_of(
    LABELS,
    LABELS,
    st.lists(LABELS, min_size=2, max_size=5).map(".".join).map(lambda text: text[:253]),
)
NAMES = NAMES.map(lambda text: text.rstrip("-."))

_KEYS = st.sampled_from(
    ["app", "tier", "example.org/part", "config.yaml", "release", "app.kubernetes.io/name"],
)
_LABEL_VALUES = st.sampled_from(["", "web", "Db_1.x", "v" * 63])
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
_SECONDS = st.integers(0, 600)

LABEL_MAPS = st.dictionaries(_KEYS, _LABEL_VALUES, max_size=3)
_FORGED = st.sampled_from(
    [
        {"vsyncer.dev/cluster": "other"},
        {"vsyncer.dev/virtual-name": "other", "vsyncer.dev/virtual-uid": "1"},
        {"vsyncer.dev/fields": "{"},
        {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
    ]
)
_ANNOTATIONS = st.one_of(st.dictionaries(_KEYS, TEXT, max_size=3), _FORGED)
_OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "web-1",
    "uid": "o-1",
    "controller": True,
}


@st.composite
def _metadata(draw: st.DrawFn) -> Obj:
    controllers: Obj = {
        "labels": draw(st.one_of(LABEL_MAPS, st.just({"vsyncer.dev/cluster": "other"}), st.none())),
        "annotations": draw(st.one_of(_ANNOTATIONS, st.none())),
        "ownerReferences": draw(st.sampled_from([None, [_OWNER]])),
        "generateName": draw(st.sampled_from([None, "web-"])),
        "finalizers": draw(st.sampled_from([None, None, ["example.org/mine"]])),
        "managedFields": draw(
            st.sampled_from([None, [{"manager": "kubectl", "operation": "Apply"}]]),
        ),
    }
    return {key: value for key, value in controllers.items() if value is not None}


def some(fields: dict[str, Any]) -> Made:
    """Return mappings with some of the fields; a value is a strategy or a constant."""
    optional = {}
    for key, value in fields.items():
        optional[key] = value if isinstance(value, st.SearchStrategy) else st.just(value)
    return st.fixed_dictionaries({}, optional=optional)


def objects(resource: Resource, contents: Made, *, names: st.SearchStrategy[str] = NAMES) -> Made:
    """Return objects of any resource, with the contents, and metadata as tenants may write it."""
    metadata = _metadata()
    if not resource.namespaced:
        return st.builds(
            lambda name, meta, rest: build(resource, name, metadata=meta, **rest),
            names,
            metadata,
            contents,
        )
    return st.builds(
        lambda name, space, meta, rest: build(
            resource,
            name,
            namespace=space,
            metadata=meta,
            **rest,
        ),
        names,
        LABELS,
        metadata,
        contents,
    )


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


_ENCODED = TEXT.map(_base64)
_DATA_KEYS = st.sampled_from(["a", "config.yaml", "_x", "A-1"])


def configmaps() -> Made:
    """Return ConfigMaps: text, bytes, both or nothing, immutable or not."""
    contents = {
        "data": st.dictionaries(_DATA_KEYS, TEXT, max_size=3),
        "binaryData": st.dictionaries(st.just("bin"), _ENCODED),
        "immutable": st.booleans(),
    }
    return objects(Resource("v1", "ConfigMap", "configmaps"), some(contents))


def secrets() -> Made:
    """Return Secrets of all types, including those with special treatment."""
    types = [
        "Opaque",
        "kubernetes.io/tls",
        "example.org/any",
        "kubernetes.io/service-account-token",
    ]
    contents = {
        "data": st.dictionaries(_DATA_KEYS, _ENCODED, max_size=3),
        "type": st.sampled_from(types),
        "immutable": st.booleans(),
    }
    return objects(Resource("v1", "Secret", "secrets"), some(contents))


def serviceaccounts() -> Made:
    """Return ServiceAccounts with and without the lists that must not cross."""
    contents = {
        "automountServiceAccountToken": st.booleans(),
        "secrets": [{"name": "default-token"}],
        "imagePullSecrets": [{"name": "registry"}],
    }
    return objects(Resource("v1", "ServiceAccount", "serviceaccounts"), some(contents))


_PORT = st.fixed_dictionaries(
    {"port": st.integers(1, 65535), "protocol": st.sampled_from(["TCP", "UDP", "SCTP"])},
    optional={
        "name": st.sampled_from(["http", "p-1"]),
        "targetPort": st.one_of(st.integers(1, 65535), st.just("web")),
        "nodePort": st.integers(30000, 32767),
        "appProtocol": st.just("http"),
    },
)
_PORTS = st.lists(
    _PORT,
    min_size=1,
    max_size=3,
    unique_by=lambda port: (port["port"], port["protocol"]),
)


@st.composite
def _service_spec(draw: st.DrawFn) -> Obj:
    kind = draw(
        st.sampled_from(["ClusterIP", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]),
    )
    optional = {
        "ports": _PORTS,
        "selector": LABEL_MAPS,
        "sessionAffinity": st.sampled_from(["None", "ClientIP"]),
        "publishNotReadyAddresses": st.booleans(),
        "externalIPs": ["192.0.2.7"],
        "internalTrafficPolicy": "Local",
    }
    if kind == "ExternalName":
        return {"type": kind, "externalName": "example.org", **draw(some(optional))}
    address = draw(
        st.sampled_from(["10.96.0.10", "None"] if kind == "ClusterIP" else ["10.96.0.10"]),
    )
    families = {
        "clusterIP": address,
        "clusterIPs": [address],
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
    }
    return {"type": kind, **families, **draw(some(optional))}


def services() -> Made:
    """Return Services of every type, also headless ones, with the defaults of an API server."""
    contents = st.fixed_dictionaries(
        {"spec": _service_spec(), "status": st.just({"loadBalancer": {}})},
    )
    return objects(Resource("v1", "Service", "services"), contents, names=SERVICE_NAMES)


def ingresses() -> Made:
    """Return Ingresses with rules, a default backend, and certificates."""
    backend = st.builds(
        lambda name: {"service": {"name": name, "port": {"number": 80}}},
        SERVICE_NAMES,
    )
    path = st.fixed_dictionaries(
        {"pathType": st.sampled_from(["Prefix", "Exact"]), "backend": backend},
    )
    rule = st.fixed_dictionaries(
        {"http": st.fixed_dictionaries({"paths": st.lists(path, min_size=1, max_size=2)})},
        optional={"host": st.sampled_from(["a.example.org", "*.example.org"])},
    )
    tls = st.fixed_dictionaries(
        {"hosts": st.just(["a.example.org"])},
        optional={"secretName": NAMES},
    )
    spec = some(
        {
            "ingressClassName": st.sampled_from(["nginx", "other"]),
            "defaultBackend": backend,
            "rules": st.lists(rule, max_size=2),
            "tls": st.lists(tls, max_size=2),
        }
    )
    resource = Resource("networking.k8s.io/v1", "Ingress", "ingresses")
    return objects(resource, st.fixed_dictionaries({"spec": spec}))


def events(about: Made) -> Made:
    """Return Events about an object that ``about`` yields, with its kind, name and uid."""
    resource = Resource("v1", "Event", "events")
    contents = some(
        {
            "message": TEXT,
            "type": st.sampled_from(["Normal", "Warning"]),
            "count": st.integers(1, 9),
        }
    )

    def event(obj: Obj, meta: Obj, rest: Obj) -> Obj:
        metadata = obj["metadata"]
        regarding = {key: obj[key] for key in ("apiVersion", "kind")}
        regarding |= {key: metadata[key] for key in ("name", "namespace", "uid") if key in metadata}
        name = f"{metadata['name'][:200]}.17a"
        return merged(
            build(resource, name, namespace=metadata.get("namespace", "default"), metadata=meta),
            {
                "involvedObject": regarding,
                "reason": "BackOff",
                "source": {"component": "kubelet"},
                **rest,
            },
        )

    return st.builds(event, about, _metadata(), contents)


_COLUMN = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}


def _schema(draw: st.DrawFn) -> Obj:
    fields = st.dictionaries(
        st.sampled_from(["size", "description"]),
        some({"type": "integer", "description": TEXT}),
    )
    spec = {
        "type": "object",
        "properties": draw(fields),
        "x-kubernetes-preserve-unknown-fields": True,
    }
    return {
        "openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": spec, "metadata": {"type": "object"}},
        }
    }


@st.composite
def crds(draw: st.DrawFn, *names: str) -> Obj:
    """Draw CustomResourceDefinitions of these names, of one to three versions, with and without
    conversion webhooks.
    """
    name = draw(st.sampled_from(names))
    plural, _, group = name.partition(".")
    stored = draw(st.integers(0, 2))
    versions = [
        {
            "name": f"v{number}",
            "served": draw(st.booleans()),
            "storage": number == stored,
            "schema": _schema(draw),
            **draw(
                some(
                    {
                        "additionalPrinterColumns": [_COLUMN],
                        "subresources": {"status": {}},
                        "deprecated": True,
                    }
                )
            ),
        }
        for number in range(draw(st.integers(stored, 2)) + 1)
    ]
    webhook = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}
    spec = {
        "group": group,
        "scope": draw(st.sampled_from(["Namespaced", "Cluster"])),
        "names": {
            "plural": plural,
            "kind": "Widget",
            **draw(some({"listKind": "WidgetList", "shortNames": ["w"]})),
        },
        "versions": versions,
        "conversion": draw(st.sampled_from([{"strategy": "None"}, {"strategy": "None"}, webhook])),
        **draw(some({"preserveUnknownFields": st.booleans()})),
    }
    status = {"storedVersions": [f"v{stored}"], "acceptedNames": {"kind": "Widget"}}
    resource = Resource(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        False,
    )
    return build(resource, name, metadata=draw(_metadata()), spec=spec, status=status)
