"""Hypothesis strategies for Pods, with every reference, and every field that is translated."""

from hypothesis import strategies as st

from syncer.api import Obj, Resource
from syncer.testing.strategies import LABEL_MAPS, LABELS, NAMES, TEXT, Made, objects, some

_REFERENCE = st.fixed_dictionaries({"name": NAMES}, optional={"optional": st.booleans()})
_KEYED = st.fixed_dictionaries({"name": NAMES, "key": st.just("a")})
_FIELDS = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.labels['app']",
    "spec.nodeName",
    "status.podIP",
]
_FIELD = st.builds(lambda path: {"apiVersion": "v1", "fieldPath": path}, st.sampled_from(_FIELDS))
_SOURCES = st.one_of(
    st.builds(lambda key: {"configMapKeyRef": key}, _KEYED),
    st.builds(lambda key: {"secretKeyRef": key}, _KEYED),
    st.builds(lambda field: {"fieldRef": field}, _FIELD),
    st.just({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}),
)
_ENV = st.lists(
    st.one_of(
        st.builds(
            lambda name, value: {"name": name, "value": value},
            st.sampled_from(["A", "KUBERNETES_PORT"]),
            TEXT,
        ),
        st.builds(lambda source: {"name": "B", "valueFrom": source}, _SOURCES),
    ),
    max_size=2,
)
_ENV_FROM = st.lists(
    st.one_of(
        st.builds(lambda reference: {"configMapRef": reference}, _REFERENCE),
        st.builds(lambda reference: {"prefix": "P_", "secretRef": reference}, _REFERENCE),
    ),
    max_size=2,
)
_RESOURCES = some({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}})
_PARTS = {
    "env": _ENV,
    "envFrom": _ENV_FROM,
    "resources": _RESOURCES,
    "command": ["sleep", "$(A)"],
    "ports": [{"containerPort": 80, "protocol": "TCP"}],
    "volumeMounts": [{"name": "v0", "mountPath": "/v"}],
    "securityContext": {"runAsNonRoot": True},
}


def _containers(prefix: str, most: int, least: int = 0) -> st.SearchStrategy[list[Obj]]:
    parts = st.lists(some(_PARTS), min_size=least, max_size=most)

    def named(all_parts: list[Obj]) -> list[Obj]:
        return [{"name": f"{prefix}{n}", "image": "i:1", **p} for n, p in enumerate(all_parts)]

    return parts.map(named)


_ITEMS = st.just(
    [{"path": "labels", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels"}}],
)
_TOKEN = st.fixed_dictionaries({"path": st.just("token"), "expirationSeconds": st.just(3607)})
_PROJECTED = st.lists(
    st.one_of(
        st.builds(lambda reference: {"configMap": reference}, _REFERENCE),
        st.builds(lambda reference: {"secret": reference}, _REFERENCE),
        st.builds(lambda items: {"downwardAPI": {"items": items}}, _ITEMS),
        st.builds(lambda token: {"serviceAccountToken": token}, _TOKEN),
    ),
    max_size=4,
)
_VOLUME = st.one_of(
    st.builds(lambda name: {"secret": {"secretName": name, "defaultMode": 420}}, NAMES),
    st.builds(lambda reference: {"configMap": reference}, _REFERENCE),
    st.builds(lambda name: {"persistentVolumeClaim": {"claimName": name}}, NAMES),
    st.builds(lambda sources: {"projected": {"defaultMode": 420, "sources": sources}}, _PROJECTED),
    st.builds(lambda items: {"downwardAPI": {"items": items}}, _ITEMS),
    st.just({"emptyDir": {}}),
)
_VOLUMES = st.lists(_VOLUME, max_size=3).map(
    lambda found: [{"name": f"v{n}", **one} for n, one in enumerate(found)],
)

_SELECTOR = st.one_of(
    st.builds(lambda labels: {"matchLabels": labels}, LABEL_MAPS),
    st.just({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}),
    st.just({}),
)
_TERM = st.fixed_dictionaries(
    {"topologyKey": st.just("kubernetes.io/hostname")},
    optional={
        "labelSelector": _SELECTOR,
        "namespaces": st.lists(LABELS, max_size=2),
        "namespaceSelector": _SELECTOR,
    },
)
_AFFINITY = some(
    {
        part: st.builds(
            lambda terms: {"requiredDuringSchedulingIgnoredDuringExecution": terms},
            st.lists(_TERM, max_size=2),
        )
        for part in ("podAffinity", "podAntiAffinity")
    }
)
_SPREAD = st.fixed_dictionaries(
    {
        "maxSkew": st.just(1),
        "topologyKey": st.just("zone"),
        "whenUnsatisfiable": st.just("DoNotSchedule"),
    },
    optional={"labelSelector": _SELECTOR, "matchLabelKeys": st.just(["app"])},
)
_SPEC = {
    "initContainers": _containers("i", 1),
    "volumes": _VOLUMES,
    "serviceAccountName": NAMES,
    "automountServiceAccountToken": st.booleans(),
    "imagePullSecrets": st.lists(st.builds(lambda name: {"name": name}, NAMES), max_size=2),
    "affinity": _AFFINITY,
    "topologySpreadConstraints": st.lists(_SPREAD, max_size=1),
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "hostname": LABELS,
    "subdomain": LABELS,
    "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["a"]}],
    "dnsPolicy": st.sampled_from(["ClusterFirst", "Default", "None"]),
    "dnsConfig": some(
        {
            "nameservers": ["192.0.2.1"],
            "searches": ["x"],
            "options": [{"name": "ndots", "value": "2"}],
        }
    ),
    "enableServiceLinks": st.booleans(),
    "terminationGracePeriodSeconds": st.integers(0, 60),
    "priorityClassName": "high",
    "priority": 1000,
    "schedulerName": "default-scheduler",
    "readinessGates": [{"conditionType": "example.org/ready"}],
    "schedulingGates": [{"name": "example.org/wait"}],
    "securityContext": {"fsGroup": 1000},
}


@st.composite
def _contents(draw: st.DrawFn) -> Obj:
    fixed = {"containers": draw(_containers("c", 2, 1)), "restartPolicy": "Always"}
    account = {"serviceAccountName": "default"}
    return {"spec": {**account, **fixed, **draw(some(_SPEC))}, "status": {"phase": "Pending"}}


def pods() -> Made:
    """Return Pods that are not scheduled yet, with an API server's defaults and admission."""
    return objects(Resource("v1", "Pod", "pods"), _contents())
