"""The downward API: a container that reads fields of its Pod must get the virtual Pod's.

The host pod carries the virtual values as annotations, and each field reference is redirected
there. A label or annotation below the marks' prefix, which the virtual Pod hasn't, reads as empty.
See https://kubernetes.io/docs/concepts/workloads/pods/downward-api/.
"""

from collections.abc import Mapping

from syncer.api import Context, Marks, Obj, Paths, annotations_of, labels_of

#: The lists of containers in a Pod's spec.
CONTAINERS = ("containers", "initContainers", "ephemeralContainers")

#: Paths of field references.
FIELD_REFERENCES = (
    *(f"spec.{part}[].env[].valueFrom.fieldRef.fieldPath" for part in CONTAINERS),
    "spec.volumes[].downwardAPI.items[].fieldRef.fieldPath",
    "spec.volumes[].projected.sources[].downwardAPI.items[].fieldRef.fieldPath",
)

_USED = Paths(dict.fromkeys(FIELD_REFERENCES, None))

#: Below the marks' prefix: annotations on host pods for values that no mark holds.
LABELS = "pod-labels"
ANNOTATIONS = "pod-annotations"
SERVICE_ACCOUNT = "pod-service-account"

#: Below the marks' prefix: an annotation that no object has, which a kubelet reads as empty.
MISSING = "none"

#: Characters that Go's ``%q`` escapes.
_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def host_field(field: str, marks: Marks) -> str:
    """Return the field of the host pod that holds a field of the virtual Pod."""
    annotation = {
        "metadata.name": marks.name,
        "metadata.namespace": marks.namespace,
        "metadata.uid": marks.uid,
        "metadata.labels": f"{marks.prefix}/{LABELS}",
        "metadata.annotations": f"{marks.prefix}/{ANNOTATIONS}",
        "spec.serviceAccountName": f"{marks.prefix}/{SERVICE_ACCOUNT}",
    }.get(field)
    if annotation is None and f"['{marks.prefix}/" in field:
        annotation = f"{marks.prefix}/{MISSING}"
    if annotation:
        return f"metadata.annotations['{annotation}']"
    return field


def annotations(ctx: Context, virtual: Obj) -> dict[str, str]:
    """Return the annotations for the fields that the Pod's containers read, besides the marks.

    Fields that no container reads are left out.
    """
    used = {field for _, field in _USED.found(virtual)}
    prefix = ctx.marks.prefix
    result = {}
    if "metadata.labels" in used:
        result[f"{prefix}/{LABELS}"] = lines(labels_of(virtual))
    if "metadata.annotations" in used:
        result[f"{prefix}/{ANNOTATIONS}"] = lines(annotations_of(virtual))
    if "spec.serviceAccountName" in used:
        result[f"{prefix}/{SERVICE_ACCOUNT}"] = service_account(virtual)
    return result


def service_account(pod: Obj) -> str:
    """Return the name of a Pod's ServiceAccount."""
    return (pod.get("spec") or {}).get("serviceAccountName") or "default"


def lines(values: Mapping[str, str]) -> str:
    """Format labels or annotations as the kubelet writes them into a file.

    They are sorted, each as ``key="value"`` on a line of its own.
    """
    return "\n".join(f'{key}="{_escaped(values[key])}"' for key in sorted(values))


def _escaped(text: str) -> str:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return text
    return "".join(map(_character, text))


def _character(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"
