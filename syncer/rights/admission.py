"""The admission policy that confines the daemon's user on the host to copies, whatever it asks for.

RBAC can't say "only objects with our mark", so with a name translator that makes host namespaces
the daemon's roles are for the whole host. The API server itself evaluates this policy
(kubernetes.io, "Validating Admission Policy"). Admission doesn't check reads.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, get_args

from syncer.api import Marks, Obj, Right, Side
from syncer.resources.namespace_values import ENFORCE
from syncer.resources.pods.security import SecurityLevel

#: The label with the version of Kubernetes whose rules a Pod Security level has.
VERSION = f"{ENFORCE}-version"
#: The Pod Security levels, the strictest one last.
LEVELS: Sequence[str] = get_args(SecurityLevel)

_API = "admissionregistration.k8s.io/v1"


class Confined(NamedTuple):
    """A virtual cluster, and where its copies may be written."""

    #: Its identity in marks.
    identity: str
    #: The host namespaces that are not ours, or that the translator fixes.
    namespaces: Sequence[str]
    #: True if the daemon makes host namespaces, and writes into those with the mark.
    makes_namespaces: bool
    #: True if it answers as the kubelet of the virtual Nodes, and connects to pods there.
    connects: bool = False
    #: The Pod Security labels of the host namespaces that it makes; without any, they may be what
    #: they like.
    pod_security: Mapping[str, str] = MappingProxyType({})
    #: The kinds that it writes in other host namespaces, as :func:`named_kinds` returns them.
    named: Sequence[str] = ()


def named_kinds(granted: Iterable[Right]) -> Sequence[str]:
    """Return the kinds that these rights allow to create in host namespaces besides those of
    copies, each as ``namespace/plural.group``, of the core group ``namespace/plural.``.
    """
    found = set[str]()
    for right in granted:
        if right.side is Side.HOST and "create" in right.verbs:
            kind = f"{right.resource.plural}.{right.resource.group}"
            found.update(f"{namespace}/{kind}" for namespace in right.namespaces)
    return sorted(found)


def policy(
    clusters: Sequence[Confined],
    *,
    name: str,
    user: str,
    marks: Marks,
    lease: tuple[str, str] | None,
    lent: Mapping[str, bool] = MappingProxyType({}),
    lent_kinds: Sequence[str] = (),
    is_shared: bool = False,
) -> list[Obj]:
    """Return a ValidatingAdmissionPolicy for writes and connects of a user, with its binding.

    Args:
        clusters: The virtual clusters that the daemon serves.
        name: The name of both objects.
        user: The daemon's user on the host, such as ``system:serviceaccount:vc-shop:syncer``.
        marks: The marks of copies.
        lease: The namespace and name of the Lease for leader election; None without it.
        lent: The host namespaces of virtual clusters whose names aren't known beforehand, each with
            whether it answers as the kubelet there. Any mark that isn't of one of ``clusters`` may
            be written there.
        lent_kinds: The kinds that these virtual clusters write in other host namespaces.
        is_shared: True if replicas share the fleet: then their Leases' names begin with that of
            ``lease`` and a hyphen.
    """
    makers = [each.identity for each in clusters if each.makes_namespaces]
    reached = [each.identity for each in clusters if each.connects]
    lent_with_pods = [namespace for namespace, connects in lent.items() if connects]
    variables = {
        "now": _mark("object", marks),
        "before": _mark("oldObject", marks),
        "home": _mark("namespaceObject", marks),
        "places": _by_identity({each.identity: each.namespaces for each in clusters}),
        "makers": _list(makers),
        "lease": _lease(lease, is_shared=is_shared),
        "reached": _list(reached),
        "lent": _list(list(lent)),
        "lentPods": _list(lent_with_pods),
        "enforced": _enforced(clusters),
        "kind": (
            "(has(request.namespace) ? request.namespace : '') + '/'"
            " + request.resource.resource + '.' + request.resource.group"
        ),
        "named": _by_identity({each.identity: each.named for each in clusters}),
        "lentKinds": _list(lent_kinds),
        "whose": "request.operation == 'DELETE' ? variables.before : variables.now",
    }

    rule = {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "resources": ["*/*"],
        "scope": "*",
        "operations": ["CREATE", "UPDATE", "DELETE", "CONNECT"],
    }
    conditions = {
        "by-the-daemon": f"request.userInfo.username == {_text(user)}",
        # A question about one's own rights is a CREATE that stores nothing.
        "no-review": "request.resource.group != 'authorization.k8s.io'",
    }
    spec: Obj = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": _named(conditions),
        "variables": _named(variables),
        "validations": _validations(marks),
    }
    binding: Obj = {"policyName": name, "validationActions": ["Deny"]}
    return [
        _object("ValidatingAdmissionPolicy", name, spec),
        _object("ValidatingAdmissionPolicyBinding", name, binding),
    ]


def _named(expressions: Mapping[str, str]) -> list[Obj]:
    return [{"name": name, "expression": text} for name, text in expressions.items()]


def _object(kind: str, name: str, spec: Obj) -> Obj:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name}, "spec": spec}


#: The expression for a connection of ``kubectl exec``, ``attach`` or ``port-forward`` to a tenant's
#: host namespace.
_TO_PODS = (
    "(request.resource.group == '' && request.resource.resource == 'pods'"
    " && has(request.subResource)"
    " && request.subResource in ['exec', 'attach', 'portforward']"
    " && (variables.reached.exists(each, request.namespace in variables.places[each])"
    " || request.namespace in variables.lentPods"
    " || (variables.home in variables.reached && variables.home in variables.makers)))"
)

#: The expression for what would give the daemon rights or effects that its own don't: a token of an
#: account, as a request or in a Secret that the host fills, a Pod on a node of its choice, and the
#: end of any Pod, as the mark of such an object isn't that of the Pod.
_BEYOND_COPIES = (
    "((request.resource.group == '' && has(request.subResource)"
    " && request.resource.resource + '/' + request.subResource"
    " in ['serviceaccounts/token', 'pods/binding', 'pods/eviction'])"
    " || (request.resource.group == '' && request.resource.resource in ['bindings', 'secrets']"
    " && request.operation in ['CREATE', 'UPDATE']"
    " && (request.resource.resource == 'bindings'"
    " || (has(object.type) && object.type == 'kubernetes.io/service-account-token'))))"
)

#: The expression for a write to where virtual clusters put copies whose names aren't known
#: beforehand.
_TO_LENT = (
    "(variables.whose != '' && size(variables.lent) > 0 && (has(request.namespace)"
    " ? request.namespace in variables.lent || variables.kind in variables.lentKinds"
    " : !(request.resource.group == '' && request.resource.resource == 'namespaces')))"
)


def _validations(marks: Marks) -> list[Obj]:
    """Return the rules, with the messages for the daemon's log.

    A refusal is a 403 as those of RBAC, which says that a right is missing; by default it would be
    a 422, by which an API server complains about the object.
    """
    only = "the syncer writes only"
    no_weaker = "no weaker Pod Security level for host namespaces"
    rules = [
        {
            # These are CREATEs, of objects that may bear any mark.
            "expression": f"(request.operation != 'CONNECT' || {_TO_PODS}) && !{_BEYOND_COPIES}",
            "message": (
                "the syncer connects to nothing but pods of its tenants on the host, and neither"
                " gets tokens nor binds or evicts pods there"
            ),
        },
        {
            "expression": (
                "variables.lease || request.operation == 'CONNECT'"
                f" || ((variables.whose in variables.places || {_TO_LENT})"
                " && (request.operation == 'CREATE' || variables.before == variables.whose))"
            ),
            "message": f"{only} objects with its mark {marks.cluster}, which they had before",
        },
        {
            "expression": (
                "variables.lease || request.operation == 'CONNECT'"
                " || !(variables.whose in variables.places)"
                " || (request.resource.group == '' && request.resource.resource == 'namespaces'"
                " ? variables.whose in variables.makers"
                " : !has(request.namespace)"
                " || request.namespace in variables.places[variables.whose]"
                " || variables.kind in variables.named[variables.whose]"
                " || (variables.whose in variables.makers && variables.home == variables.whose))"
            ),
            "message": f"{only} into host namespaces with its mark, or that it is configured for",
        },
        {
            "expression": (
                "request.operation in ['CONNECT', 'DELETE'] || request.resource.group != ''"
                " || request.resource.resource != 'namespaces'"
                " || !(variables.whose in variables.enforced)"
                f" || [{_label('object', ENFORCE)}, {_label('object', VERSION)}]"
                " in variables.enforced[variables.whose]"
                f" || (request.operation == 'UPDATE' && {_same(ENFORCE)} && {_same(VERSION)})"
            ),
            "message": f"the syncer sets {no_weaker} than it is configured for",
        },
    ]
    return [{**rule, "reason": "Forbidden"} for rule in rules]


def _enforced(clusters: Sequence[Confined]) -> str:
    """Return the expression for the Pod Security labels that host namespaces may have.

    They are pairs of the level and the version, by identity.
    """
    entries: list[str] = []
    for cluster in clusters:
        level = cluster.pod_security.get(ENFORCE)
        if not cluster.makes_namespaces or not level:
            continue
        version = _text(cluster.pod_security.get(VERSION, ""))
        allowed = LEVELS[LEVELS.index(level) :]
        pairs = [f"[{_text(each)}, {version}]" for each in allowed]
        entries.append(f"{_text(cluster.identity)}: [{', '.join(pairs)}]")
    return f"{{{', '.join(entries)}}}"


def _mark(obj: str, marks: Marks) -> str:
    """Return the expression for the identity in an object's marks; ``''`` if it has none."""
    return _label(obj, marks.cluster)


def _same(label: str) -> str:
    """Return the expression for a label that an object had before."""
    return f"{_label('object', label)} == {_label('oldObject', label)}"


def _label(obj: str, label: str) -> str:
    """Return the expression for the value of an object's label; ``''`` if it has none."""
    key = _text(label)
    labels = f"{obj}.metadata.labels"
    has_label = f"{obj} != null && has({obj}.metadata) && has({labels}) && {key} in {labels}"
    return f"({has_label} ? string({labels}[{key}]) : '')"


def _by_identity(texts: Mapping[str, Sequence[str]]) -> str:
    """Return the expression for lists by identity."""
    entries = [f"{_text(identity)}: {_list(each)}" for identity, each in texts.items()]
    return f"{{{', '.join(entries)}}}"


def _lease(lease: tuple[str, str] | None, *, is_shared: bool) -> str:
    """Return the expression for a request about a Lease of the daemon."""
    if lease is None:
        return "false"
    namespace, name = lease
    conditions = [
        "request.resource.group == 'coordination.k8s.io'",
        "request.resource.resource == 'leases'",
        f"request.namespace == {_text(namespace)}",
    ]
    if is_shared:
        conditions.append(f"request.name.startsWith({_text(name + '-')})")
    else:
        conditions.append(f"request.name == {_text(name)}")
    return " && ".join(conditions)


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _text(text: str) -> str:
    """Return a CEL string; names, identities and keys need no escapes that JSON doesn't have."""
    return json.dumps(text)
