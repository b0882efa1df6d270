"""The types of option values: addresses and paths.

Each validates its value and names the expected form.
"""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from syncer.api.durations import OptionType

#: A host, which may be empty or an IPv6 address in brackets, and a port.
_ADDRESS = re.compile(r"^(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[^:\[\]\s]*):(?P<port>[0-9]{1,5})$")


#: The hosts that only this machine reaches.
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def address(value: Any) -> str:
    """Validate an address to listen on. ``""``, ``"0"`` and ``0`` become ``""``, off.

    Raises:
        ValueError: The value is not an address.
    """
    if value in ("", "0", 0) and not isinstance(value, bool):
        return ""
    match = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match["port"]) > 65535:
        raise ValueError('expected an address such as ":8080" or "127.0.0.1:8080", or "" for none')
    return str(value)


def loopback_address(value: Any) -> str:
    """Validate a loopback address to listen on; ``""`` is off, as of :func:`address`.

    Raises:
        ValueError: The value is not an address, or one that others reach.
    """
    valid = address(value)
    found = listen_on(valid)
    if found is not None and found[0] not in LOOPBACK:
        raise ValueError(
            'expected a loopback address such as "127.0.0.1:8082", as a page has no login, or ""'
            " for none"
        )
    return valid


def listen_on(value: str) -> tuple[str, int] | None:
    """Return the host and the port of a validated address; None if it is off.

    The host ``""`` stands for all interfaces.
    """
    if not value:
        return None
    host, _, port = value.rpartition(":")
    return host.strip("[]"), int(port)


def _off(value: Any) -> Any:
    """Return ``"0"`` for the number 0, and any other value as it is."""
    return "0" if value == 0 and not isinstance(value, bool) else value


#: Host and port to listen on; ``""`` for off.
ListenAddress = Annotated[
    str,
    OptionType("address"),
    BeforeValidator(address),
    WithJsonSchema({"type": ["string", "integer"], "examples": [":8080", "0"]}),
]
#: The same on loopback alone.
LoopbackAddress = Annotated[
    str,
    OptionType("address"),
    BeforeValidator(loopback_address),
    WithJsonSchema({"type": ["string", "integer"], "examples": ["127.0.0.1:8082", "0"]}),
]
#: A path to listen on; ``"0"`` is off.
SocketPath = Annotated[
    str,
    OptionType("path"),
    BeforeValidator(_off),
    WithJsonSchema({"type": ["string", "integer"], "examples": ["/run/vsyncer.sock", "0"]}),
]
