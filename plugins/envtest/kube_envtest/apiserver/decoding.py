"""Fields that an object of a built-in kind loses when it is decoded into a Go struct and encoded again.

Source: the `json` tags of k8s.io/api: nearly all fields are `omitempty`, so null, `[]`, `""` and,
for fields that aren't pointers, `false` and 0 are dropped.
"""

from collections.abc import Mapping
from typing import Any

Obj = dict[str, Any]

#: Maps of strings to anything, with the user's contents. Empty ones are dropped.
MAPS = frozenset(
    {
        *("labels", "annotations", "data", "binaryData", "stringData", "nodeSelector", "matchLabels", "limits"),
        *("requests", "parameters", "capacity", "allocatable", "hard", "used", "volumeAttributes", "options"),
        *("overhead", "podFixed", "default", "defaultRequest", "max", "min", "userAnnotations", "allocatedResources"),
    }
)

#: Fields that are left as they are.
_RAW = frozenset({"managedFields", "openAPIV3Schema"})

#: Strings that are pointers or always written, so that "" is kept.
_KEPT_TEXTS = frozenset(
    {
        *("storageClassName", "holderIdentity", "preferredHolder", "runtimeClassName", "loadBalancerClass"),
        *("ingressClassName", "volumeAttributesClassName", "appProtocol", "reportingComponent", "reportingInstance"),
    }
)

#: Numbers and booleans that aren't pointers: 0 and false are dropped.
_ZEROS = frozenset(
    {
        *("hostNetwork", "hostPID", "hostIPC", "readOnly", "stdin", "stdinOnce", "tty", "unschedulable", "paused"),
        *("publishNotReadyAddresses", "hostPort", "nodePort", "healthCheckNodePort", "initialDelaySeconds"),
        *("minReadySeconds", "observedGeneration", "updatedReplicas", "readyReplicas", "availableReplicas"),
        *("unavailableReplicas", "fullyLabeledReplicas", "active", "succeeded", "failed", "count"),
    }
)


def decoded(obj: Mapping[str, Any]) -> Obj:
    """Return a private copy of an object as the API server decodes it, with new dicts and lists.

    The contents of raw parts (`managedFields`, a CRD's schemas) are shared with the input.
    """
    return {key: kept for key, value in obj.items() if (kept := _kept(key, value)) is not None}


def _kept(key: str, value: Any) -> Any:
    """Return the remaining value of a field, None for nothing."""
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
