"""The ``references`` option of ``sync.custom``, as references of the plugin API."""

from collections.abc import Sequence
from typing import Literal

from syncer.api import Reference, Resource, Shown, path_steps


def referred(
    path: str,
    targets: Sequence[Resource | Shown],
    *,
    use: Literal["used", "made"] = "used",
) -> Reference:
    """Return the reference at a path.

    A path that ends in ``name`` may have a kind and a namespace beside it.
    """
    if path_steps(path)[-1] == "name":
        return Reference(tuple(targets), use=use, kind="kind", namespace="namespace")
    return Reference(tuple(targets), use=use, kind="", namespace="")
