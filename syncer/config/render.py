"""Shows the configuration to people and to editors: all options as YAML, as a table, and as a JSON schema."""

import json
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, NoDefault
from pydantic_core.core_schema import WithDefaultSchema

from syncer.config.docs import document
from syncer.config.load import Loaded
from syncer.config.model import SyncerConfig
from syncer.config.types import Option, options

#: Where editors find the schema under a name that doesn't change.
SCHEMA_ID = "https://vsyncer.dev/schemas/v1alpha1/syncer-config.json"
_WIDTH = 110


class _WithoutSections(GenerateJsonSchema):
    """Leaves out the default of a section: its options say theirs."""

    def get_default_value(self, schema: WithDefaultSchema) -> Any:
        default = super().get_default_value(schema)
        return NoDefault if isinstance(default, BaseModel) else default


class Row(NamedTuple):
    """One value of the configuration in force, and where it comes from."""

    path: str
    value: Any
    origin: str


def schema(model: type[SyncerConfig]) -> dict[str, Any]:
    """The JSON schema of a configuration file (draft 2020-12)."""
    document(model)
    # the mode in which defaults are shown as they are written, "15s" and not 15.0
    made = model.model_json_schema(by_alias=True, mode="serialization", schema_generator=_WithoutSections)
    required = ["apiVersion", "kind", *made.pop("required", [])]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA_ID, **made, "required": required}


def rows(loaded: Loaded) -> list[Row]:
    """Every value in force with its origin, in the order of the model."""
    return list(_rows(loaded.config.model_dump(mode="json", by_alias=True), "", loaded))


def _rows(value: Any, path: str, loaded: Loaded) -> Iterator[Row]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _rows(inner, f"{path}.{key}" if path else key, loaded)
    else:
        yield Row(path, value, loaded.origin(path))


def defaults(model: type[SyncerConfig], given: dict[str, Any] | None = None) -> str:
    """Every option with its default, its help as a comment: a file to begin with. ``given`` are values for some."""
    return "\n".join(_yaml(model, "", given or {}, "")) + "\n"


def _yaml(model: type[BaseModel], path: str, given: dict[str, Any], indent: str) -> Iterator[str]:
    for place, option in enumerate(options(model, path)):
        if place and not indent:
            yield ""
        name = option.path.rpartition(".")[2]
        yield from (f"{indent}# {line}" for line in textwrap.wrap(_about(option), _WIDTH - len(indent)))
        if option.model is None:
            yield f"{indent}{name}: {_scalar(given.get(option.path, _shown(option)))}"
            continue
        inner = list(_yaml(option.model, option.path, given, indent + "  "))
        yield f"{indent}{name}:" if inner else f"{indent}{name}: {{}}"
        yield from inner


def _about(option: Option) -> str:
    plain = ("section", "text", "true or false", "whole number", "number", str(option.default))
    takes = "" if option.takes in plain else option.takes
    notes = "; ".join(filter(None, (takes, "required" if option.required else "")))
    return f"{' '.join(option.help.split())} ({notes})" if notes else " ".join(option.help.split())


def _shown(option: Option) -> Any:
    """The default as it is written in a file."""
    return "" if option.required else option.default


def _scalar(value: Any) -> str:
    return (
        json.dumps(value) if value == "" else yaml.safe_dump(value, default_flow_style=True, width=1000).splitlines()[0]
    )


def markdown(model: type[SyncerConfig]) -> str:
    """A table of all options, for the documentation."""
    lines = ["| option | takes | default | |", "|---|---|---|---|"]
    lines += [_table_line(option) for option in _all(model, "", set())]
    return "\n".join(lines) + "\n"


def _all(model: type[BaseModel], path: str, items: set[type[BaseModel]]) -> Iterator[Option]:
    """Every option; those of items of one kind only where they are met first."""
    for option in options(model, path):
        yield option
        if option.model is not None:
            yield from _all(option.model, option.path, items)
        elif option.item is not None and option.item not in items:
            items.add(option.item)
            yield from _all(option.item, option.items, items)


def _table_line(option: Option) -> str:
    section = option.model is not None
    default = "" if section else "required" if option.required else f"`{_scalar(_shown(option))}`"
    text = " ".join(option.help.split()).replace("|", "\\|")
    takes = "" if section else option.takes.replace("|", "\\|")
    return f"| `{option.path}` | {takes} | {default} | {text} |"
