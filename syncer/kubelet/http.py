"""Heads of HTTP/1.1 messages: they are read whole, and nothing after them."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus

import httptools

from syncer.kubelet.errors import RefusedRequest

#: Longest head of a request or response, in bytes; a long command of an exec is part of it.
LONGEST_HEAD = 128 << 10
#: Most lines of a request's head: each costs the parser a call.
MOST_LINES = 200
END = b"\r\n\r\n"

HeaderLines = list[tuple[str, str]]

#: The headers that announce a body.
_BODY = ("transfer-encoding", "content-length")
_PHRASES = {each.value: each.phrase for each in HTTPStatus}


@dataclass(frozen=True, slots=True)
class MessageHead:
    """The head of a message: the request line or status, and the header lines with lower-case
    names.
    """

    lines: HeaderLines
    method: str = ""
    target: str = ""
    status: int = 0

    def get(self, name: str) -> str:
        """Return the value of a header; its first one if it has several, ``""`` if there is none."""
        return next((value for key, value in self.lines if key == name), "")

    def only(self, names: Iterable[str]) -> HeaderLines:
        """Return the header lines of these names."""
        known = frozenset(names)
        return [line for line in self.lines if line[0] in known]


class _Collects:
    def __init__(self) -> None:
        self.lines: HeaderLines = []
        self.target = self.body = b""
        self.complete = False

    def on_url(self, part: bytes) -> None:
        self.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self.lines.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        self.complete = True


def request_head(data: bytes) -> MessageHead:
    """Return the head of a request, which is all of ``data``.

    Raises:
        Refused: It is no request of HTTP/1.1, or one with a body.
    """
    if data.count(b"\n") > MOST_LINES:
        raise RefusedRequest(431, "the head of the request has too many lines")
    found = _Collects()
    parser = httptools.HttpRequestParser(found)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        pass
    except httptools.HttpParserError:
        raise RefusedRequest(400, "the request is not HTTP/1.1") from None
    head = MessageHead(
        found.lines,
        parser.get_method().decode("ascii"),
        found.target.decode("latin-1"),
    )
    if parser.get_http_version() != "1.1" or not head.target.startswith("/") or not head.target.isascii():
        raise RefusedRequest(400, "the request is not HTTP/1.1")
    if any(name == "transfer-encoding" or value != "0" for name, value in head.only(_BODY)):
        raise RefusedRequest(413, "a request has no body here")
    return head


def response_head(data: bytes) -> MessageHead:
    """Return the head of a response, which is all of ``data``.

    Raises:
        ValueError: It is no response of HTTP/1.1.
    """
    found = _Collects()
    parser = httptools.HttpResponseParser(found)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        pass
    except httptools.HttpParserError as error:
        raise ValueError("not a response of HTTP/1.1") from error
    return MessageHead(found.lines, status=parser.get_status_code())


def body_of(data: bytes) -> tuple[bytes, bool]:
    """Return the body of a response as far as it has come, and whether it is complete."""
    found = _Collects()
    with contextlib.suppress(httptools.HttpParserError):
        httptools.HttpResponseParser(found).feed_data(data)
    return found.body, found.complete


def encode_response(status: int, lines: Iterable[tuple[str, str]]) -> bytes:
    """Return the head of a response."""
    phrase = _PHRASES.get(status, "")
    head = "".join(f"{name}: {value}\r\n" for name, value in lines)
    return f"HTTP/1.1 {status} {phrase}\r\n{head}\r\n".encode("latin-1")


def reply(status: int, body: bytes, content_type: str = "text/plain; charset=utf-8") -> bytes:
    """Return a whole response, after which the connection is closed."""
    lines = [
        ("Content-Type", content_type),
        ("X-Content-Type-Options", "nosniff"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
    ]
    return encode_response(status, lines) + body
