"""The base class of every section of the configuration."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Section(BaseModel):
    """A section of the configuration: frozen, camelCase keys, unknown keys refused.

    A field's docstring is its help.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
    )
