"""Changes of a running Pod's spec that the API allows, from the virtual Pod to the host pod.

Containers, tolerations and gates that the host has added must stay, and a patch replaces a whole
list. So lists are built from the host's own, and a field is only set if it has to change. See
https://kubernetes.io/docs/concepts/workloads/pods/#pod-update-and-replacement.
"""

from syncer.api import Context, Obj, Pair, annotations_of
from syncer.resources.pods import tolerations
from syncer.resources.pods.containers import Sent
from syncer.resources.pods.spec import IMAGES, images_digest


def spec_changes(ctx: Context, pair: Pair, sent: Sent) -> Obj:
    """Return the fields of the host pod's spec to change, with their new values; usually none.

    Of its containers, only those change that were sent.

    Raises:
        TooLarge: The Pod has too many tolerations.
    """
    wanted, actual = pair.virtual["spec"], pair.host["spec"]
    changes: Obj = {}
    if has_changed(pair.virtual) and images_digest(wanted) != annotations_of(pair.host).get(
        f"{ctx.marks.prefix}/{IMAGES}"
    ):
        for part in ("containers", "initContainers"):
            own = [container for container in wanted.get(part) or () if container["name"] in sent.get(part, ())]
            if containers := _with_images(own, actual.get(part) or []):
                changes[part] = containers
    if _lowers(wanted.get("activeDeadlineSeconds"), actual.get("activeDeadlineSeconds")):
        changes["activeDeadlineSeconds"] = wanted["activeDeadlineSeconds"]
    mine, theirs = tolerations.own(wanted), actual.get("tolerations") or []
    if mine != theirs and (merged := tolerations.merged(mine, theirs)):
        changes["tolerations"] = merged
    return changes


def has_changed(virtual: Obj) -> bool:
    """Return True if the spec of a Pod may have changed since it was created.

    API servers count this, for Pods since Kubernetes 1.33; an older one counts nothing.
    """
    return bool(virtual["metadata"].get("generation") != 1)


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
