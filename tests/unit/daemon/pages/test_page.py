"""The page: whom it answers, what its answers allow a browser, and that no text of a tenant runs."""

import asyncio
import base64
import hashlib
import http.client
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from page_faults import contents, faults

from syncer.api.errors import Refused
from syncer.daemon.pages.page import QUESTIONS, ROWS, content_security_policy, page_app, page_html
from syncer.observe.control import Control
from syncer.observe.server import HostPort, Server
from syncer.version import VERSION

#: Texts that a tenant may try: an end of the script, an attribute, an image, and other directions and cursors.
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"'><b onclick=alert(1)>",
    "\u202egnp.exe\u2066\u061c\u200f",
    "\x1b[2J\x07\x00\x9b\x7f",
    "${alert(1)}`{{7*7}}&lt;",
)


def asked(
    path: str,
    *,
    method: str = "GET",
    host: str | None = "localhost:9000",
    headers: Mapping[str, str] | None = None,
    answers: Callable[[Mapping[str, Any]], Awaitable[Any]] | None = None,
) -> tuple[int, Mapping[str, str], str]:
    """Return the status, the headers and the body that a server with the page answers.

    ``answers`` answers each question.
    """

    async def nothing(given: Mapping[str, Any]) -> Any:
        return []

    def send(port: int) -> tuple[int, Mapping[str, str], str]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True)
            if host is not None:
                connection.putheader("Host", host)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            connection.endheaders()
            reply = connection.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read().decode()
        finally:
            connection.close()

    async def scenario() -> tuple[int, Mapping[str, str], str]:
        control = Control()
        for question in QUESTIONS.values():
            control.add("GET", question, answers or nothing)
        control.add("POST", "/retry", answers or nothing)
        control.add("GET", "/patrol", answers or nothing)
        app = page_app(control, asyncio.get_running_loop())
        server = Server(HostPort("127.0.0.1", 0), app, setting="page.address")
        try:
            return await asyncio.to_thread(send, server.port)
        finally:
            server.close()

    return asyncio.run(scenario())


# -- the file --------------------------------------------------------------------------------------


def test_page_has_nothing_that_builds_or_loads_from_texts_of_others() -> None:
    assert faults(page_html()) == []


@pytest.mark.parametrize(
    "planted",
    [
        "x.innerHTML = found.reason;",
        "x.outerHTML = found.reason;",
        'x["innerHTML"] = found.reason;',
        "x.insertAdjacentHTML('beforeend', found.reason);",
        "document.write(found.reason);",
        "new DOMParser().parseFromString(found.reason, 'text/html');",
        "eval(found.reason);",
        "new Function(found.reason)();",
        "setTimeout('run()', 1);",
        "x.href = found.reason;",
        "x.src = found.reason;",
        "location = found.reason;",
        "x.onclick = run;",
        "x.setHTMLUnsafe(found.reason);",
        "x.style.cssText = found.reason;",
        "import(found.reason);",
        "fetch('https://example.org/' + found.reason);",
        "x.setAttribute(found.name, found.reason);",
        "document.createElement(found.name);",
    ],
)
def test_sink_in_the_script_is_found(planted: str) -> None:
    page = page_html().replace('"use strict";', f'"use strict";\n{planted}', 1)
    assert faults(page)


@pytest.mark.parametrize(
    "planted",
    [
        "<script>run()</script>",
        "<script src=/other.js></script>",
        "<style>p { background: url(https://example.org) }</style>",
        "<link rel=stylesheet href=https://example.org/x.css>",
        "<img src=x>",
        "<iframe srcdoc=x></iframe>",
        "<p onclick=run()>x</p>",
        "<p style='color: red'>x</p>",
        "<base href=https://example.org>",
        "<meta http-equiv=refresh content=0>",
        "<form action=https://example.org></form>",
        "<a href=javascript:run()>x</a>",
    ],
)
def test_element_that_loads_or_runs_is_found(planted: str) -> None:
    assert faults(page_html().replace("<main>", f"<main>{planted}", 1))


def test_page_names_no_other_server() -> None:
    addresses = set(re.findall(r"[a-z]+://[^\s\"'<]*", page_html()))
    assert addresses == {"http://www.w3.org/2000/svg"}, "the name of a namespace is the only address"


def test_page_shows_the_version() -> None:
    assert VERSION in page_html()
    assert "{version}" not in page_html()


# -- who is answered -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8082", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:65535", "[::1]", "[::1]:8082"]
)
def test_request_for_this_machine_is_answered(host: str) -> None:
    assert asked("/", host=host)[0] == 200
    assert asked("/api/list", host=host)[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "example.org",
        "example.org:8082",
        "localhost.example.org",
        "127.0.0.1.nip.io",
        "127.0.0.2",
        "localhost:",
        "localhost:8082x",
        "localhost:8082, example.org",
        "user@localhost",
        "[::ffff:127.0.0.1]",
        "10.0.0.1:8082",
        "localhost\t",
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/list", "/nothing"])
def test_request_for_another_host_is_refused(host: str | None, path: str) -> None:
    status, _, body = asked(path, host=host)
    if host == "localhost\t":  # white space around a value is no part of it
        assert status != 403
        return
    assert (status, "localhost alone" in body) == (403, True)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_request_that_another_site_makes_is_refused(site: str) -> None:
    assert asked("/api/list", headers={"Sec-Fetch-Site": site})[0] == 403


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_request_of_the_page_itself_is_answered(site: str) -> None:
    assert asked("/api/list", headers={"Sec-Fetch-Site": site})[0] == 200


@pytest.mark.parametrize("method", ["POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "GETX"])
@pytest.mark.parametrize("path", ["/", "/api/list", "/api/explain"])
def test_other_method_than_get_is_refused(method: str, path: str) -> None:
    status, headers, _ = asked(path, method=method)
    assert (status, headers["Allow"]) == (405, "GET")


@pytest.mark.parametrize(
    "path", ["/retry", "/patrol", "/api/retry", "/api/patrol", "/api", "/api/", "/api/../list", "/page"]
)
def test_nothing_else_of_the_daemon_is_reached(path: str) -> None:
    assert asked(path)[0] == 404


# -- answers ---------------------------------------------------------------------------------------


def test_page_may_run_its_own_script_alone() -> None:
    status, headers, body = asked("/")
    assert (status, body) == (200, page_html())
    policy = dict(rule.split(" ", 1) for rule in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert (policy["connect-src"], policy["frame-ancestors"]) == ("'self'", "'none'")
    assert (policy["base-uri"], policy["form-action"]) == ("'none'", "'none'")
    for name in ("script", "style"):
        [text] = contents(body)[name]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert policy[f"{name}-src"] == f"'sha256-{digest}'"
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert policy["require-trusted-types-for"] == "'script'"


def test_policy_follows_the_script() -> None:
    page = page_html()
    assert content_security_policy(page) != content_security_policy(page.replace("use strict", "use  strict"))


@pytest.mark.parametrize("path", ["/", "/api/list", "/nothing"])
def test_no_answer_is_kept_framed_or_taken_for_something_else(path: str) -> None:
    _, headers, _ = asked(path)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["X-Frame-Options"] == "DENY"
    assert "Access-Control-Allow-Origin" not in headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_a_tenant_stays_a_text(text: str) -> None:
    async def answers(given: Mapping[str, Any]) -> Any:
        row = {"key": f"shop/{text}", "reason": text, text: [text]}
        return {"items": [row], "next": text}

    status, headers, body = asked("/api/list", answers=answers)
    assert (status, headers["Content-Type"]) == (200, "application/json; charset=utf-8")
    assert body.isascii()
    found = json.loads(body)
    shown = json.dumps(found, ensure_ascii=False)
    acting = "\x00\x07\x1b\x7f\x9b\u061c\u200f\u202e\u2066"
    assert [each for each in acting if each in shown] == []
    if text.isprintable():
        assert found["items"][0]["reason"] == text


def test_query_reaches_the_handler_and_the_size_of_a_page_is_ours() -> None:
    seen: list[Mapping[str, Any]] = []

    async def answers(given: Mapping[str, Any]) -> Any:
        seen.append(given)
        return []

    asked("/api/list?cluster=shop&states=parked&limit=100000", answers=answers)
    assert seen == [{"cluster": "shop", "states": "parked", "limit": str(ROWS)}]


def test_query_with_many_parts_is_refused() -> None:
    status, _, body = asked("/api/list?" + "&".join(f"p{number}=x" for number in range(1000)))
    assert (status, "16 parts" in json.loads(body)["error"]) == (400, True)


def test_refusal_is_passed_on() -> None:
    async def answers(given: Mapping[str, Any]) -> Any:
        raise Refused("nothing that is synced is called 'x'")

    status, _, body = asked("/api/explain?kind=x", answers=answers)
    assert (status, json.loads(body)) == (409, {"error": "nothing that is synced is called 'x'"})


def test_daemon_that_is_too_busy_gives_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncer.daemon.pages.page.ANSWER_SECONDS", 0.01)
    ended: list[str] = []

    async def answers(given: Mapping[str, Any]) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("the handler")

    status, _, body = asked("/api/list", answers=answers)
    assert (status, "no answer in" in json.loads(body)["error"]) == (504, True)
    assert ended == ["the handler"], "a question that nobody waits for isn't worked on"
