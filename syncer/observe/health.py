"""The health endpoints ``/livez``, ``/readyz`` and ``/healthz``, each a list of named checks.

The pages look like kube-apiserver's: ``ok``, or a line for each check with ``?verbose`` or after a
failure; status 500 on failure; ``?exclude=NAME`` and ``/readyz/NAME``. Unlike kube-apiserver's, a
failed check shows its reason, which contains no secret.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from syncer.observe.server import reply, routes

#: Returns the problem as a sentence for any reader, or None. Called on the server's threads.
Check = Callable[[], str | None]

#: Interval of the event loop's heartbeat, in seconds.
BEAT = 1.0
#: Seconds without a heartbeat after which the loop counts as stuck.
DEADLINE = 60.0


class _OfOne(str):
    """The problem of one virtual cluster, while another has none."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check."""

    name: str
    problem: str | None = None
    excluded: bool = False

    def __str__(self) -> str:
        if self.excluded:
            return f"[+]{self.name} excluded: ok"
        if isinstance(self.problem, _OfOne):
            return f"[!]{self.name} degraded: {self.problem}"
        if self.problem:
            return f"[-]{self.name} failed: {self.problem}"
        return f"[+]{self.name} ok"


class Checks:
    """The checks, by name.

    Liveness is for failures that only a restart repairs, so it must not depend on a cluster.
    """

    def __init__(self) -> None:
        self._live: dict[str, Check] = {"ping": _ping}
        self._ready: dict[str, Check] = {"ping": _ping}
        self._by_cluster: dict[str, Callable[[], Mapping[str, str | None]]] = {}
        self._remarks: dict[str, Callable[[], Mapping[str, str]]] = {}

    def live(self, name: str, check: Check) -> None:
        """Add a check to ``/livez`` and ``/healthz``."""
        self._live[name] = check

    def ready(self, name: str, check: Check) -> None:
        """Add a check to ``/readyz``."""
        self._ready[name] = check

    def ready_by_cluster(self, name: str, read: Callable[[], Mapping[str, str | None]]) -> None:
        """Add checks ``name/CLUSTER`` to ``/readyz``, one for each virtual cluster.

        ``read`` returns the problem of each virtual cluster, or None. While one of them has no
        problem, the daemon is ready, and the others are degraded.
        """
        self._by_cluster[name] = read

    def remark(self, state: str, read: Callable[[], Mapping[str, str]]) -> None:
        """Show on ``/readyz`` the parts that are in a state, such as degraded; the daemon stays
        ready.

        ``read`` returns their names with the reasons.
        """
        self._remarks[state] = read

    def app(self) -> WSGIApplication:
        """Return the WSGI application that serves the pages."""
        return routes(
            {
                "/livez": _page("livez", self._all_live, {}),
                "/readyz": _page("readyz", self._all_ready, self._remarks),
                "/healthz": _page("healthz", self._all_live, {}),
            },
        )

    def live_lines(self) -> list[str]:
        """Return a line for each check of ``/livez``."""
        return _lines(_run(self._live), {})

    def ready_lines(self, others: Collection[str] = ()) -> list[str]:
        """Return a line for each check of ``/readyz``, and for each remark, but for those about
        ``others``, which are names of virtual clusters.
        """
        return _lines(_run(self._all_ready(others)), self._remarks, others)

    def _all_live(self) -> Mapping[str, Check]:
        return self._live

    def _all_ready(self, others: Collection[str] = ()) -> Mapping[str, Check]:
        checks = dict(self._ready)
        for name, read in self._by_cluster.items():
            try:
                problems = read()
                is_one_well = None in problems.values()
                for cluster, problem in problems.items():
                    if cluster in others:
                        continue
                    if problem and is_one_well:
                        problem = _OfOne(problem)
                    checks[f"{name}/{cluster}"] = _constant(problem or None)
            except Exception as error:  # noqa: BLE001  # as in _run
                checks[name] = _constant(_broken(error))
        return checks


class Heartbeat:
    """A check that fails ``deadline`` seconds after the last :meth:`beat`.

    ``subject`` begins the message.
    """

    def __init__(
        self,
        subject: str = "the event loop",
        *,
        deadline: float = DEADLINE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._subject = subject
        self._deadline = deadline
        self._clock = clock
        self._last = clock()

    def beat(self) -> None:
        """Record a beat."""
        self._last = self._clock()

    async def keep(self) -> None:
        """Beat while the event loop runs. Run it as a task."""
        while True:
            self.beat()
            await asyncio.sleep(BEAT)

    def __call__(self) -> str | None:
        """Return the problem, or None."""
        silent = self._clock() - self._last
        if silent <= self._deadline:
            return None
        return f"{self._subject} has given no sign of life for {silent:.0f} s"


def at_most(seconds: float, age: Callable[[], float], subject: str) -> Check:
    """Return a check that fails while ``age()`` is over ``seconds``.

    Its message begins with ``subject``.
    """

    def check() -> str | None:
        now = age()
        if now <= seconds:
            return None
        return f"{subject} for {now:.0f} s, more than {seconds:.0f} s"

    return check


def _ping() -> None:
    """Return None: if the server answers, the check passes."""


def _constant(problem: str | None) -> Check:
    """Return a check with a known result."""

    def check() -> str | None:
        return problem

    return check


def _page(
    name: str,
    read: Callable[[], Mapping[str, Check]],
    remarks: Mapping[str, Callable[[], Mapping[str, str]]],
) -> WSGIApplication:
    def page(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        checks = read()
        chosen = environ["PATH_INFO"].removeprefix(f"/{name}").strip("/")
        if chosen and chosen not in checks:
            return reply(
                start_response,
                "404 Not Found",
                f"no check {chosen}; there are {', '.join(checks)}\n",
            )
        if chosen:
            checks = {chosen: checks[chosen]}
        query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        results = _run(checks, excluded=query.get("exclude", ()))

        lines = _lines(results, remarks)
        for result in results:
            # A problem of one virtual cluster fails only its own page.
            if result.problem and (chosen or not isinstance(result.problem, _OfOne)):
                lines.append(f"{name} check failed\n")
                return reply(start_response, "500 Internal Server Error", "\n".join(lines))
        if "verbose" in query:
            lines.append(f"{name} check passed\n")
            return reply(start_response, "200 OK", "\n".join(lines))
        return reply(start_response, "200 OK", "ok")

    return page


def _lines(
    results: Iterable[CheckResult],
    remarks: Mapping[str, Callable[[], Mapping[str, str]]],
    others: Collection[str] = (),
) -> list[str]:
    """Return a line for each result, and for each remark but those about ``others``."""
    lines = [str(result) for result in results]
    for state, read_parts in remarks.items():
        for part, why in read_parts().items():
            if part.partition("/")[0] not in others:
                lines.append(f"[!]{part} {state}: {why}")
    return lines


def _run(checks: Mapping[str, Check], excluded: Iterable[str] = ()) -> list[CheckResult]:
    results = []
    for name, check in list(checks.items()):
        if name in excluded:
            results.append(CheckResult(name, excluded=True))
            continue
        try:
            problem = check()
        except Exception as error:  # noqa: BLE001  # a check that can't be made has not passed
            problem = _broken(error)
        results.append(CheckResult(name, problem))
    return results


def _broken(error: Exception) -> str:
    """Return a message for a check that raised an error.

    The text of the error, which may contain anything, is left out.
    """
    return f"the check itself failed: {type(error).__name__}"
