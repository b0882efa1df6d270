"""`hack/chaos --hostile` tells a daemon that an attack slows from a machine that is busy."""

import pytest
from hostile_chaos.pulse import too_slow


def figures(attacked: float, beside: float, *, number: int = 50) -> dict[str, dict[str, float]]:
    return {name: {"n": number, "p50": p50} for name, p50 in (("attacked", attacked), ("beside", beside))}


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        pytest.param(figures(6.1, 3.0), "6.1 ms, not 3 ms", id="slowed"),
        pytest.param(figures(60.0, 31.0), "", id="busy machine"),
        pytest.param(figures(3.0, 3.0, number=9), "too few", id="hardly measured"),
    ],
)
def test_attacked_daemon_is_compared_with_one_beside(measured: dict[str, dict[str, float]], verdict: str) -> None:
    assert too_slow(measured).startswith(verdict) if verdict else too_slow(measured) == ""
