"""The page of the kinds that are synced: docs/kinds.md, from the syncers themselves."""

import inspect
import re
from collections.abc import Iterable, Iterator

from syncer.api import Config, Syncer
from syncer.api.paths import is_within, path_text
from syncer.config.types import options
from syncer.daemon.pages import kind_names
from syncer.daemon.pages.kind_names import UNSYNCED
from syncer.directions import Direction, direction_class

HEAD = """\
# Kinds

Written by hack/generate from the built-in syncers. Each has a section below `sync` in the
configuration; [options.md](options.md#options-of-every-kind) has the options of every kind, and
those of each. `syncer rbac` prints the rights that the enabled ones need.

*Down* means that the tenant's objects have copies on the host, which are deleted with them. *Up*
means that objects of the host appear in the virtual cluster, where a tenant's changes are undone. A
*stand-in* is made in the virtual cluster because other objects there name it.

Every field has an owner, and the other side follows it. Fields that nobody owns are left alone. A
*translated* field differs between the sides, as it names other objects or is limited. What the
owner hasn't set is removed from *exact* fields, and left alone elsewhere. `authority` in the
section of a kind gives single fields another owner. The labels and annotations that cross are in
[metadata.md](metadata.md).

| kind | direction | by default | section |
|---|---|---|---|
"""
TAIL = """\
## Kinds that stay in the virtual cluster

Its own API server and controllers enforce them. HorizontalPodAutoscalers need `metrics.k8s.io`, and
the Services of webhooks are the virtual cluster's. `syncer explain` answers with the same.

| kind | instead |
|---|---|
"""


def kinds_page(syncers: Iterable[type[Syncer]]) -> str:
    """Return the page, in Markdown.

    Raises:
        ValueError: A kind is synced of which the page says that it isn't.
    """
    found = sorted(syncers, key=lambda each: (each.resource.kind, each.section))
    if wrong := UNSYNCED.keys() & {each.resource.kind for each in found}:
        names = ", ".join(sorted(wrong))
        raise ValueError(f"{kind_names.__name__} says that these kinds aren't synced: {names}")
    rows = [
        f"| {_title(each)} | {_direction(each)} | {_default(each)} | `sync.{each.section}` |"
        for each in found
    ]
    parts: list[str] = []
    for each in found:
        parts.extend(_part(each))
    kinds: dict[str, list[str]] = {}
    for kind, instead in UNSYNCED.items():
        kinds.setdefault(instead, []).append(kind)
    left = [f"| {', '.join(those)} | {instead} |" for instead, those in kinds.items()]
    return HEAD + "\n".join([*rows, "", *parts]) + "\n" + TAIL + "\n".join(left) + "\n"


def _title(syncer: type[Syncer]) -> str:
    return f"[{syncer.resource.kind}](#{_anchor(_heading(syncer))})"


def _heading(syncer: type[Syncer]) -> str:
    return f"{syncer.resource.kind}: `{syncer.section}`"


def _anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


def _direction(syncer: type[Syncer]) -> str:
    direction: type[Direction] = direction_class(syncer)
    parts = [
        name
        for name, holds in (
            ("down", direction.goes_down),
            ("up", direction.comes_up),
            ("stand-in", direction.fakes),
        )
        if holds
    ]
    return " or ".join(parts)


def _default(syncer: type[Syncer]) -> str:
    return "on" if syncer.config.model_fields["enabled"].default else "off"


def _part(syncer: type[Syncer]) -> Iterator[str]:
    sentences = (inspect.getdoc(syncer) or "").replace("``", "`")
    yield from (f"## {_heading(syncer)}", "", *sentences.splitlines(), "")
    yield from _fields(syncer)
    yield from _options(syncer)


def _fields(syncer: type[Syncer]) -> Iterator[str]:
    """Yield the table of fields by owner."""
    owned = (*syncer.down, *syncer.up, *syncer.both)
    rows = {
        "owned by the virtual side": syncer.down,
        "owned by the host": syncer.up,
        "owned by both": syncer.both,
        "of these translated": syncer.translates,
        "written once": syncer.create_only,
        "exact": tuple(
            path for path in syncer.exact if any(is_within(path, each) for each in owned)
        ),
    }
    if any(rows.values()):
        yield from ("| fields | |", "|---|---|")
        for name, paths in rows.items():
            if paths:
                yield f"| {name} | {' '.join(f'`{path_text(path)}`' for path in paths)} |"
        yield ""


def _options(syncer: type[Syncer]) -> Iterator[str]:
    """Yield the options that only this kind has, each with the first sentence of its help."""
    common = {option.path for option in options(Config, "")}
    own = [option for option in options(syncer.config, "") if option.path not in common]
    if own:
        yield from ("| option | |", "|---|---|")
        yield from (f"| `{option.path}` | {_first_sentence(option.help)} |" for option in own)
        yield ""


def _first_sentence(text: str) -> str:
    sentences = " ".join(text.split()).replace("|", "\\|")
    return re.split(r"(?<=[.:]) (?=[A-Z])", sentences, maxsplit=1)[0]
