"""Render the configuration: all options as YAML, as a table, and as a JSON schema."""

import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, NoDefault
from pydantic_core.core_schema import WithDefaultSchema

from syncer.api.config import Config
from syncer.config.docs import document
from syncer.config.list_form import COMMON, LIST, SECRETS
from syncer.config.load import Loaded
from syncer.config.model import SyncerConfig
from syncer.config.types import Option, options

#: The identifier of the schema for editors. It doesn't change.
SCHEMA_ID = "https://vsyncer.dev/schemas/v1alpha1/syncer-config.json"
_WIDTH = 110
#: A file names its virtual clusters in either form, not in both.
_SHORT_FORM = {"required": ["cluster"]}
_LIST_FORM = {
    "required": [LIST],
    "properties": {"virtual": False, "host": {"properties": {"namespace": False}}},
    "anyOf": [{"properties": {LIST: {"minItems": 1}}}, {"required": [SECRETS]}],
}
#: Or Secrets name them all.
_SECRETS_FORM = {"required": [SECRETS], "properties": {LIST: False, "cluster": False}}
#: The options of the short form, left out of the file with every option.
_SHORT = ("cluster", "virtual", "host.namespace")
#: Sections of an entry whose options are those of the section at the top.
_LAID_OVER = (
    *(f"{LIST}[].{name}" for name in COMMON),
    *(f"{SECRETS}[].{name}" for name in COMMON),
)

_TABLE_HEAD = "| option | takes | default | |\n|---|---|---|---|"
_TABLES = """\
## Options of every kind

The section of a kind, such as `sync.toHost.pods`, and an entry of `sync.custom` have these options.
The other table names one of them again only for a kind with another default or meaning.

{common}

## Other options

{others}
"""
_FIRST_KIND = """\
Every kind has the options down to `onHostDeletion`. Below, a kind shows only its own options, and
one of these where the default differs."""


class _FileSchema(GenerateJsonSchema):
    """The schema of a file.

    It has the short form, and no defaults of whole sections, as each option has its own.
    """

    def field_is_present(self, field: Any) -> bool:
        """Return True: fields that are excluded from dumps are options too."""
        return True

    def get_default_value(self, schema: WithDefaultSchema) -> Any:
        default = super().get_default_value(schema)
        return NoDefault if isinstance(default, BaseModel) else default


class Row(NamedTuple):
    """A value in force, and its origin."""

    path: str
    value: Any
    origin: str


def schema(model: type[SyncerConfig]) -> dict[str, Any]:
    """Return the JSON schema of a configuration file (draft 2020-12)."""
    document(model)
    # This mode shows defaults as they are written: "15s" rather than 15.0.
    generated = model.model_json_schema(
        by_alias=True,
        mode="serialization",
        schema_generator=_FileSchema,
    )
    generated["required"] = ["apiVersion", "kind"]
    generated["oneOf"] = [_SHORT_FORM, _LIST_FORM, _SECRETS_FORM]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **generated,
    }


def rows(loaded: Loaded) -> list[Row]:
    """Return every value in force with its origin, in list form and in the order of the model."""
    return list(_rows(loaded.config.model_dump(mode="json", by_alias=True), "", loaded))


def _rows(value: Any, path: str, loaded: Loaded) -> Iterator[Row]:
    if path in (LIST, SECRETS):
        for number, entry in enumerate(value):
            # The values of a section that the entry doesn't have are those at the top.
            own = dict(entry)
            for name in COMMON:
                if own.get(name) is None:
                    own.pop(name, None)
            yield from _rows(own, f"{path}[{number}]", loaded)
    elif isinstance(value, dict) and value:
        for key, inner in value.items():
            below = f"{path}.{key}" if path else key
            yield from _rows(inner, below, loaded)
    else:
        yield Row(path, value, loaded.origin(path))


def defaults(model: type[SyncerConfig], given: dict[str, Any] | None = None) -> str:
    """Return a complete file: every option with its help.

    Its value is the ``given`` one, by dotted path, or else its default.
    """
    return "\n".join(_File(model, given or {}).lines(model, "", "")) + "\n"


class _File:
    """The file with every option."""

    def __init__(self, model: type[BaseModel], given: dict[str, Any]) -> None:
        self._given = given
        self._common = _common()
        kinds = (option.path for option in _all(model, "", set()) if _is_kind(option.model))
        self._first_kind = next(kinds, None)

    def lines(self, model: type[BaseModel], path: str, indent: str) -> Iterator[str]:
        """Yield the lines of the options below a path, with their help as comments."""
        shown = [option for option in options(model, path) if option.path not in _SHORT]
        if _is_kind(model) and path != self._first_kind:
            shown = [option for option in shown if not self._is_common(option, path)]
        for index, option in enumerate(shown):
            if index and not indent:
                yield ""
            if option.path == self._first_kind:
                yield from _comment(_FIRST_KIND, indent)
                yield f"{indent}#"
            yield from _comment(_about(option), indent)
            yield from self._value(option, indent)

    def _is_common(self, option: Option, kind: str) -> bool:
        """Return True if an option of a kind is that of every kind, with all options below it."""
        whole = [option]
        if option.model is not None:
            whole += _all(option.model, option.path, set())
        return all(_is_same(each, kind, self._common) for each in whole)

    def _value(self, option: Option, indent: str) -> Iterator[str]:
        """Yield the lines of an option."""
        name = option.path.rpartition(".")[2]
        if option.path == LIST and option.item is not None:
            first, *more = self.lines(option.item, option.items, "    ")
            yield f"{name}:"
            yield f"  - {first.lstrip()}"
            yield from more
        elif option.path in _LAID_OVER:
            yield f"{indent}# {name}: {{}}"
        elif option.model is None:
            value = self._given.get(option.path, _shown(option))
            yield f"{indent}{name}: {_scalar(value)}"
        else:
            inner = list(self.lines(option.model, option.path, indent + "  "))
            yield f"{indent}{name}:" if inner else f"{indent}{name}: {{}}"
            yield from inner


def _comment(text: str, indent: str) -> Iterator[str]:
    """Yield the lines of a comment."""
    for line in textwrap.wrap(text, _WIDTH - len(indent)):
        yield f"{indent}# {line}"


def _is_kind(model: type[BaseModel] | None) -> bool:
    """Return True for the section of a kind."""
    return model is not None and issubclass(model, Config)


def _common() -> dict[str, Option]:
    """Return the options of every kind, by their paths below the section of a kind."""
    return {option.path: option for option in _all(Config, "", set())}


def _is_same(option: Option, kind: str, common: dict[str, Option]) -> bool:
    """Return True if an option below the section of a kind is an option of every kind."""
    of_every_kind = common.get(option.path.removeprefix(f"{kind}."))
    if of_every_kind is None:
        return False
    return (
        option.takes == of_every_kind.takes
        and option.default == of_every_kind.default
        and option.help == of_every_kind.help
    )


def _about(option: Option) -> str:
    """Return the help of an option, with what it takes if that isn't plain from its value."""
    plain = ("section", "text", "true or false", "whole number", "number", str(option.default))
    notes = [] if option.takes in plain else [option.takes]
    if option.required:
        notes.append("required")
    text = " ".join(option.help.split())
    return f"{text} ({'; '.join(notes)})" if notes else text


def _shown(option: Option) -> Any:
    """Return the default as it is written in a file."""
    return "" if option.required else option.default


def _scalar(value: Any) -> str:
    """Return a value as YAML on a single line."""
    if value == "":
        return '""'
    return yaml.safe_dump(value, default_flow_style=True, width=1000).splitlines()[0]


def markdown(model: type[SyncerConfig]) -> str:
    """Return tables of all options, for the documentation: those of every kind, then the others."""
    common = _common()
    items: set[type[BaseModel]] = set()
    tables = {
        "common": [_table_line(option) for option in _all(Config, "", items)],
        "others": [_table_line(option) for option in _others(model, "", items, common)],
    }
    texts = {name: "\n".join([_TABLE_HEAD, *lines]) for name, lines in tables.items()}
    return _TABLES.format(**texts)


def _all(model: type[BaseModel], path: str, items: set[type[BaseModel]]) -> Iterator[Option]:
    """Yield every option; those of a repeated item type only once."""
    yield from _others(model, path, items, {})


def _others(
    model: type[BaseModel],
    path: str,
    items: set[type[BaseModel]],
    common: dict[str, Option],
) -> Iterator[Option]:
    """Yield every option but the common ones of a kind; those of a repeated item type only once."""
    for option in options(model, path):
        yield option
        if option.path in _LAID_OVER:
            continue
        section = option.model
        below = option.path
        if section is None and option.item is not None and option.item not in items:
            items.add(option.item)
            section = option.item
            below = option.items
        if section is None:
            continue
        for inner in _others(section, below, items, common):
            if not (_is_kind(section) and _is_same(inner, below, common)):
                yield inner


def _table_line(option: Option) -> str:
    takes = ""
    default = ""
    if option.model is None:
        takes = option.takes.replace("|", "\\|")
        default = "required" if option.required else f"`{_scalar(_shown(option))}`"
    text = " ".join(option.help.split()).replace("|", "\\|")
    return f"| `{option.path}` | {takes} | {default} | {text} |"
