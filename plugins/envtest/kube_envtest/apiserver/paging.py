"""Continue tokens: the start of the next page, and its revision."""

import base64
from typing import NamedTuple

import msgspec

from kube_envtest.apiserver.errors import bad_request
from kube_envtest.apiserver.storage import decode, encode


class Page(NamedTuple):
    """A page of ``table`` at ``revision``, after the key ``after``; revision -1 is the current state."""

    table: str
    revision: int
    after: str = ""


def write_token(page: Page, last: str) -> str:
    """Return the token of the page that begins after the key ``last``."""
    content = {"v": "meta.k8s.io/v1", "rv": page.revision, "start": f"{last}\x00"}
    return base64.urlsafe_b64encode(encode(content)).decode().rstrip("=")


def read_token(token: str) -> Page:
    """Parse a token.

    Raises:
        ApiError: BadRequest: no server issued it.
    """
    try:
        content = decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return Page("", int(content["rv"]), str(content["start"]).removesuffix("\x00"))
    except (ValueError, KeyError, TypeError, msgspec.DecodeError):
        raise bad_request("continue key is not valid: illegal base64 data or content") from None
