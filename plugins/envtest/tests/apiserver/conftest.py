"""The same examples in each run; that one is slow on a busy machine says nothing about the server.

Tests that are coroutines run in virtual time.
"""

import inspect
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from kube_envtest import virtual_time

settings.register_profile(
    "gate", derandomize=True, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gate")
# Other examples in each run: pytest --hypothesis-profile=explore
settings.register_profile("explore", settings.get_profile("gate"), derandomize=False)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run a test that is a coroutine in virtual time."""
    test = pyfuncitem.obj
    if inspect.iscoroutinefunction(test):
        pyfuncitem.obj = lambda **fixtures: virtual_time.run(test(**fixtures))
    return (yield)
