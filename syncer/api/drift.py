"""Drift policies: what the daemon does about a copy or a status that is not as it should be."""

from collections.abc import Iterator
from typing import Literal

from syncer.api.section import Section

#: What to do about drift: repair it, report it only, or neither.
Policy = Literal["repair", "report", "ignore"]
#: The classes of drift.
DriftClass = Literal["missing", "orphan", "wrongOwner", "field", "metadata", "status"]
_CLASSES: tuple[DriftClass, ...] = (
    "missing",
    "orphan",
    "wrongOwner",
    "field",
    "metadata",
    "status",
)


class DriftPolicies(Section):
    """What to do about drift of this kind.

    A class that is not set takes the policy of `patrol.drift`, which is `repair` by default.
    """

    missing: Policy | None = None
    """An object whose copy is missing.

    Only the patroller applies this policy; a deletion that a watch reports is subject to the host
    deletion policy.
    """

    orphan: Policy | None = None
    """A copy whose virtual object is gone, although no watch reported its deletion."""

    wrong_owner: Policy | None = None
    """A copy of an earlier object of the same name.

    Only the patroller applies this policy; a virtual object that a tenant recreates always gets a
    new copy.
    """

    field: Policy | None = None
    """A field that differs.

    With `report` or `ignore`, a manual edit on the host stays until the virtual object changes.
    """

    metadata: Policy | None = None
    """A label or annotation that differs. `report` and `ignore` work as for `field`."""

    status: Policy | None = None
    """A status that has not been copied up, or was changed after it was."""

    def of(self, found: DriftClass) -> Policy | None:
        """Return the policy of a class; None if it is not set."""
        attribute = "wrong_owner" if found == "wrongOwner" else found
        policy: Policy | None = getattr(self, attribute)
        return policy

    def over(self, defaults: "DriftPolicies") -> "DriftPolicies":
        """Merge these policies into ``defaults``, which apply where none is set here."""
        return defaults.model_copy(update=self.model_dump(exclude_none=True))

    def lenient(self) -> Iterator[DriftClass]:
        """Return the classes whose policy is set and is not ``repair``."""
        return (each for each in _CLASSES if self.of(each) not in (None, "repair"))
