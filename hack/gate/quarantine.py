"""The quarantine: tests that run and do not decide, for a short time;
judged once for a whole run of ``hack/test``.
"""

import re
from collections.abc import Collection, Iterator

from hack.gate.recorder.gate_recorder import Quarantined

#: Where a failing test always means a fault of the product.
_NEVER = re.compile(r"tests/(unit|cases|laws|hostile)/")
_LIMIT = re.compile(r"# at most (\d+)\b.*")


def faults(text: str, known: Collection[str] | None) -> Iterator[str]:
    """Yield the faults of the file; ``known`` are the ids of all tests,
    None if not all stages ran.
    """
    first, *lines = text.splitlines() or [""]
    limit = _LIMIT.fullmatch(first)
    if not limit:
        wanted = "the most tests that it may hold, as '# at most 10'"
        yield f"its first line must give {wanted}, and is {first!r}"
    listed = [line for line in lines if line.strip() and not line.startswith("#")]
    if limit and len(listed) > int(limit[1]):
        remedy = "mend one, or leave it and its code out"
        yield f"it holds {len(listed)} tests, and may hold {limit[1]}: {remedy}"
    for line in listed:
        one = Quarantined.parse(line)
        if one is None:
            yield f"{line!r} lacks a date or a reason: ID, YYYY-MM-DD, the observation"
        elif _NEVER.match(one.test):
            why = "it runs in one process, so its result is about the product"
            yield f"{one.test} can't be put off: {why}"
        elif known is not None and one.test not in known:
            yield f"no stage knows {one.test}; take its line out, or mend its id"
