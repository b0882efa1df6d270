"""The table of synced objects: live on a terminal with rich, else plain text."""

import importlib.util
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from hack.webshop.state import Row

if TYPE_CHECKING:
    from rich.table import Table

HEAD = Row("KIND", "VIRTUAL CLUSTER", "", "HOST CLUSTER", "LAST WRITE", "STATUS", good=True)


class Screen(Protocol):
    """A way to show rows."""

    def show(self, rows: Sequence[Row]) -> None:
        """Show the current rows."""

    def end(self, rows: Sequence[Row]) -> None:
        """Show the rows for the last time."""


class Plain:
    """Lines: the whole table once, then each row that changes or goes."""

    def __init__(self) -> None:
        self._shown: list[Row] = []

    def show(self, rows: Sequence[Row]) -> None:
        """Print the rows once all are in step, and after that the changed ones."""
        if self._shown:
            self._follow(rows)
        elif rows and all(row.good for row in rows):
            print("\n".join(lines(rows)))
            self._shown = list(rows)

    def _follow(self, rows: Sequence[Row]) -> None:
        there = {row[:2] for row in rows}
        gone = [row._replace(status="gone") for row in self._shown if row[:2] not in there]
        changed = [*gone, *(row for row in rows if row not in self._shown)]
        self._shown = list(rows)
        if changed:
            print("\n".join(lines(changed, head=False)), flush=True)

    def end(self, rows: Sequence[Row]) -> None:
        """Print the table unless it was printed."""
        if not self._shown:
            print("\n".join(lines(rows)), flush=True)


def lines(rows: Sequence[Row], *, head: bool = True) -> list[str]:
    """Return the table as text."""
    cells = [row[:-1] for row in rows]
    signs = ["  " if row.good else "! " for row in rows]
    if head:
        cells.insert(0, HEAD[:-1])
        signs.insert(0, "  ")
    widths = [max(map(len, column), default=0) for column in zip(*cells, strict=True)]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    )
    return [f"{sign}{text}".rstrip() for sign, text in zip(signs, padded, strict=True)]


class Live:
    """A table that follows the changes."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self._console = Console()
        self._live = RichLive(console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def show(self, rows: Sequence[Row]) -> None:
        """Draw the current rows."""
        self._live.update(_drawn(rows), refresh=True)

    def end(self, rows: Sequence[Row]) -> None:
        """Leave the last table on the screen."""
        self._live.stop()
        self._console.print(_drawn(rows))


def _drawn(rows: Sequence[Row]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in HEAD[:-1]:
        table.add_column(title, overflow="fold", no_wrap=False)
    for row in rows:
        style = "yellow"
        if row.good:
            style = "green"
        table.add_row(*row[:-1], style=style)
    return table


def screen() -> Screen:
    """Return the best way to show rows on this terminal, or in this file."""
    return Live() if sys.stdout.isatty() and importlib.util.find_spec("rich") else Plain()
