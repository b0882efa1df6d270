"""The server's time: the event loop's if it is virtual, else the machine's."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import formatdate
from functools import lru_cache

from kube_envtest.virtual_time import VirtualTimeLoop

#: The time that virtual time 0 stands for: 2026-01-01T00:00:00Z, in seconds since 1970.
EPOCH = 1_767_225_600.0

#: Returns seconds since 1970.
Clock = Callable[[], float]


def loop_clock() -> float:
    """Return virtual time on a virtual loop, real time otherwise."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return time.time()
    return EPOCH + loop.time() if isinstance(loop, VirtualTimeLoop) else time.time()


def timestamp(seconds: float) -> str:
    """Format a time as in objects: ``2026-01-01T00:00:00Z``."""
    return _timestamp(int(seconds))


@lru_cache(256)
def _timestamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def http_date(seconds: float) -> str:
    """Format a time as in the header ``Date``: ``Thu, 01 Jan 2026 00:00:00 GMT``."""
    return _http_date(int(seconds))


@lru_cache(256)
def _http_date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)


def micro_timestamp(seconds: float) -> str:
    """Format a time as in Leases and Events: ``2026-01-01T00:00:00.000000Z``."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(text: str) -> float:
    """Parse a timestamp of either form into seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


def duration(seconds: float) -> str:
    """Format a time span as kubectl does: ``5s``, ``3m20s``, ``4d``.

    Source: ``duration.HumanDuration``.
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(whole, 0)
    minutes = whole // 60
    hours = whole // 3600
    days = whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    return _two(days // 365, "y", days % 365, "d") if days < 8 * 365 else f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
