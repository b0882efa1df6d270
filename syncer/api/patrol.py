"""Options of the patroller: how often, what is done about drift, and how much may be deleted at once."""

from typing import Self

from pydantic import Field, model_validator

from syncer.api.drift import DriftPolicies
from syncer.api.durations import Duration
from syncer.api.section import Section


class Breaker(Section):
    """Deletions of one kind on one side are held when they are more than both of these, in one scan of the patroller or
    of what a list shows to be missing. `syncer patrol --confirm` lets them be made.
    """

    percent: float = Field(default=50, ge=0, le=100)
    """So many percent of the objects of that kind."""

    count: int = Field(default=100, ge=0)
    """So many objects."""


class Patrol(Section):
    """Every object is decided again at intervals, whether or not anything was seen to change."""

    enabled: bool = True
    """Whether to patrol."""

    interval: Duration = 600.0
    """Time between two scans of what the daemon knows. What has not changed since it was found right is passed over."""

    fresh: Duration = 3600.0
    """Time between two scans of everything from fresh lists of both API servers. At least `interval`."""

    drift: DriftPolicies = DriftPolicies()
    """What is done about drift: `repair` (the default), `report` or `ignore`. Each kind may say otherwise."""

    breaker: Breaker = Breaker()

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.interval < 1:
            raise ValueError("interval must be at least 1s; set enabled to false for no patrol")
        if self.fresh < self.interval:
            raise ValueError("fresh must not be shorter than interval, as it is looked at then")
        return self
