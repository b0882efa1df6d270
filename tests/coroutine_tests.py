"""Runs tests in virtual time: those that are coroutines by themselves, and scenarios that a test calls."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from kube_envtest import virtual_time

#: Seconds of virtual time that a test may take: some hours.
LONGEST = 10_000.0


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Run a scenario to its end, in a loop of its own.

    Raises:
        TimeoutError: It takes more virtual time than a test may.
    """

    async def bounded() -> None:
        async with asyncio.timeout(LONGEST):
            await scenario

    virtual_time.run(bounded())
