"""How much of the texts and lists of others a message shows."""

from collections.abc import Sequence

#: Maximum number of characters of a value that a message quotes.
LONGEST_QUOTE = 60
#: Maximum number of characters of the key or the value of a label that a message quotes.
LONGEST_LABEL_QUOTE = 100
#: Maximum number of items that a message names one by one; of the others it gives the number.
MOST_NAMED = 3
#: The same where each item says something else, such as the field that is wrong.
MOST_LISTED = 10


def listed(names: Sequence[str]) -> str:
    """Return names of fields in a list, and the number of further ones."""
    shown = []
    for name in names[:MOST_LISTED]:
        if len(name) > LONGEST_LABEL_QUOTE:
            shown.append(f"{name[:LONGEST_LABEL_QUOTE]}…")
        else:
            shown.append(name)
    text = ", ".join(shown)
    if len(names) > MOST_LISTED:
        text += f" and {len(names) - MOST_LISTED} more"
    return text
