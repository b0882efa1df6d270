"""Each right that the daemon needs, asked of the API servers: the rules of ``syncer rbac``."""

import asyncio
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable
from itertools import product
from typing import Any, NamedTuple

from syncer.api.objects import Obj
from syncer.api.texts import shortened
from syncer.clusters.client import SideClient
from syncer.daemon.doctor.diagnosis import UNREADABLE, Diagnosis, error, ok, unknown, warning
from syncer.resources.kinds import SELF_ACCESS_REVIEWS, SELF_REVIEWS

#: Questions about rights that an API server is asked at the same time.
AT_ONCE = 8
_SERVICE_ACCOUNT = "system:serviceaccount:"


class AccessQuestion(NamedTuple):
    """A question about the caller's own rights; an empty namespace stands for all of them."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def target(self) -> str:
        """The resource as in a rule of RBAC, with its group: ``deployments/scale.apps``."""
        text = self.resource
        if self.subresource:
            text = f"{text}/{self.subresource}"
        if self.group:
            text = f"{text}.{self.group}"
        return f"{text} {self.name}" if self.name else text


async def may(cluster: SideClient, question: AccessQuestion) -> bool:
    """Return True if the caller has a right. Every user may ask that.

    Raises:
        ClusterError: The request failed.
        DecodeError: The answer can't be read.
    """
    attributes = {name: value for name, value in question._asdict().items() if value}
    review = {
        "apiVersion": SELF_ACCESS_REVIEWS.api_version,
        "kind": SELF_ACCESS_REVIEWS.kind,
        "spec": {"resourceAttributes": attributes},
    }
    answer: Any = await cluster.create(SELF_ACCESS_REVIEWS, review)
    status = answer.get("status") if isinstance(answer, dict) else None
    return isinstance(status, dict) and status.get("allowed") is True


async def user_of(cluster: SideClient) -> str:
    """Return the name by which an API server knows the caller; ``""`` if it doesn't tell."""
    review = {"apiVersion": SELF_REVIEWS.api_version, "kind": SELF_REVIEWS.kind}
    try:
        answer = await cluster.create(SELF_REVIEWS, review)
        return shortened(str(answer["status"]["userInfo"]["username"]))
    except (*UNREADABLE, KeyError, TypeError):
        return ""


def questions(roles: Iterable[Obj]) -> list[AccessQuestion]:
    """Return the rights in the rules of Roles and ClusterRoles, each once."""
    found: dict[AccessQuestion, None] = {}
    for role in roles:
        namespace = role["metadata"].get("namespace", "")
        for rule in role.get("rules", ()):
            names = rule.get("resourceNames", ("",))
            each = product(rule["apiGroups"], rule["resources"], rule["verbs"], names)
            for group, target, verb, name in each:
                resource, _, subresource = target.partition("/")
                question = AccessQuestion(verb, group, resource, subresource, namespace, name)
                found[question] = None
    return list(found)


async def check_rights(
    cluster: SideClient,
    name: str,
    roles: Iterable[Obj],
    *,
    required: Collection[AccessQuestion],
    command: str,
) -> list[Diagnosis]:
    """Return which of the rights in these roles are missing, by namespace.

    Args:
        cluster: The API server to ask.
        name: The name of the virtual cluster that the rights are for; ``""`` for the daemon itself.
        roles: The roles.
        required: The rights without which more than a convenience is missing.
        command: The command that prints the roles.
    """
    room = asyncio.Semaphore(AT_ONCE)

    async def is_missing(question: AccessQuestion) -> bool:
        async with room:
            return not await may(cluster, question)

    check = f"rights on the {cluster.side} side"
    asked = questions(roles)
    if not asked:
        return []
    try:
        missing = await asyncio.gather(*[is_missing(question) for question in asked])
    except UNREADABLE as failure:
        way_out = "Look at the log of the API server: it must answer SelfSubjectAccessReviews."
        return [unknown(name, check, f"they can't be asked for: {failure}", way_out)]

    lacking: dict[tuple[str, bool], list[AccessQuestion]] = defaultdict(list)
    for question, is_lacking in zip(asked, missing, strict=True):
        if is_lacking:
            lacking[question.namespace, question in required].append(question)
    if not lacking:
        return [ok(name, check, f"all {len(asked)} are granted")]

    way_out = f"As an administrator of that cluster: {command} | kubectl apply -f -"
    found = []
    for (namespace, is_required), group in sorted(lacking.items(), key=_in_order):
        where = f" in the namespace {namespace}" if namespace else ""
        message = f"{len(group)} of {len(asked)} are missing{where}: {'; '.join(_by_target(group))}"
        if is_required:
            found.append(error(name, check, message, way_out))
        else:
            found.append(warning(name, check, f"{message} (the daemon works without)", way_out))
    return found


def _in_order(item: tuple[tuple[str, bool], object]) -> tuple[bool, str]:
    """Return the sort key of a group of missing rights: those that are required come first."""
    (namespace, is_required), _ = item
    return not is_required, namespace


def _by_target(missing: Iterable[AccessQuestion]) -> list[str]:
    """Return the missing verbs of each resource: ``create, patch secrets``."""
    verbs: dict[str, list[str]] = defaultdict(list)
    for question in missing:
        verbs[question.target].append(question.verb)
    return [f"{', '.join(each)} {target}" for target, each in sorted(verbs.items())]


def subject_of(user: str) -> str:
    """Return the option of ``syncer rbac`` that names a user; for an unknown one, a placeholder."""
    if not user:
        return "--service-account NAMESPACE/NAME"
    if user.startswith(_SERVICE_ACCOUNT):
        account = user.removeprefix(_SERVICE_ACCOUNT).replace(":", "/")
        return f"--service-account {shlex.quote(account)}"
    return f"--user {shlex.quote(user)}"
