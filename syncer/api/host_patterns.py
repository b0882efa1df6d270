"""The hosts that a tenant's routes may serve: an option's type, and the check of a host."""

import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator

from syncer.api.texts import LONGEST_FIELD

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_NAME = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")


def _checked(given: str) -> str:
    if not _DNS_NAME.fullmatch(given):
        why = "expected a name in small letters, such as *.shop.example.org"
        raise ValueError(f"{given[:LONGEST_FIELD]!r} is no host: {why}")
    return given


#: A host in an option; ``*.`` at the beginning stands for one or more labels.
HostPattern = Annotated[str, AfterValidator(_checked)]


def is_allowed_host(host: str, allowed: Iterable[str]) -> bool:
    """Return True if a route may serve a host.

    Args:
        host: The host, as the tenant wrote it; ``*.`` at its beginning stands for labels, too.
            ``""``, which stands for all hosts, is never allowed, nor is what isn't a DNS name in
            small letters: the host's controller may read another spelling in its own way.
        allowed: The hosts that are allowed, of the type :data:`HostPattern`.
    """
    return _DNS_NAME.fullmatch(host) is not None and any(_is_of(host, each) for each in allowed)


def _is_of(host: str, pattern: str) -> bool:
    """Return True if a host is the one of a pattern, or below the domain of ``*.domain``."""
    return host == pattern or (
        pattern.startswith("*.") and host.endswith(pattern.removeprefix("*"))
    )
