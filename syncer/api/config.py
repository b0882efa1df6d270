"""The base of a syncer's own section of the configuration."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Section(BaseModel):
    """A part of the configuration: frozen, camelCase outside, unknown keys refused. A field's docstring is its help."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
    )


class Config(Section):
    """A syncer's own section; subclass it to add options."""

    enabled: bool = True
    """Whether the kind is synced at all."""
