"""The base of a syncer's own section of the configuration."""

import itertools
from typing import Literal, Self

from pydantic import Field, model_validator

from syncer.api.drift import DriftPolicies
from syncer.api.durations import Duration
from syncer.api.patches import Patches
from syncer.api.paths import Steps, is_within, metadata_key, path_steps
from syncer.api.section import Section

#: Who owns a field.
Owner = Literal["virtual", "host", "both"]
#: What becomes of a virtual object whose copy somebody deletes on the host.
HostDeletion = Literal["recreate", "propagate", "report"]

#: What can't have another owner: it says what an object is, or one side alone can know it.
_FIXED = ("apiVersion", "kind", "metadata", "status")


def _steps(path: str) -> Steps:
    try:
        steps = path_steps(path)
    except ValueError:
        steps = ()
    if not all(steps) or not steps or (path[0] != "/" and set(path) & set("[]/ ")):
        raise ValueError(f"authority: expected a path of fields such as spec.replicas, found {path!r}")
    return steps


class Config(Section):
    """A syncer's own section; subclass it to add options."""

    enabled: bool = True
    """Whether the kind is synced at all."""

    patches: Patches = Patches()
    """What is changed in objects of this kind just before they are written. A patch that fails parks that object."""

    drift: DriftPolicies = DriftPolicies()

    max_retry_delay: Duration = Field(default=60.0, gt=0)
    """How long an object of this kind waits at most before it is tried again after a passing failure. The first time it
    waits 50ms, then twice as long each time."""

    authority: dict[str, Owner] = Field(default={})
    """Who owns fields that go to the host, by path: dotted, or as a JSON pointer where a name has dots in it
    (`/metadata/annotations/example.org~1team`). `virtual`: the virtual side, as is usual. `host`: the host;
    the virtual value is used when the copy is made, after that the host's comes up. `both`: either may change them, and
    the other follows; each entry of a mapping is merged for itself, a list as a whole, and where both have changed, the
    virtual side wins. Names of other objects are translated; not for fields whose values differ otherwise."""

    on_host_deletion: HostDeletion = "recreate"
    """What happens when somebody deletes a copy on the host. `recreate`: it is made again. `propagate`: the virtual
    object is deleted, too. `report`: an event says so, and nothing is made until the annotation `vsyncer.dev/copied` is
    taken off the virtual object. The last two need the right to patch (and to delete) virtual objects. Take that
    annotation off all objects of the kind before `recreate` is replaced by one of them a second time."""

    @model_validator(mode="after")
    def _has_paths_that_can_have_an_owner(self) -> Self:
        for path in self.authority:
            steps = _steps(path)
            if steps[0] in _FIXED and metadata_key(path) is None:
                raise ValueError(
                    f"authority: {path} can't have another owner; nothing in {', '.join(_FIXED)} can, but a label or "
                    "annotation, as in /metadata/annotations/example.org~1team"
                )
        for path, other in itertools.permutations(self.authority, 2):
            if is_within(path, other):
                raise ValueError(f"authority: {path} is within {other}; name fields that aren't within one another")
        return self
