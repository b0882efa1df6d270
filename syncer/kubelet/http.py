"""Heads of HTTP/1.1 messages, which are parsed whole; bodies of requests are refused."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus

import httptools

from syncer.kubelet.errors import RefusedRequest

#: Longest head of a request or response, in bytes; it includes the command of an exec.
LONGEST_HEAD = 128 << 10
#: Most lines of a request's head: each costs the parser a call.
MOST_LINES = 200
#: Bytes that are held of a side for nothing: what a client sends before it is answered, what the
#: other side of a relay hasn't taken, an answer that a client hasn't, the body of a refusal. A
#: larger answer takes memory of the connections. Half of it is more than the largest record of TLS.
MOST_HELD = 64 << 10
#: The end of a head.
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
        """Return the first value of a header; ``""`` if there is none."""
        for key, value in self.lines:
            if key == name:
                return value
        return ""

    def only(self, names: Iterable[str]) -> HeaderLines:
        """Return the header lines with these names."""
        known = frozenset(names)
        return [line for line in self.lines if line[0] in known]


class _Collector:
    """Gathers what httptools calls back with."""

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
    """Parse ``data`` as the whole head of a request.

    Raises:
        RefusedRequest: ``data`` is no request of HTTP/1.1, or the request has a body.
    """
    if data.count(b"\n") > MOST_LINES:
        raise RefusedRequest(431, "the head of the request has too many lines")

    found = _Collector()
    parser = httptools.HttpRequestParser(found)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        pass
    except httptools.HttpParserError:
        raise RefusedRequest(400, "the request is not HTTP/1.1") from None

    method = parser.get_method().decode("ascii")
    target = found.target.decode("latin-1")
    if parser.get_http_version() != "1.1" or not target.startswith("/") or not target.isascii():
        raise RefusedRequest(400, "the request is not HTTP/1.1")

    head = MessageHead(found.lines, method, target)
    for name, value in head.only(_BODY):
        if name == "transfer-encoding" or value != "0":
            raise RefusedRequest(413, "a request has no body here")
    return head


def response_head(data: bytes) -> MessageHead:
    """Parse ``data`` as the whole head of a response.

    Raises:
        ValueError: ``data`` is no response of HTTP/1.1.
    """
    found = _Collector()
    parser = httptools.HttpResponseParser(found)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        pass
    except httptools.HttpParserError as error:
        raise ValueError("not a response of HTTP/1.1") from error
    return MessageHead(found.lines, status=parser.get_status_code())


def body_of(data: bytes) -> tuple[bytes, bool]:
    """Return the received part of a response's body, and True if the body is complete."""
    found = _Collector()
    with contextlib.suppress(httptools.HttpParserError):
        httptools.HttpResponseParser(found).feed_data(data)
    return found.body, found.complete


def encode_response(status: int, lines: Iterable[tuple[str, str]]) -> bytes:
    """Return the head of a response."""
    phrase = _PHRASES.get(status, "")
    head = "".join(f"{name}: {value}\r\n" for name, value in lines)
    return f"HTTP/1.1 {status} {phrase}\r\n{head}\r\n".encode("latin-1")


def reply(status: int, body: bytes, content_type: str = "text/plain; charset=utf-8") -> bytes:
    """Return a whole response; it announces that the connection is closed afterwards."""
    lines = [
        ("Content-Type", content_type),
        ("X-Content-Type-Options", "nosniff"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
    ]
    return encode_response(status, lines) + body
