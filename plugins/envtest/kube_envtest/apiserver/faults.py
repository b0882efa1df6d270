"""Fault injection: failures between a client and an API server, on purpose and reproducibly."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from random import Random
from typing import TYPE_CHECKING

from kube_envtest.apiserver.errors import ApiError, expired, too_many

if TYPE_CHECKING:
    from kube_envtest.apiserver.request import Request

MODIFIED = (
    "Operation cannot be fulfilled: the object has been modified; "
    "please apply your changes to the latest version and try again"
)

#: ``reset`` of a connection before the server does anything.
BEFORE = "before"
#: ``reset`` of a connection after the server has stored the change.
AFTER = "after"


@dataclass(slots=True)
class Rule:
    """A fault. It applies to requests that match all its conditions, at most ``count`` times.

    Conditions: ``verb`` (``get list watch create update patch delete deletecollection``),
    ``resource`` (plural), ``user`` and ``path`` are shell patterns. ``probability`` is drawn for
    each request, or for each event of a watch.

    Effects: ``latency`` in seconds, before the server begins (in virtual time, too); ``status``
    409, 410, 429, 500 or 503 instead of the response, with ``retry_after`` seconds if given;
    ``reset`` ``"before"`` or ``"after"`` the change is stored; for watches ``drop``, ``duplicate``
    and ``cut``, each for a single event. ``rewrite`` returns the bytes that are sent instead of
    those it is given: a response's body, or with ``verb="watch"`` an event's line.
    """

    verb: str = "*"
    resource: str = "*"
    user: str = "*"
    path: str = "*"
    probability: float = 1.0
    count: int | None = None
    latency: float = 0.0
    status: int = 0
    retry_after: int | None = None
    reset: str = ""
    drop: bool = False
    duplicate: bool = False
    cut: bool = False
    rewrite: Callable[[bytes], bytes] | None = None
    hits: int = field(default=0, init=False)

    @property
    def on_events(self) -> bool:
        """True if it is about the events of watches."""
        rewritten = self.rewrite is not None and self.verb == "watch"
        return self.drop or self.duplicate or self.cut or rewritten

    def matches(self, verb: str, resource: str, request: "Request") -> bool:
        """Return True if it applies to a request."""
        wanted = ((self.verb, verb), (self.resource, resource), (self.user, request.user.name))
        if any(pattern != "*" and not fnmatchcase(value, pattern) for pattern, value in wanted):
            return False
        return self.path == "*" or fnmatchcase(request.path, self.path)


class Faults:
    """The faults of a server. ``seed`` makes probabilities reproducible.

    ``faults.add(Rule(verb="create", status=503, count=3))``; ``add`` returns the rule, for
    ``remove`` and its ``hits``.
    """

    def __init__(self, seed: int = 0) -> None:
        self.rules: list[Rule] = []
        self._chance = Random(seed)

    def add(self, rule: Rule) -> Rule:
        """Add a rule."""
        if rule.reset not in ("", BEFORE, AFTER):
            raise ValueError(f"Rule.reset is {rule.reset!r}; it is 'before' or 'after'")
        self.rules.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        """Remove a rule."""
        self.rules.remove(rule)

    def clear(self) -> None:
        """Remove all rules."""
        self.rules.clear()

    def _strikes(self, rule: Rule) -> bool:
        if rule.count is not None and rule.hits >= rule.count:
            return False
        if rule.probability < 1.0 and self._chance.random() >= rule.probability:
            return False
        rule.hits += 1
        return True

    def for_request(self, verb: str, resource: str, request: "Request") -> list[Rule]:
        """Return the rules that apply to this request."""
        return [
            rule
            for rule in self.rules
            if not rule.on_events and rule.matches(verb, resource, request) and self._strikes(rule)
        ]

    def for_events(self, resource: str, request: "Request") -> Callable[[], Rule | None]:
        """Return a function that returns the rule for the next event of a watch.

        Rules added while the watch is open apply to it.
        """

        def strike() -> Rule | None:
            for rule in self.rules:
                if rule.on_events and rule.matches("watch", resource, request) and self._strikes(rule):
                    return rule
            return None

        return strike


def failure(rules: list[Rule]) -> ApiError | None:
    """Return the error that the rules raise instead of a response."""
    for rule in rules:
        if rule.status:
            return _error(rule)
    return None


def _error(rule: Rule) -> ApiError:
    match rule.status:
        case 409:
            return ApiError(409, "Conflict", MODIFIED, {})
        case 410:
            return expired("The resourceVersion for the provided list is too old.")
        case 429:
            retry_after = rule.retry_after
            if retry_after is None:
                retry_after = 1
            return too_many(retry_after=retry_after)
        case 503:
            seconds = {} if rule.retry_after is None else {"Retry-After": str(rule.retry_after)}
            text = "the server is currently unable to handle the request"
            return ApiError(503, "ServiceUnavailable", text, {}, headers=seconds)
        case 504:
            return ApiError(504, "Timeout", "Timeout: request did not complete within the allotted timeout", {})
        case _:
            return ApiError(rule.status, "InternalError", "Internal error occurred: injected by a test", {})
