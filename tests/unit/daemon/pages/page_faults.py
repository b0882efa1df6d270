"""What the page may not have: parts that load, run or build anything from texts of others."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

#: Elements that load nothing and run nothing, besides the page's one style and one script.
HARMLESS = frozenset(
    {"html", "head", "meta", "title", "body", "header", "main", "section", "h1", "h2", "p", "span"}
    | {"form", "label", "input", "select", "option", "button"}
)
#: Attributes that load or run something; so do those that begin with ``on``.
ACTING = frozenset({"style", "src", "href", "action", "srcdoc", "http-equiv", "formaction"})
#: Ways by which a script reads a text as HTML, as a script or as an address.
SINKS = (
    r"\.(inner|outer)HTML",
    r"insertAdjacentHTML",
    r"(set|get)HTML",
    r"document\s*\.\s*(write|open)",
    r"\bDOMParser\b",
    r"createContextualFragment",
    r"parseHTML|parseFromString",
    r"\beval\b",
    r"\bFunction\b",
    r"\bimport\s*\(",
    r"\bimportScripts\b",
    r"\bWorker\b",
    r"\bset(Timeout|Interval)\s*\(\s*[\"'`]",
    r"javascript:",
    r"\bsrcdoc\b",
    r"\.(src|href|action|formAction|cssText|innerText)\b",
    r"\.on[a-z]+\s*=",
    r"\blocation\s*(=|\.\s*(assign|replace|href))",
    r"\bwindow\s*\.\s*open\b",
    r"\.insertRule|\.createHTMLDocument|\.execCommand",
    r"(setAttributeNS|setAttributeNode|attributes\s*\.)",
    r"\[\s*[\"'`](inner|outer|insert)",
)
_FETCH = re.compile(r"\bfetch\s*\(([^,)]*)")
_ATTRIBUTE = re.compile(r"setAttribute\s*\(")
_CREATE = re.compile(r"createElement(NS)?\s*\(([^)]*)\)")


class _Reader(HTMLParser):
    """Notes the elements of a page, and the contents of its style and its script."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.contents: dict[str, list[str]] = {"script": [], "style": []}
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if tag in self.contents:
            self._inside = tag
            self.contents[tag].append("")
            if names:
                self.faults.append(f"<{tag}> has attributes: {names}")
        elif tag not in HARMLESS:
            self.faults.append(f"there is a <{tag}>")
        for name, value in attrs:
            if name.startswith("on") or name in (
                "style",
                "src",
                "href",
                "action",
                "srcdoc",
                "http-equiv",
                "formaction",
            ):
                self.faults.append(f"<{tag}> has the attribute {name}={value!r}")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.contents[self._inside][-1] += data


def contents(page: str) -> dict[str, list[str]]:
    """Return the contents of each style and each script."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.contents


def faults(page: str) -> list[str]:
    """Return what a page has that it may not have."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    found = list(reader.faults)
    for name, texts in reader.contents.items():
        if len(texts) != 1:
            found.append(f"there are {len(texts)} <{name}>")
        for text in texts:
            found += _of_style(text) if name == "style" else _of_script(text)
    return found


def _of_style(text: str) -> Iterator[str]:
    for each in (r"url\s*\(", r"@import", r"expression\s*\(", r"\\"):
        if re.search(each, text):
            yield f"the style has {each}"


def _of_script(text: str) -> Iterator[str]:
    for sink in SINKS:
        for match in re.finditer(sink, text):
            yield f"the script has {match[0]!r}"
    for match in _FETCH.finditer(text):
        if not match[1].startswith("`/api/${question}?${query}`"):
            yield f"the script asks for {match[1]}"
    if len(_ATTRIBUTE.findall(text)) > 1:
        yield "attributes are set in more than one function"
    for match in _CREATE.finditer(text):
        if match[2] not in ("name", "SVG, name"):
            yield f"the script makes an element {match[2]}"
