"""The ``patrol`` section: intervals, drift policies, and the circuit breaker for deletions."""

from typing import Self

from pydantic import Field, model_validator

from syncer.api.drift import DriftPolicies
from syncer.api.durations import Duration
from syncer.api.section import Section


class Breaker(Section):
    """The circuit breaker holds the deletions of a kind on one side when they exceed both limits in
    a single scan of the patroller, or in a single list. `syncer patrol --confirm` releases them.
    """

    percent: float = Field(default=50, ge=0, le=100)
    """Limit, in percent of the objects of that kind."""

    count: int = Field(default=100, ge=0)
    """Limit, as a number of objects."""


class Patrol(Section):
    """The patroller, which reconciles every object at intervals, whether or not a change was
    seen.
    """

    enabled: bool = True
    """Whether the patroller runs."""

    interval: Duration = 600.0
    """Time between two scans of the cache.

    An object that has not changed since it was found in step is skipped.
    """

    fresh: Duration = 3600.0
    """Time between two scans of fresh lists from both API servers. At least `interval`."""

    drift: DriftPolicies = DriftPolicies()
    """What to do about drift: `repair` (the default), `report` or `ignore`.

    Each kind may override this.
    """

    breaker: Breaker = Breaker()

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.interval < 1:
            raise ValueError("interval must be at least 1s; set enabled to false for no patrol")
        if self.fresh < self.interval:
            raise ValueError("fresh must not be shorter than interval, as it is looked at then")
        return self
