"""The API servers of both sides: whether they answer, their versions, and their clocks."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from syncer.api.errors import SyncerError
from syncer.clusters.client import SideClient
from syncer.clusters.codec import DecodeError
from syncer.clusters.connection import first_contact
from syncer.clusters.discovery import ServerVersion
from syncer.daemon.doctor.diagnosis import UNREADABLE, Diagnosis, error, ok, unknown, warning
from syncer.daemon.start.sides import must_accept

#: Seconds that an API server may take for an answer.
ANSWER_SECONDS = 10.0
#: Difference between two clocks that is reported, in seconds. The header has full seconds.
CLOCK_SECONDS = 5.0
#: The first minor version of Kubernetes 1 that the daemon and its charts are made for.
SUPPORTED_SINCE = 29

_RECONNECT = (
    "Check the kubeconfig (`syncer config validate`), the network, and whether the API server runs."
)
_NTP = (
    "Let the machines take the time from the same source (NTP): certificates and tokens are valid"
    " by these clocks."
)


class ServerChecks(NamedTuple):
    """The results of checking an API server, and whether it can be asked for more."""

    found: list[Diagnosis]
    answers: bool


async def check_server(
    cluster: SideClient, name: str, utcnow: Callable[[], datetime]
) -> ServerChecks:
    """Check whether an API server answers and accepts the credentials, its version and its clock.

    ``name`` is that of the virtual cluster, ``""`` for the host.
    """
    check = f"connection to the {cluster.side} side"
    where = cluster.origin.address or cluster.title
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            version = await first_contact(cluster)
            await must_accept(cluster)
    except TimeoutError:
        message = f"{where} has given no answer within {ANSWER_SECONDS:g} s"
        return ServerChecks([error(name, check, message, _RECONNECT)], answers=False)
    except (SyncerError, DecodeError) as failure:
        return ServerChecks([error(name, check, str(failure), _RECONNECT)], answers=False)

    found = [ok(name, check, f"{where} answers, and accepts the credentials")]
    found.append(_check_version(cluster, name, version))
    found.append(await _check_clock(cluster, name, utcnow))
    return ServerChecks(found, answers=True)


def _check_version(cluster: SideClient, name: str, version: ServerVersion) -> Diagnosis:
    check = f"version of the {cluster.side} side"
    if not version.minor:
        way_out = "Nothing, if everything works: features of later versions are not used."
        text = version.text or "it is empty"
        return unknown(name, check, f"it can't be read ({text})", way_out)
    if version.minor < SUPPORTED_SINCE:
        way_out = f"Upgrade it to Kubernetes 1.{SUPPORTED_SINCE} or later."
        return warning(name, check, f"{version.text} is older than the daemon is made for", way_out)
    return ok(name, check, version.text)


async def _check_clock(cluster: SideClient, name: str, utcnow: Callable[[], datetime]) -> Diagnosis:
    """Compare the clock of an API server with that of this machine."""
    check = f"clock of the {cluster.side} side"
    before = utcnow()
    try:
        date = await cluster.date()
    except UNREADABLE:
        date = None
    after = utcnow()
    if date is None:
        way_out = "Compare `date` on both machines."
        return unknown(name, check, "the API server sends no time (header Date)", way_out)

    ahead = (date - after).total_seconds()
    behind = (before - date).total_seconds() - 1  # the header has no parts of a second
    if ahead > CLOCK_SECONDS:
        return warning(name, check, f"it is {ahead:.0f} s ahead of this machine's", _NTP)
    if behind > CLOCK_SECONDS:
        return warning(name, check, f"it is {behind:.0f} s behind this machine's", _NTP)
    return ok(name, check, f"within {CLOCK_SECONDS:g} s of this machine's")
