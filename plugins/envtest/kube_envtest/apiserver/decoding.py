"""What an object of a built-in kind loses when a Go struct is read from it and written again.

Source: the `json` tags of k8s.io/api: nearly all fields are `omitempty`, so that null, `[]`, `""` and, for fields that
aren't pointers, `false` and 0 don't come back.
"""

from collections.abc import Mapping
from typing import Any

Obj = dict[str, Any]

#: Maps of text to anything: what is in them is the user's. Empty ones aren't kept.
MAPS = frozenset(
    {
        *("labels", "annotations", "data", "binaryData", "stringData", "nodeSelector", "matchLabels", "limits"),
        *("requests", "parameters", "capacity", "allocatable", "hard", "used", "volumeAttributes", "options"),
        *("overhead", "podFixed", "default", "defaultRequest", "max", "min", "userAnnotations", "allocatedResources"),
    }
)

#: Left as they are, whatever is in them.
_RAW = frozenset({"managedFields", "openAPIV3Schema"})

#: Texts that are pointers or always written, so that "" comes back.
_KEPT_TEXTS = frozenset(
    {
        *("storageClassName", "holderIdentity", "preferredHolder", "runtimeClassName", "loadBalancerClass"),
        *("ingressClassName", "volumeAttributesClassName", "appProtocol", "reportingComponent", "reportingInstance"),
    }
)

#: Numbers and truths that aren't pointers: 0 and false don't come back.
_ZEROS = frozenset(
    {
        *("hostNetwork", "hostPID", "hostIPC", "readOnly", "stdin", "stdinOnce", "tty", "unschedulable", "paused"),
        *("publishNotReadyAddresses", "hostPort", "nodePort", "healthCheckNodePort", "initialDelaySeconds"),
        *("minReadySeconds", "observedGeneration", "updatedReplicas", "readyReplicas", "availableReplicas"),
        *("unavailableReplicas", "fullyLabeledReplicas", "active", "succeeded", "failed", "count"),
    }
)


def decoded(obj: Mapping[str, Any]) -> Obj:
    """Return a private copy of an object as the API server would read it: all dicts and lists of it are new.

    What is inside of raw parts (`managedFields`, a CRD's schemas) is shared with the input.
    """
    return {key: kept for key, value in obj.items() if (kept := _kept(key, value)) is not None}


def _kept(key: str, value: Any) -> Any:
    """Return what is left of a field's value, None for nothing."""
    kind = type(value)
    if kind is dict:
        return _dict(key, value)
    if kind is str:
        return value if value or key in _KEPT_TEXTS else None
    if key in _RAW:
        return value
    if kind is list:
        return [decoded(item) if type(item) is dict else item for item in value] or None
    if not value and key in _ZEROS:
        return None
    return value


def _dict(key: str, value: Obj) -> Any:
    if key in MAPS:
        return {name: "" if text is None else text for name, text in value.items()} or None
    if key in _RAW:
        return value
    if key == "selector" and not {"matchLabels", "matchExpressions"} & value.keys():
        return dict(value)
    return decoded(value)
