"""The tests of the suite: their names, and which of them a run has."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

#: In the name of each test that Kubernetes asks of a conformant cluster.
CONFORMANCE = "[Conformance]"
#: In the name of each test of what a network does with NetworkPolicies, but for those of SCTP.
NETWORK_POLICIES = "[sig-network] Netpol "
_SCTP = "SCTP"
_SIG = re.compile(r"\[(sig-[a-z-]+)\]")
#: A line of ``e2e.test --list-tests``: the place in the sources, and the name.
_LISTED = re.compile(r"^\s*\S+\.go:\d+:\s+(?P<name>.+?)\s*$")


class BadChoice(Exception):
    """A focus or a shard that chooses nothing, or isn't understood."""


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """A test of the suite."""

    #: The full name, such as `[sig-node] Pods should … [Conformance]`.
    name: str

    @property
    def sig(self) -> str:
        """The special interest group of Kubernetes that answers for it, such as `sig-node`."""
        found = _SIG.search(self.name)
        return found[1] if found else "none"

    @property
    def is_serial(self) -> bool:
        """True if no other test may run meanwhile."""
        return "[Serial]" in self.name


def listed(output: str, wanted: str = CONFORMANCE) -> list[Case]:
    """Return the tests with this in their name in the output of ``e2e.test --list-tests``,
    by name.
    """
    lines = (_LISTED.match(line) for line in output.splitlines())
    cases = {Case(line["name"]) for line in lines if line and wanted in line["name"]}
    return sorted(case for case in cases if wanted == CONFORMANCE or _SCTP not in case.name)


def chosen(cases: Sequence[Case], focus: str = "", shard: str = "1/1") -> list[Case]:
    """Return the tests of a focus and a shard.

    Args:
        cases: All tests.
        focus: A sig, such as `sig-node`, or a regular expression that is searched in names; empty
            for all.
        shard: `I/N`: the I-th of N parts, which have about as many tests each.

    Raises:
        BadChoice: The focus is no regular expression or finds nothing, or the shard isn't `I/N`.
    """
    parts = re.fullmatch(r"(\d+)/(\d+)", shard)
    if not parts or not 1 <= int(parts[1]) <= int(parts[2]):
        raise BadChoice(f"--shard {shard}: not I/N with 1 ≤ I ≤ N, such as 2/4")
    try:
        pattern = re.compile(
            re.escape(f"[{focus}]") if re.fullmatch(r"sig-[a-z-]+", focus) else focus
        )
    except re.error as error:
        raise BadChoice(
            f"--focus {focus}: neither a sig nor a regular expression: {error}"
        ) from error
    found = [case for case in cases if pattern.search(case.name)]
    if not found:
        sigs = ", ".join(sorted({case.sig for case in cases}))
        raise BadChoice(f"--focus {focus}: no test has that in its name; the sigs are {sigs}")
    return found[int(parts[1]) - 1 :: int(parts[2])]


def batches(cases: Sequence[Case], size: int) -> Iterator[list[Case]]:
    """Yield parts of at most `size` tests; those that must run alone come last, and apart."""
    for kind in (False, True):
        same = [case for case in cases if case.is_serial == kind]
        for start in range(0, len(same), size):
            yield same[start : start + size]
