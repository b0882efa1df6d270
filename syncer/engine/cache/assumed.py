"""A write of ours under way, and what the watch shows of its object before the reply comes."""

from collections.abc import Callable
from typing import Self

from syncer.api.objects import Key, Obj

#: Takes an object that somebody else has changed.
Tell = Callable[[Key, Obj], None]


class Writing:
    """A write of ours under way, as a ``with`` block: remembers which states the watch has shown meanwhile.

    Whether such a state is our own doing, the reply says. So who listens is told when the block ends, and of the
    states that we made not at all; that something is gone is told whoever did it.
    """

    __slots__ = ("_key", "_tell", "_under_way", "_untold", "seen")

    def __init__(self, under_way: "dict[Key, list[Writing]]", key: Key, tell: Tell) -> None:
        #: The versions that were shown, and the uid where it was shown to be gone.
        self.seen: set[str] = set()
        self._untold: dict[str, Obj] = {}
        self._under_way, self._key, self._tell = under_way, key, tell

    def hold(self, state: str, last: Obj) -> None:
        """Tell of a state when the write has ended, unless it was ours."""
        self._untold[state] = last

    def own(self, state: str) -> None:
        """Take it that a state was our own doing."""
        self._untold.pop(state, None)

    def __enter__(self) -> Self:
        self._under_way.setdefault(self._key, []).append(self)
        return self

    def __exit__(self, *_: object) -> None:
        others = self._under_way[self._key]
        others.remove(self)
        if not others:
            del self._under_way[self._key]
        for last in self._untold.values():
            self._tell(self._key, last)
