"""Clusters in this process; pytest looks for modules beside a conftest, so that all find the scene."""

import inspect
from collections.abc import Generator
from typing import Any

import pytest
from fleet_scene import leaving_nothing


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Assert that a test that is a coroutine leaves no task, and no error that nobody has seen."""
    test = pyfuncitem.obj
    if inspect.iscoroutinefunction(test):

        async def checked(**fixtures: Any) -> None:
            await leaving_nothing(test(**fixtures))

        pyfuncitem.obj = checked
    return (yield)
