"""Continue tokens: where the next page begins, and as of which revision."""

import base64
from typing import NamedTuple

import msgspec

from kube_envtest.apiserver.errors import bad_request
from kube_envtest.apiserver.storage import decode, encode


class Page(NamedTuple):
    """A page of ``table`` as it was at ``revision``, behind the key ``after``; revision -1: as it is now."""

    table: str
    revision: int
    after: str = ""


def write_token(page: Page, last: str) -> str:
    """The token of the page that begins behind the key ``last``."""
    content = {"v": "meta.k8s.io/v1", "rv": page.revision, "start": f"{last}\x00"}
    return base64.urlsafe_b64encode(encode(content)).decode().rstrip("=")


def read_token(token: str) -> Page:
    """The page that a token stands for; raises ``BadRequest`` for anything that no server gave out."""
    try:
        content = decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return Page("", int(content["rv"]), str(content["start"]).removesuffix("\x00"))
    except (ValueError, KeyError, TypeError, msgspec.DecodeError):
        raise bad_request("continue key is not valid: illegal base64 data or content") from None
