"""The bytes that parts of the process may take: a tree.

The process has a part of its container's memory, the virtual clusters have parts of that, and their
namespaces and users parts of these. What is taken counts at a node and at all above it.
"""

from collections.abc import Callable

#: A part of a divided budget may take so many times what all its parts leave free.
SHARE_TIMES = 3


class ByteBudget:
    """A node of the tree: bytes that are taken, and their limit; ``most`` 0 is no limit.

    A budget that is ``divided`` has parts by name (:meth:`of`), such as those of namespaces. A part
    may take :data:`SHARE_TIMES` as much as all parts leave free: three quarters if it is alone. So
    a large one can't use up what others need: the larger it is, the less is free, and a smaller one
    still has room. Network switches share a buffer between ports by such dynamic thresholds.

    Not everything can be refused. ``over`` is called when more is taken than the limit allows. A
    divided budget that ``ends_largest`` calls it at its largest part instead, and so gives each
    part an equal share that is always there: one that takes no more is never the largest.

    A budget that is ``passing`` has bytes that are soon given back. They take room from others, but
    never count for ``over``.
    """

    __slots__ = (
        "_name",
        "_used_in_passing",
        "divided",
        "ends_largest",
        "most",
        "over",
        "parent",
        "parts",
        "passing",
        "used",
    )

    def __init__(
        self,
        most: int = 0,
        *,
        parent: "ByteBudget | None" = None,
        over: Callable[[], None] | None = None,
        divided: bool = False,
        ends_largest: bool = False,
        passing: bool = False,
    ) -> None:
        self.most = most
        self.parent = parent
        self.over = over
        self.divided = divided
        self.ends_largest = ends_largest
        self.passing = passing
        self.used = 0
        #: Those of the bytes that are soon given back.
        self._used_in_passing = 0
        #: The parts that have taken something, by name.
        self.parts: dict[str, ByteBudget] = {}
        self._name = ""

    def of(self, name: str, *, divided: bool = False) -> "ByteBudget":
        """Return the part of this name; the budget itself if it isn't divided.

        A part that has taken nothing is kept by its caller alone. One that is ``divided`` ends its
        largest part if this budget does. All parts of a ``passing`` budget are passing.
        """
        if not self.divided:
            return self
        part = self.parts.get(name)
        if part is None:
            ends_largest = divided and self.ends_largest
            part = ByteBudget(
                parent=self,
                divided=divided,
                ends_largest=ends_largest,
                passing=self.passing,
            )
            part._name = name
        return part

    def has_room(self, size: int) -> bool:
        """Return True if a part may take so many bytes more, or fewer.

        What isn't a part of a divided budget always may: it is counted, and may end what takes it.
        """
        node = self
        if size <= 0 or node.parent is None or not node.parent.divided:
            return True
        while (above := node.parent) is not None:
            if above.divided and above.most and not above._leaves(node.used + size, node, size):
                return False
            node = above
        return True

    def take(self, size: int) -> None:
        """Count so many bytes more, whether there is room for them or not."""
        passing = self.passing
        node: ByteBudget | None = self
        while node is not None:
            above = node.parent
            if not node.used and above is not None and above.divided:
                above.parts[node._name] = node
            node.used += size
            if passing:
                node._used_in_passing += size
            elif node.most and node._kept > node.most:
                node._is_over()
            node = above

    def give_back(self, size: int) -> None:
        """Count so many bytes less."""
        self._give_back(size, size if self.passing else 0)

    def close(self) -> None:
        """Give all back: what is taken or given back here from now on counts for nothing above."""
        if self.parent is not None:
            used = self.used
            in_passing = self._used_in_passing
            self._give_back(used, in_passing)
            self.used = used
            self._used_in_passing = in_passing
            self.parent = None

    @property
    def _kept(self) -> int:
        return self.used - self._used_in_passing

    def _give_back(self, size: int, in_passing: int) -> None:
        node: ByteBudget | None = self
        while node is not None:
            above = node.parent
            node.used -= size
            if in_passing:
                node._used_in_passing -= in_passing
            if not node.used and above is not None and above.divided:
                above.parts.pop(node._name, None)
            node = above

    def _leaves(self, wanted: int, part: "ByteBudget", size: int) -> bool:
        """Return True if a part that takes ``size`` more leaves enough to the others.

        ``wanted`` is what it takes in all.
        """
        if wanted <= SHARE_TIMES * (self.most - self.used - size):
            return True
        if not self.ends_largest:
            return False
        parts = len(self.parts) + (part._name not in self.parts)
        return wanted <= self.most // parts

    def _is_over(self) -> None:
        """Handle that more is taken than the limit allows."""
        if self.over is not None:
            self.over()
        elif self.ends_largest:
            largest = max(self.parts.values(), key=lambda part: part._kept)
            largest._is_over()
