"""The page: one file of HTML, and what it shows as JSON, for a browser on the same machine.

It has no login, as whoever reaches a loopback address has one: `kubectl port-forward` asks the
host's API server, and other users of a machine are why it is off by default. A web page of somebody
else can't ask: requests with another ``Host`` than this machine's are refused, which a name that is
bound again to a loopback address (DNS rebinding) would send, and so are those that a browser sends
for another site. Everything is read alone.
"""

import asyncio
import base64
import concurrent.futures
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from syncer.observe.control import Control
from syncer.plain_texts import plain_values
from syncer.version import VERSION

#: Rows of a table that an answer has.
ROWS = 100
#: Parts of a query.
MOST_PARTS = 16
#: Seconds in which an answer must be there. It is less than a connection may last.
ANSWER_SECONDS = 20.0

#: What may be asked, by path, and whose answer it is on the control socket.
QUESTIONS = {
    "/api/clusters": "/page/clusters",
    "/api/kinds": "/page/kinds",
    "/api/list": "/list",
    "/api/explain": "/explain",
    "/api/drift": "/page/drift",
    "/api/frozen": "/page/frozen",
    "/api/history": "/page/history",
}

_HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
#: What ``Sec-Fetch-Site`` is for a request that a person or this page makes.
_OWN_SITES = ("same-origin", "none")
_VERSION = "{version}"
_JSON = "application/json; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"
_HTML = "text/html; charset=utf-8"
_HEADERS = (
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
)


def page_html() -> str:
    """Return the page."""
    text = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    return text.replace(_VERSION, html.escape(VERSION))


def content_security_policy(page: str) -> str:
    """Return the policy that allows this page its own script and style, and requests to its own
    server, and nothing else.
    """
    rules = [
        "default-src 'none'",
        f"script-src {_hashes(page, 'script')}",
        f"style-src {_hashes(page, 'style')}",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
    return "; ".join(rules)


def _hashes(page: str, element: str) -> str:
    found: list[str] = []
    for content in re.findall(f"<{element}>(.*?)</{element}>", page, re.DOTALL):
        digest = hashlib.sha256(content.encode()).digest()
        found.append(f"'sha256-{base64.b64encode(digest).decode()}'")
    return " ".join(found)


def page_app(control: Control, loop: asyncio.AbstractEventLoop) -> WSGIApplication:
    """Return the application, which asks ``control`` on the event loop, and writes JSON on the
    threads of its server.
    """
    page = page_html()
    policy = ("Content-Security-Policy", content_security_policy(page))
    # Of an answer that isn't the page nothing may run.
    bare = ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")

    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "/")
        refusal = _refusal(environ)
        if refusal is not None:
            status, content, text = refusal[0], _TEXT, f"{refusal[1]}\n"
        elif path == "/":
            status, content, text = HTTPStatus.OK, _HTML, page
        elif path in QUESTIONS:
            status, answer = _answer(environ, QUESTIONS[path])
            content, text = _JSON, json.dumps(plain_values(answer))
        else:
            status, content, text = HTTPStatus.NOT_FOUND, _TEXT, "there is no such page\n"
        headers = [("Content-Type", content), *_HEADERS]
        headers.append(policy if content == _HTML else bare)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            headers.append(("Allow", "GET"))
        start_response(f"{status.value} {status.phrase}", headers)
        return [text.encode()]

    def _answer(environ: WSGIEnvironment, question: str) -> tuple[HTTPStatus, Any]:
        try:
            given = _given(environ.get("QUERY_STRING", ""))
        except ValueError:
            return _error(HTTPStatus.BAD_REQUEST, f"a query has {MOST_PARTS} parts at most")
        asked = asyncio.run_coroutine_threadsafe(control.answer("GET", question, given), loop)
        try:
            return asked.result(ANSWER_SECONDS)
        except concurrent.futures.CancelledError:
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, "the daemon is being stopped")
        except TimeoutError:
            asked.cancel()
            why = f"the daemon gave no answer in {ANSWER_SECONDS:g} s"
            return _error(HTTPStatus.GATEWAY_TIMEOUT, why)

    return app


def _given(query: str) -> Mapping[str, Any]:
    """Return a query as handlers take it; the size of a page is ours."""
    given = dict(parse_qsl(query, max_num_fields=MOST_PARTS))
    return {**given, "limit": str(ROWS)}


def _error(status: HTTPStatus, why: str) -> tuple[HTTPStatus, Any]:
    return status, {"error": why}


def _refusal(environ: WSGIEnvironment) -> tuple[HTTPStatus, str] | None:
    """Return why a request isn't answered; None if it is."""
    if not _HOST.fullmatch(environ.get("HTTP_HOST", "")):
        return HTTPStatus.FORBIDDEN, "the page is at http://localhost alone, with any port"
    if environ.get("HTTP_SEC_FETCH_SITE", "none") not in _OWN_SITES:
        return HTTPStatus.FORBIDDEN, "open the page itself: other sites may not ask"
    if environ["REQUEST_METHOD"] != "GET":
        return HTTPStatus.METHOD_NOT_ALLOWED, "the page is read only: GET alone"
    return None
