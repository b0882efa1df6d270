"""What is done about drift: a copy, or what flows back, that is not as it should be though nobody is on it."""

from collections.abc import Iterator
from typing import Literal

from syncer.api.section import Section

#: Put right, or only told of, or neither.
Policy = Literal["repair", "report", "ignore"]
#: The kinds of drift.
DriftClass = Literal["missing", "orphan", "wrongOwner", "field", "metadata", "status"]
_CLASSES: tuple[DriftClass, ...] = ("missing", "orphan", "wrongOwner", "field", "metadata", "status")


class DriftPolicies(Section):
    """What is done about drift of this kind. Unset: as `patrol.drift` says, and there `repair`."""

    missing: Policy | None = None
    """An object that has no copy though it should. The patroller alone applies this: what a watch shows to be deleted
    on the host is a matter of the host deletion policy."""

    orphan: Policy | None = None
    """A copy of what is gone, where no watch showed it go."""

    wrong_owner: Policy | None = None
    """A copy of an earlier object of the same name. The patroller alone applies this: what a tenant makes anew gets a
    copy of its own."""

    field: Policy | None = None
    """A field that is not as it should be. With `report` or `ignore` an edit by hand on the host stays until the
    virtual object changes."""

    metadata: Policy | None = None
    """The same of labels and annotations."""

    status: Policy | None = None
    """What the other side reports has not arrived, or was changed where it arrived."""

    def of(self, found: DriftClass) -> Policy | None:
        """Return what is done about one class."""
        policy: Policy | None = getattr(self, "wrong_owner" if found == "wrongOwner" else found)
        return policy

    def over(self, defaults: "DriftPolicies") -> "DriftPolicies":
        """These policies, with those of the defaults where none is set."""
        return defaults.model_copy(update=self.model_dump(exclude_none=True))

    def lenient(self) -> Iterator[DriftClass]:
        """Return the classes that aren't repaired."""
        return (each for each in _CLASSES if self.of(each) not in (None, "repair"))
