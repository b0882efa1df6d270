"""A list that is being read into a store, beside our own writes and maybe a watch."""

from collections.abc import Callable

from syncer.api.objects import Key
from syncer.engine.cache.entry import Entry, is_older


class Listing:
    """A list that is being read, and what has happened beside it."""

    __slots__ = ("own", "passed", "shown", "watched", "wrong")

    def __init__(self, watched: Callable[[], str] | None, wrong: Callable[[Key], None]) -> None:
        self.watched, self.wrong = watched, wrong
        #: The version that the watch had brought when the list was asked for.
        self.passed = watched() if watched else ""
        #: Our own writes, with the versions that they made; a deletion makes none.
        self.own: dict[Key, str] = {}
        #: What the watch has shown, with the version of the event.
        self.shown: dict[Key, str] = {}

    def says_nothing_of(self, key: Key, version: str, entry: Entry | None) -> bool:
        """Whether what is known of an object isn't surely older than the list's version of it, or its lack."""
        if self.watched is None:
            return False
        beside = self.shown.get(key)
        if beside is not None and not is_older(beside, version):
            return True
        return entry is not None and is_older(version, entry.version)
