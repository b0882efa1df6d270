"""Changes of a running Pod's spec that the API allows, from the virtual Pod to the host pod.

Containers, tolerations and gates that the host has added must stay, and a patch replaces a whole
list. So lists are built from the host's own, and a field is only set if it has to change. See
https://kubernetes.io/docs/concepts/workloads/pods/#pod-update-and-replacement.
"""

from collections.abc import Mapping

from syncer.api import Obj, Pair
from syncer.resources.pods import tolerations
from syncer.resources.pods.config import PodConfig
from syncer.resources.pods.record import PodRecord


def spec_changes(config: PodConfig, pair: Pair, sent: PodRecord) -> Obj:
    """Return the fields of the host pod's spec to change, with their new values; usually none.

    Of its containers, only those change that were sent, with images of the host, and no toleration
    of an enforced taint is added.

    Raises:
        TooLarge: The Pod has too many tolerations.
    """
    wanted = pair.virtual["spec"]
    actual = pair.host["spec"]
    changes: Obj = {}
    if has_changed(pair.virtual) and (changed := sent.changed_images(pair.virtual)):
        names = config.image_names
        images = {container: names.on_host(image) for container, image in changed.items()}
        for part in ("containers", "initContainers"):
            if containers := _with_images(images, actual.get(part) or []):
                changes[part] = containers

    # A deadline can be set or lowered, and never raised.
    deadline = wanted.get("activeDeadlineSeconds")
    present = actual.get("activeDeadlineSeconds")
    if deadline is not None and (present is None or deadline < present):
        changes["activeDeadlineSeconds"] = deadline

    mine = tolerations.own(wanted)
    theirs = actual.get("tolerations") or []
    if mine != theirs:
        mine = tolerations.allowed(mine, config.enforced_taints)
        if merged := tolerations.merged(mine, theirs):
            changes["tolerations"] = merged
    return changes


def has_changed(virtual: Obj) -> bool:
    """Return True if the spec of a Pod may have changed since it was created.

    API servers count this, for Pods since Kubernetes 1.33; an older one counts nothing.
    """
    return bool(virtual["metadata"].get("generation") != 1)


def _with_images(images: Mapping[str, str], actual: list[Obj]) -> list[Obj] | None:
    """Return the host's containers with these images, by name; None if they have them."""
    result = []
    for container in actual:
        image = images.get(container["name"])
        if image and image != container.get("image"):
            result.append({**container, "image": image})
        else:
            result.append(container)
    if result == actual:
        return None
    return result
