"""Print results: tables for people; JSON, YAML and names for programs; errors as a message without
a traceback.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import click

from syncer.plain_texts import ACTING, plain

#: A result: a mapping for each line of the table, all with the same keys.
Records = Sequence[Mapping[str, Any]]


def one_line(text: str) -> str:
    """Return a text, which may be a tenant's, as one plain line."""
    return plain(" ".join(text.split()))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 attempt``, ``2 attempts``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def fail(message: str, exit_code: int = 1) -> NoReturn:
    """Print a message to standard error and exit."""
    click.echo(message, err=True)
    raise click.exceptions.Exit(exit_code)


def end_with(error: Exception) -> None:
    """End the command with the message and exit status of one of our errors.

    Return if the error is a fault in the program; the caller raises it then.
    """
    from syncer.api import ConfigError, SyncerError

    if isinstance(error, ConfigError):
        count = len(error.problems)
        summary = f"{count} problems" if count > 1 else "1 problem"
        fail(f"{plain(str(error))}\n{summary}. Nothing was started.", error.exit_code)
    if isinstance(error, SyncerError):
        fail(f"{red('syncer:')} {plain(str(error))}", error.exit_code)


def no_daemon(error: Exception) -> None:
    """Print that no daemon answers, and that the command therefore decides by itself."""
    click.echo(f"{error}\nSo this command decides once by itself.", err=True)


def red(text: str) -> str:
    """Return the text in red on a terminal, unless NO_COLOR (https://no-color.org) is set."""
    return text if os.environ.get("NO_COLOR") else click.style(text, fg="red")


def records(found: Records, form: str, *, headers: bool = True) -> None:
    """Print records in a format; the first value of a record is its name."""
    match form:
        case "name":
            for record in found:
                click.echo(_cell(next(iter(record.values()))))
        case "table":
            _table(found, headers=headers)
        case _:
            value([dict(record) for record in found], form)


def value(data: Any, form: str) -> None:
    """Print data as JSON or YAML."""
    if form == "json":
        # Within strings of JSON alone: control characters below U+0020 are escaped already.
        click.echo(ACTING.sub(_escaped, json.dumps(data, indent=2, ensure_ascii=False)))
        return
    import yaml

    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120)
    click.echo(plain(text), nl=False)


def documents(found: Sequence[Mapping[str, Any]], form: str) -> None:
    """Print Kubernetes objects as input for ``kubectl apply -f -``."""
    if form == "json":
        value({"apiVersion": "v1", "kind": "List", "items": list(found)}, form)
        return
    for index, each in enumerate(found):
        if index:
            click.echo("---")
        value(each, form)


def _table(found: Records, *, headers: bool) -> None:
    lines = [[_cell(cell) for cell in record.values()] for record in found]
    if headers and found:
        lines.insert(0, [name.upper() for name in found[0]])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        click.echo("   ".join(cells).rstrip())


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _cell(cell: Any) -> str:
    return " ".join(plain(_text(cell)).split("\n"))


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, list | tuple):
        return ",".join(map(str, cell))
    return json.dumps(cell) if isinstance(cell, dict) or cell == "" else str(cell)
