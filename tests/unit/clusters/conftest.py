"""The event loops that every transport test runs on."""

import inspect
from collections.abc import Generator

import pytest
from transport_kinds import KINDS, Kind


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run a test of a transport that is a coroutine on the transport's event loop."""
    test = pyfuncitem.obj
    kind = pyfuncitem.funcargs.get("kind")
    if inspect.iscoroutinefunction(test) and isinstance(kind, Kind):
        pyfuncitem.obj = lambda **fixtures: kind.run(test(**fixtures))
    return (yield)
