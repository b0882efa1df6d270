"""What of a running Pod's spec the API lets one change, from the virtual Pod to the host's.

Containers, tolerations and gates that the host has added must stay, and a patch replaces a list whole. So lists are
built from the host's own, and a field is named only where it has to change. See
https://kubernetes.io/docs/concepts/workloads/pods/#pod-update-and-replacement.
"""

from syncer.api import Context, Obj, Pair, annotations_of
from syncer.resources.pods.spec import IMAGES, images_digest


def spec_changes(ctx: Context, pair: Pair) -> Obj:
    """Return the fields of the host pod's spec to change, with their new values; often none."""
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
    """Return the host's containers with the tenant's images, by name; None where they have them."""
    images = {container["name"]: container.get("image") for container in wanted}
    result = [
        {**container, "image": image}
        if (image := images.get(container["name"])) and image != container.get("image")
        else container
        for container in actual
    ]
    return None if result == actual else result


def _lowers(wanted: int | None, actual: int | None) -> bool:
    """Return the deadline, which can be set and lowered, never raised."""
    return wanted is not None and (actual is None or wanted < actual)


def _with_tolerations(wanted: list[Obj], actual: list[Obj]) -> list[Obj] | None:
    """Return the host's tolerations and the tenant's; None where the host has them all. One can't be taken away."""
    missing = [toleration for toleration in wanted if toleration not in actual]
    if not missing:
        return None
    replaced = {_toleration(toleration) for toleration in missing}
    return [one for one in actual if _toleration(one) not in replaced] + missing


def _toleration(toleration: Obj) -> tuple[str, ...]:
    """Return what tells tolerations apart; only their seconds can change."""
    defaults = {"operator": "Equal"}
    return tuple(toleration.get(part) or defaults.get(part, "") for part in ("key", "operator", "value", "effect"))
