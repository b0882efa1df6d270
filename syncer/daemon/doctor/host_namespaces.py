"""The host namespaces of a virtual cluster: the room in their quotas, and what admission says.

Admission is asked by dry runs, which store nothing: RBAC lets the daemon make them, and it needs no
right to read policies.
"""

from syncer.api.context import Settings
from syncer.api.errors import Denied, Forbidden, QuotaExceeded
from syncer.api.objects import Key, Obj, Resource, Side, labels_of
from syncer.clusters.client import SideClient
from syncer.daemon.doctor.diagnosis import UNREADABLE, Diagnosis, error, ok, unknown, warning
from syncer.resources.kinds import CONFIG_MAPS, NAMESPACES, PODS, SECRETS
from syncer.resources.namespace_values import ENFORCE
from syncer.resources.pods.config import PodConfig
from syncer.rights.admission import LEVELS
from syncer.rights.rbac import QUOTAS, Share, allows
from syncer.translate.quantities import quantity

#: Host namespaces of a virtual cluster that are checked, where the daemon makes them.
MOST_CHECKED = 20
#: The name of the objects of dry runs.
PROBE_NAME = "vsyncer-doctor"
#: The virtual object whose copy a dry run would be.
_PROBE = Key("default", PROBE_NAME)


async def check_host_namespaces(
    host: SideClient, settings: Settings, share: Share, command: str
) -> list[Diagnosis]:
    """Check the quotas and the admission of the host namespaces.

    ``command`` prints the daemon's admission policy.
    """
    name = settings.cluster
    found: list[Diagnosis] = []
    namespaces = await _namespaces(host, settings)
    for namespace in namespaces:
        found += await _check_quotas(host, name, namespace)
        found += await _check_pod_security(host, settings, namespace)
    if namespaces:
        found += await _check_admission(host, settings, share, namespaces[0], command)
    return found


async def _namespaces(host: SideClient, settings: Settings) -> list[str]:
    """Return the host namespaces: those that the translator fixes, or the first with our mark."""
    fixed = settings.names.host_namespaces()
    if fixed is not None:
        return sorted(fixed)
    selector = settings.marks.selector(settings.identity)
    try:
        made = await host.list(NAMESPACES, selector=selector)
    except UNREADABLE:
        return []  # the rights say so already
    return sorted(each["metadata"]["name"] for each in made)[:MOST_CHECKED]


async def _check_quotas(host: SideClient, name: str, namespace: str) -> list[Diagnosis]:
    check = f"quota of {namespace}"
    try:
        quotas = await host.list(QUOTAS, namespace=namespace)
    except Forbidden:
        return []  # the rights say so already
    except UNREADABLE as failure:
        return [unknown(name, check, str(failure), "Run this again once the host answers.")]
    full = [text for quota in quotas for text in _full(quota)]
    if full:
        way_out = "Raise the quota, or let the tenant delete something; parked objects then go on."
        return [warning(name, check, f"there is no room for more: {'; '.join(full)}", way_out)]
    if not quotas:
        way_out = "Without a ResourceQuota a tenant may fill the host (docs: Hardening)."
        return [warning(name, check, "there is none", way_out)]
    return [ok(name, check, f"there is room in {len(quotas)}")]


def _full(quota: Obj) -> list[str]:
    """Return the resources of which a quota has nothing left."""
    status = quota.get("status") or {}
    used = status.get("used") or {}
    texts = []
    for resource, hard in (status.get("hard") or {}).items():
        most = quantity(hard)
        amount = used.get(resource, "0")
        taken = quantity(amount)
        if most and taken is not None and taken >= most:  # a quota of 0 forbids, and is meant
            texts.append(f"{quota['metadata']['name']}: {amount} of {hard} {resource}")
    return texts


async def _check_pod_security(
    host: SideClient, settings: Settings, namespace: str
) -> list[Diagnosis]:
    """Compare the Pod Security level that the host enforces with the one of the configuration."""
    config = settings.section("pods", PodConfig)
    if config is None:
        return []
    name = settings.cluster
    check = f"Pod Security of {namespace}"
    try:
        labels = labels_of(await host.get(NAMESPACES, Key("", namespace)))
    except UNREADABLE:
        return []  # the start says so already
    level = labels.get(ENFORCE, "")
    allowed = config.pod_security
    if level not in LEVELS:
        way_out = f"kubectl label namespace {namespace} {ENFORCE}={allowed} (docs: Hardening)"
        message = "the host enforces no level there; the daemon alone checks Pods"
        return [warning(name, check, message, way_out)]
    if LEVELS.index(level) > LEVELS.index(allowed):
        way_out = f"Set sync.toHost.pods.podSecurity to {level}, so that tenants get the reason."
        message = f"the host enforces {level}, and the daemon lets {allowed} Pods pass"
        return [warning(name, check, message, way_out)]
    return [ok(name, check, f"the host enforces {level}, the daemon {allowed}")]


# -- admission -------------------------------------------------------------------------------------


async def _check_admission(
    host: SideClient, settings: Settings, share: Share, namespace: str, command: str
) -> list[Diagnosis]:
    """Try copies in a dry run, and an object without marks, which should be refused."""
    name = settings.cluster
    found: list[Diagnosis] = []
    writable = [each for each in (CONFIG_MAPS, SECRETS, PODS) if _may_create(share, each)]
    for resource in writable:
        check = f"admission of {resource} in {namespace}"
        try:
            await host.try_create(resource, _probe(settings, resource, namespace))
        except Denied as refusal:
            way_out = "Exempt the daemon's user from that policy, or let the policy fit the copies."
            found.append(error(name, check, f"a copy is refused: {refusal}", way_out))
        except QuotaExceeded:
            continue  # the quota says so already
        except Forbidden:
            continue  # the rights say so already
        except UNREADABLE as failure:
            way_out = "A webhook must allow dry runs (sideEffects: None) to be checked."
            found.append(unknown(name, check, f"a dry run fails: {failure}", way_out))
        else:
            found.append(ok(name, check, "a copy is accepted"))
    if writable:
        found += await _check_confinement(host, settings, writable[0], namespace, command)
    return found


async def _check_confinement(
    host: SideClient, settings: Settings, resource: Resource, namespace: str, command: str
) -> list[Diagnosis]:
    """Check that the host refuses the daemon an object without marks."""
    check = f"confinement of the daemon in {namespace}"
    unmarked = _probe(settings, resource, namespace)
    unmarked["metadata"] = {"name": PROBE_NAME, "namespace": namespace}
    try:
        await host.try_create(resource, unmarked)
    except Denied:
        message = "the host refuses the daemon objects without its mark"
        return [ok(settings.cluster, check, message)]
    except Forbidden:
        return []  # the rights say so already
    except UNREADABLE:
        return []  # as for a copy
    message = "nothing but RBAC keeps the daemon from objects that aren't copies"
    return [warning(settings.cluster, check, message, f"As an administrator: {command}")]


def _may_create(share: Share, resource: Resource) -> bool:
    return allows(share.granted, Side.HOST, resource, "create")


def _probe(settings: Settings, resource: Resource, namespace: str) -> Obj:
    """Return an object that looks like a copy, and that a restricted namespace accepts."""
    marks = settings.marks
    original = {"metadata": {"name": _PROBE.name, "namespace": _PROBE.namespace, "uid": PROBE_NAME}}
    metadata = {
        "name": PROBE_NAME,
        "namespace": namespace,
        "labels": marks.labels(settings.identity, _PROBE),
        "annotations": marks.annotations(resource, original, Key(namespace, PROBE_NAME)),
    }
    obj: Obj = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
    }
    if resource == PODS:
        obj["spec"] = _pod_spec()
    return obj


def _pod_spec() -> Obj:
    context = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 65534,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    amounts = {"cpu": "1m", "memory": "1Mi"}
    container = {
        "name": PROBE_NAME,
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"limits": amounts, "requests": amounts},
        "securityContext": context,
    }
    return {
        "automountServiceAccountToken": False,
        "containers": [container],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    }
