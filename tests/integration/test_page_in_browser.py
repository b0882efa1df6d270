"""In a real browser the page shows a tenant's texts as texts: none becomes an element or a script."""

import asyncio
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

import pytest

from hack import browser
from syncer.daemon.pages.page import QUESTIONS, page_app
from syncer.observe.control import Control
from syncer.observe.server import HostPort, Server

CHROMIUM = browser.found()

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium")

#: A text that would show itself as an element, an attribute, another script, or another order of letters.
HOSTILE = (
    "</td></script><script>document.title='run'</script>"
    "<img src=x onerror=\"document.title='run'\"><b id=planted>\"'`${1}\u202egnp\x1b[2J"
)
#: The same as it is shown: characters that act are replaced.
SHOWN = HOSTILE.replace("\u202e", "\ufffd").replace("\x1b", "\ufffd")
OBJECT: Mapping[str, Any] = {
    "cluster": "shop",
    "syncer": HOSTILE,
    "kind": HOSTILE,
    "key": f"shop/{HOSTILE}",
    "hostKey": HOSTILE,
    "onVirtual": True,
    "onHost": False,
    "state": "parked",
    "code": "Invalid",
    "reason": HOSTILE,
    "wayOut": HOSTILE,
    "since": "2026-01-01T00:00:00Z",
    "seconds": 61,
    "tried": 2,
    "nextTry": 5,
    "wakes": [HOSTILE],
    "steps": [{"policy": "x", "what": HOSTILE}],
    "decision": {"reason": f"x{HOSTILE}", "writes": [{"verb": "apply", "object": HOSTILE, "calls": 1}]},
    "lastWrite": {"side": "host", "time": HOSTILE},
    "lastError": {"seconds": 5, "message": f"y{HOSTILE}"},
    "reads": [{"object": HOSTILE, "exists": False}],
    "lacks": [{"object": HOSTILE, "state": "parked", "code": "Invalid", "reason": HOSTILE}],
    "owners": {HOSTILE: [HOSTILE]},
    "leftOut": [HOSTILE],
    "frozen": [{"object": HOSTILE, "field": HOSTILE, "until": HOSTILE, "other": HOSTILE}],
    "drift": [{"class": "field", "object": HOSTILE, "paths": [HOSTILE]}],
    "managers": [{"side": "host", "manager": HOSTILE, "time": HOSTILE, "subresource": "", "ours": False}],
}
DRIFT = {
    "syncer": "pods",
    "object": HOSTILE,
    "of": HOSTILE,
    "class": HOSTILE,
    "outcome": HOSTILE,
    "reason": HOSTILE,
    "fields": [{"path": HOSTILE, "changedBy": HOSTILE, "at": HOSTILE}],
    "moreFields": 3,
}
KIND = {"syncer": HOSTILE, "state": HOSTILE, "inStep": 9, "pending": 1, "paused": 0, "frozen": 0}
KIND |= {"failing": 0, "parked": 2, "skipped": 1, "reason": HOSTILE}
CLUSTER = {"cluster": "shop", "state": "served", "leads": True, "syncers": 2, "ready": 1, "objects": 3, "parked": 1}
ANSWERS: Mapping[str, Any] = {
    "/page/clusters": {"items": [CLUSTER | {"reason": HOSTILE}], "next": HOSTILE},
    "/page/kinds": [KIND],
    "/list": {"items": [OBJECT], "next": HOSTILE, "unlisted": {HOSTILE: HOSTILE}},
    "/explain": [OBJECT],
    "/page/drift": {"items": [DRIFT], "next": ""},
    "/page/frozen": {"items": [{"syncer": "x", "key": HOSTILE, **OBJECT["frozen"][0]}], "next": ""},
    "/page/history": {"seconds": 60, "most": 60, "writes": [1, 0, 7], "lag50": [0.1, None, 2], "lag99": [1, None, 2]},
}
#: The attributes that the page's own script gives.
KNOWN = {"id", "class", "type", "style", "value", "placeholder", "size", "autocomplete", "required", "role"}
KNOWN |= {"aria-label", "aria-live", "hidden", "lang", "charset", "name", "content"}
KNOWN |= {"viewbox", "preserveaspectratio", "x", "y", "x1", "x2", "y1", "y2", "width", "height", "d"}


class Built(HTMLParser):
    """The elements, the attributes and the texts of a page as the browser has built it."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        self.elements.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.texts.append(data)


def built(address: str) -> Built:
    """Open the page in the browser, and return what it has built."""

    async def scenario() -> str:
        control = Control()
        for question in QUESTIONS.values():

            async def answer(given: Mapping[str, Any], question: str = question) -> Any:
                return ANSWERS[question]

            control.add("GET", question, answer)
        app = page_app(control, asyncio.get_running_loop())
        server = Server(HostPort("127.0.0.1", 0), app, setting="page.address")
        assert CHROMIUM
        try:
            return await asyncio.to_thread(browser.dumped, CHROMIUM, f"http://127.0.0.1:{server.port}/{address}")
        finally:
            server.close()

    found = Built()
    found.feed(asyncio.run(scenario()))
    found.close()
    return found


def test_texts_of_a_tenant_are_shown_and_run_nothing() -> None:
    found = built("#cluster=shop&kind=configmaps&key=shop%2Fx")
    text = "".join(found.texts)
    # Objects that are not in step, drift, frozen fields, kinds, clusters, and the explanation.
    assert text.count(SHOWN) > 25
    assert text.count("vsyncer") >= 1, "the page is the page"
    assert found.elements.count("script") == 1
    assert {"img", "b"} & set(found.elements) == set()
    assert found.attributes <= KNOWN
    assert "run" not in found.texts, "no script has changed the title"
    assert {"svg", "rect", "path", "table", "dl"} <= set(found.elements), "charts, tables and the explanation are there"
