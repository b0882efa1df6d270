"""Changes of a running Pod's spec that the API allows, from the virtual Pod to the host pod.

Containers, tolerations and gates that the host has added must stay, and a patch replaces a whole
list. So lists are built from the host's own, and a field is only set if it has to change. See
https://kubernetes.io/docs/concepts/workloads/pods/#pod-update-and-replacement.
"""

from syncer.api import Context, Obj, Pair, annotations_of
from syncer.resources.pods.spec import IMAGES, images_digest


def spec_changes(ctx: Context, pair: Pair) -> Obj:
    """Return the fields of the host pod's spec to change, with their new values; usually none."""
    wanted, actual = pair.virtual["spec"], pair.host["spec"]
    changes: Obj = {}
    if images_digest(wanted) != annotations_of(pair.host).get(f"{ctx.marks.prefix}/{IMAGES}"):
        for part in ("containers", "initContainers"):
            if containers := _with_images(wanted.get(part) or [], actual.get(part) or []):
                changes[part] = containers
    if _lowers(wanted.get("activeDeadlineSeconds"), actual.get("activeDeadlineSeconds")):
        changes["activeDeadlineSeconds"] = wanted["activeDeadlineSeconds"]
    if tolerations := _with_tolerations(wanted.get("tolerations") or [], actual.get("tolerations") or []):
        changes["tolerations"] = tolerations
    return changes


def _with_images(wanted: list[Obj], actual: list[Obj]) -> list[Obj] | None:
    """Return the host's containers with the tenant's images, by name; None if they have them."""
    images = {container["name"]: container.get("image") for container in wanted}
    result = [
        {**container, "image": image}
        if (image := images.get(container["name"])) and image != container.get("image")
        else container
        for container in actual
    ]
    return None if result == actual else result


def _lowers(wanted: int | None, actual: int | None) -> bool:
    """Return True if the deadline is set or lowered; it can never be raised."""
    return wanted is not None and (actual is None or wanted < actual)


def _with_tolerations(wanted: list[Obj], actual: list[Obj]) -> list[Obj] | None:
    """Return the host's tolerations and the tenant's; None if the host has them all.

    A toleration can't be removed.
    """
    missing = [toleration for toleration in wanted if toleration not in actual]
    if not missing:
        return None
    replaced = {_toleration(toleration) for toleration in missing}
    return [one for one in actual if _toleration(one) not in replaced] + missing


def _toleration(toleration: Obj) -> tuple[str, ...]:
    """Return the identity of a toleration; only its seconds can change."""
    defaults = {"operator": "Equal"}
    return tuple(toleration.get(part) or defaults.get(part, "") for part in ("key", "operator", "value", "effect"))
