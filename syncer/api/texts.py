"""Cut texts of others before they are searched, kept or passed on."""

#: Most characters of a message that are worked on. An Event has 1024 bytes at most, and names in it
#: become shorter when they are translated.
LONGEST_MESSAGE = 4096
#: Longest name of a field in a message, in characters; names are the tenant's.
LONGEST_FIELD = 63


def shortened(message: str) -> str:
    """Return a message, cut after a word if it is too long.

    A cut within a word could leave a part of a host name, which isn't translated.
    """
    if len(message) <= LONGEST_MESSAGE:
        return message
    kept = message[:LONGEST_MESSAGE]
    whole, space, _ = kept.rpartition(" ")
    if space:
        kept = whole
    return f"{kept}…"
