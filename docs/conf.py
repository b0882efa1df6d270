"""The site of the documentation.

Sphinx reads this file; ``hack/docs`` builds the site from the folder above.
"""

import configparser
import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]

_setup = configparser.ConfigParser()
_setup.read(ROOT / "setup.cfg")

project = "vsyncer"
author = "the vsyncer authors"
copyright = author  # noqa: A001 — the name that Sphinx reads
release = _setup["metadata"]["version"]
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
#: All Markdown of the tree that is prose; links between these pages stay links.
include_patterns = [
    "*.md",
    "docs/**.md",
    "charts/*/*.md",
    "examples/**.md",
    "hack/bench/README.md",
    "plugins/**.md",
]
exclude_patterns = ["plugins/*/CHANGELOG.md", "plugins/**/.venv/**", "**/.pytest_cache"]

html_theme = "furo"
html_title = f"{project} {release}"
html_show_sourcelink = False

#: As many as GitHub gives anchors to: links lead to headings of any depth.
myst_heading_anchors = 6
autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
autodoc_default_options = {"members": True, "show-inheritance": True}
# A piece of Go with an ellipsis stays uncoloured.
suppress_warnings = ["misc.highlighting_failure"]

_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")

_CODE = re.compile(r"(?<![`:\w])`([^`]+)`(?![`_])")


def link_pages_only(app: Sphinx, page: str, source: list[str]) -> None:
    """Rewrite the links of a page that lead to something of the tree that isn't a page of the site.

    A folder with a README becomes a link to that page; another file or folder becomes the text of
    its link.
    """
    folder = (ROOT / page).parent

    def rewritten(link: re.Match[str]) -> str:
        text, path, anchor = link[1], link[2], link[3] or ""
        target = (folder / path).resolve()
        if target.is_dir() and is_page(app, target / "README.md"):
            return f"[{text}]({path.rstrip('/')}/README.md{anchor})"
        if target.exists() and not is_page(app, target):
            return text
        return link[0]

    source[0] = _LINK.sub(rewritten, source[0])


def skip_what_another_page_has(
    app: Sphinx, kind: str, name: str, thing: object, skip: bool, options: dict[str, object]
) -> bool | None:
    """Leave what the library for many clusters exports from ``syncer.api`` to its own page."""
    if app.env.docname != "docs/reference/multicluster":
        return None
    module = getattr(thing, "__module__", None) or ""
    return True if module.startswith("syncer.api.") else None


def show_code_as_code(
    app: Sphinx, kind: str, name: str, thing: object, options: dict[str, object], lines: list[str]
) -> None:
    """Turn code between single backticks, as in help texts, into reStructuredText's literals."""
    lines[:] = _CODE.sub(r"``\1``", "\n".join(lines)).split("\n")


def is_page(app: Sphinx, target: Path) -> bool:
    """Return True if a file is a page of the site."""
    if target.suffix != ".md" or not target.is_relative_to(ROOT):
        return False
    name = target.relative_to(ROOT).with_suffix("").as_posix()
    return name in app.env.found_docs


def setup(app: Sphinx) -> None:
    """Connect what this file adds to Sphinx."""
    app.connect("source-read", link_pages_only)
    # Before napoleon, which takes the text before a colon for a type unless it is a literal.
    app.connect("autodoc-process-docstring", show_code_as_code, priority=400)
    app.connect("autodoc-skip-member", skip_what_another_page_has)
