"""docs/reasons.md: every reason why an object isn't in step, from the codes."""

import re

from syncer.api.reasons import CODES, ReasonCode

PAGE = """\
# Reasons

Written by hack/generate: each reason that `syncer list`, `syncer explain`, the metric
`syncer_reasons` and the page [My object isn't there](operate/objects.md) name, with its
[state](operate/objects.md#states). `…` stands for names and options. A plugin may have reasons of
its own.

| code | state | reason | way out |
|---|---|---|---|
{rows}
"""
#: What stands for a text that the syncer or the API server gives.
_OWN_TEXT = "*the text of the syncer or of the API server*"


def reasons_page() -> str:
    """Return the page."""
    return PAGE.format(rows="\n".join([_row(code) for code in CODES.values()]))


def _row(code: ReasonCode) -> str:
    state = code.state.value if code.state else "failing or parked"
    reason = _OWN_TEXT if code.is_text else _plain(code.sentence)
    return f"| `{code.name}` | {state} | {reason} | {_plain(code.way_out)} |"


def _plain(text: str) -> str:
    return re.sub(r"\{[^}]*\}", "…", text).replace("|", "\\|")
