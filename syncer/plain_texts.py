"""Texts, which may be a tenant's, without characters that act on what shows them: a terminal or a
page.
"""

import re
from typing import Any

#: Control characters but line breaks, and marks that change the direction of the text beside them.
ACTING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """Return a text with another character in place of each acting one."""
    return ACTING.sub("\N{REPLACEMENT CHARACTER}", text)


def plain_values(data: Any) -> Any:
    """Return JSON with the texts in it made plain."""
    if isinstance(data, dict):
        return {plain(name): plain_values(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [plain_values(value) for value in data]
    return plain(data) if isinstance(data, str) else data
