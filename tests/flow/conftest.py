"""Every flow test has two API servers of its own, and some hours of virtual time."""

import inspect
from collections.abc import Generator
from typing import Any

import pytest
from harness import Two, bounded


@pytest.fixture
def two() -> Two:
    """A virtual and a host API server without rights to mind."""
    return Two()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Bound the time of a test that is a coroutine."""
    test = pyfuncitem.obj
    if inspect.iscoroutinefunction(test):

        async def in_time(**fixtures: Any) -> None:
            await bounded(test(**fixtures))

        pyfuncitem.obj = in_time
    return (yield)
