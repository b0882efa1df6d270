"""The base class of a syncer's section in the configuration."""

import itertools
from collections.abc import Collection
from typing import Literal, Self

from pydantic import Field, model_validator

from syncer.api.drift import DriftPolicies
from syncer.api.durations import Duration
from syncer.api.metadata_rules import MetadataRules
from syncer.api.patches import Patches
from syncer.api.paths import Steps, is_within, metadata_key, path_steps
from syncer.api.section import Section
from syncer.api.selection import Selector

#: The side that owns a field.
Owner = Literal["virtual", "host", "both"]
#: The policy for a virtual object whose host copy is deleted by someone else.
HostDeletion = Literal["recreate", "propagate", "report"]

#: Fields whose owner is fixed: they identify the object, or only one side can know them.
_FIXED = ("apiVersion", "kind", "metadata", "status")


def _steps(path: str) -> Steps:
    try:
        steps = path_steps(path)
    except ValueError:
        steps = ()
    is_whole = bool(steps) and all(steps)
    if not is_whole or (path[0] != "/" and set(path) & set("[]/ ")):
        why = f"authority: expected a path of fields such as spec.replicas, found {path!r}"
        raise ValueError(why)
    return steps


class Config(Section):
    """The section of a syncer. Subclass it to add options; a field's docstring is its help text."""

    enabled: bool = True
    """Whether objects of this kind are synced."""

    selector: Selector = Selector()
    """The labels of virtual objects to sync.

    Empty: all objects. The copy of an object that no longer matches is deleted. Only for kinds that
    go to the host.
    """

    metadata: MetadataRules = MetadataRules()
    """The labels and annotations that are copied.

    By default all, except those that controllers of the host act on, which are listed in
    docs/metadata.md with the reasons, and those that the kind itself excludes. Not for `fake`
    kinds, of which none are.
    """

    patches: Patches = Patches()
    """Changes to objects of this kind just before they are written.

    An object whose patch fails is parked.
    """

    drift: DriftPolicies = DriftPolicies()

    max_retry_delay: Duration = Field(default=60.0, gt=0)
    """Longest delay between two attempts to sync an object after a temporary failure.

    The first delay is 50ms; each further one is twice as long.
    """

    concurrency: int = Field(default=0, ge=0, le=1024)
    """Maximum number of objects of this kind that are worked on at the same time. 0: no limit
    besides `workers`, which all kinds share.
    """

    writes_per_second: float = Field(default=0, ge=0)
    """Sustained rate of writes for this kind on both sides together, per second. 0: no limit
    besides `qps` of the connections. No worker waits for it, so other kinds are not delayed.
    """

    patrol_interval: Duration = Field(default=0.0, ge=0)
    """Time between two scans of this kind by the patroller, at least 1s. 0: as `patrol.interval`
    says.
    """

    authority: dict[str, Owner] = Field(default={})
    """The owner of fields that go to the host, by path: dotted, or a JSON pointer where a name
    contains dots (`/metadata/annotations/example.org~1team`). `virtual` (the default): the virtual
    side owns the field. `host`: the virtual value is used to create the copy; from then on the
    host's value is copied up. `both`: either side may change the field, and the other side follows;
    a mapping is merged entry by entry, a list as a whole, and the virtual side wins where both
    changed. Names of other objects are translated. Don't list fields whose values differ between
    the sides for any other reason.
    """

    on_host_deletion: HostDeletion = "recreate"
    """What happens when someone else deletes a copy on the host.

    `recreate`: the copy is created again. `propagate`: the virtual object is deleted too. `report`:
    an event is recorded, and no copy is created until the annotation `vsyncer.dev/copied` is
    removed from the virtual object. `propagate` and `report` need the right to patch virtual
    objects, `propagate` also the right to delete them. When switching back from `recreate` to
    `propagate` or `report`, first remove this annotation from all objects of the kind; a stale one
    would be read as a deletion. Other values than `recreate` are only for kinds that go to the host
    and have no rule of their own for this, as Pods have.
    """

    def reserved_labels(self) -> Collection[str]:
        """Return labels that these options give a meaning on the host; no copy of any kind bears
        them.
        """
        return ()

    @model_validator(mode="after")
    def _is_patrolled_in_bounds(self) -> Self:
        if 0 < self.patrol_interval < 1:
            raise ValueError("patrolInterval must be at least 1s; 0 stands for patrol.interval")
        return self

    @model_validator(mode="after")
    def _has_paths_that_can_have_an_owner(self) -> Self:
        for path in self.authority:
            steps = _steps(path)
            if steps[0] in _FIXED and metadata_key(path) is None:
                why = f"nothing in {', '.join(_FIXED)} can, but a label or annotation"
                example = "as in /metadata/annotations/example.org~1team"
                raise ValueError(f"authority: {path} can't have another owner; {why}, {example}")
        for path, other in itertools.permutations(self.authority, 2):
            if is_within(path, other):
                way_out = "name fields that aren't within one another"
                raise ValueError(f"authority: {path} is within {other}; {way_out}")
        return self
