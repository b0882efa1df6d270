"""RBAC: evaluate roles and bindings like the real authoriser.

Source: `kubernetes/plugin/pkg/auth/authorizer/rbac` and `pkg/apis/rbac/v1/evaluation_helpers.go`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kube_envtest.apiserver.selectors import parse_labels

Obj = dict[str, Any]
Rule = Mapping[str, Any]

#: The group that may do everything, whatever the roles.
MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
ANONYMOUS = "system:anonymous"


@dataclass(frozen=True, slots=True)
class User:
    """A user name and groups, with or without those of the system (`system:authenticated`, …)."""

    name: str
    groups: tuple[str, ...] = ()

    def in_group(self, group: str) -> bool:
        """Return True if the user is in a group; all users but the anonymous one are authenticated."""
        if group in self.groups:
            return True
        match group:
            case "system:authenticated":
                return self.name != ANONYMOUS
            case "system:unauthenticated":
                return self.name == ANONYMOUS
            case "system:serviceaccounts":
                return self.name.startswith("system:serviceaccount:")
            case _:
                namespace = group.removeprefix("system:serviceaccounts:")
                return namespace != group and self.name.startswith(f"system:serviceaccount:{namespace}:")


def authorise(
    user: User,
    verb: str,
    group: str,
    resource: str,
    subresource: str,
    namespace: str,
    name: str,
    *,
    roles: Iterable[Obj],
    cluster_roles: Iterable[Obj],
    role_bindings: Iterable[Obj],
    cluster_role_bindings: Iterable[Obj],
) -> bool:
    """Return True if `user` may do `verb` on a resource.

    `namespace` is "" for the whole cluster, `name` "" for all objects.
    """
    if MASTERS in user.groups:
        return True
    asked = f"{resource}/{subresource}" if subresource else resource

    def allows(rule: Rule) -> bool:
        return (
            _any(rule, "verbs", verb)
            and _any(rule, "apiGroups", group)
            and _resource(rule, asked, subresource)
            and (not rule.get("resourceNames") or name in rule["resourceNames"])
        )

    if _bound(user, allows, cluster_role_bindings, cluster_roles):
        return True
    if not namespace:
        return False
    local = [binding for binding in role_bindings if _namespace(binding) == namespace]
    here = [role for role in roles if _namespace(role) == namespace]
    return _bound(user, allows, local, cluster_roles, local=here, namespace=namespace)


def authorise_url(
    user: User,
    verb: str,
    path: str,
    *,
    cluster_roles: Iterable[Obj],
    cluster_role_bindings: Iterable[Obj],
) -> bool:
    """Return True if `user` may do `verb` (`get`, `post`, …) on a path that is no resource, such as
    `/healthz`.
    """
    if MASTERS in user.groups:
        return True

    def allows(rule: Rule) -> bool:
        return _any(rule, "verbs", verb) and any(_url(url, path) for url in rule.get("nonResourceURLs") or ())

    return _bound(user, allows, cluster_role_bindings, cluster_roles)


def _any(rule: Rule, key: str, wanted: str) -> bool:
    values = rule.get(key) or ()
    return wanted in values or "*" in values


def _resource(rule: Rule, asked: str, subresource: str) -> bool:
    values = rule.get("resources") or ()
    return asked in values or "*" in values or (bool(subresource) and f"*/{subresource}" in values)


def _url(pattern: str, path: str) -> bool:
    if pattern in ("*", path):
        return True
    return pattern.endswith("*") and path.startswith(pattern.rstrip("*"))


def _namespace(obj: Obj) -> str:
    return str(obj["metadata"].get("namespace", ""))


def _bound(
    user: User,
    allows: Callable[[Rule], bool],
    bindings: Iterable[Obj],
    cluster_roles: Iterable[Obj],
    *,
    local: Iterable[Obj] = (),
    namespace: str = "",
) -> bool:
    """Return True if a binding of `user` refers to a role with a rule that allows it."""
    by_name: dict[tuple[str, str], Obj] | None = None
    for binding in bindings:
        if not any(_is_subject(user, subject, namespace) for subject in binding.get("subjects") or ()):
            continue
        if by_name is None:
            cluster_roles = list(cluster_roles)
            by_name = {("ClusterRole", role["metadata"]["name"]): role for role in cluster_roles}
            by_name |= {("Role", role["metadata"]["name"]): role for role in local}
        ref = binding.get("roleRef") or {}
        role = by_name.get((ref.get("kind", ""), ref.get("name", "")))
        if role is not None and any(allows(rule) for rule in rules_of(role, cluster_roles)):
            return True
    return False


def _is_subject(user: User, subject: Mapping[str, Any], namespace: str) -> bool:
    name = subject.get("name", "")
    match subject.get("kind"):
        case "User":
            return bool(user.name == name)
        case "Group":
            return user.in_group(name)
        case "ServiceAccount":
            where = subject.get("namespace") or namespace
            return bool(where) and user.name == f"system:serviceaccount:{where}:{name}"
        case _:
            return False


def rules_of(role: Obj, cluster_roles: Iterable[Obj], *, above: tuple[int, ...] = ()) -> Iterator[Rule]:
    """Yield a role's rules, and those of the ClusterRoles that it aggregates by labels.

    The real server's controller writes the aggregated rules into the role; here they are read at
    the source. `above` has the ids of the roles that aggregate this one, so that two roles that
    aggregate each other end the recursion.
    """
    yield from role.get("rules") or ()
    above = (*above, id(role))
    for selector in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
        matches = label_selector(selector)
        for other in cluster_roles:
            if id(other) not in above and matches(other["metadata"].get("labels") or {}):
                yield from rules_of(other, cluster_roles, above=above)


def label_selector(selector: Mapping[str, Any]) -> Callable[[Mapping[str, str]], bool]:
    """Return the predicate of a `metav1.LabelSelector`; an empty one matches everything."""
    terms = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for term in selector.get("matchExpressions") or ():
        values = ",".join(term.get("values") or ())
        match term["operator"]:
            case "In":
                terms.append(f"{term['key']} in ({values})")
            case "NotIn":
                terms.append(f"{term['key']} notin ({values})")
            case "Exists":
                terms.append(term["key"])
            case _:
                terms.append(f"!{term['key']}")
    return parse_labels(",".join(terms))
