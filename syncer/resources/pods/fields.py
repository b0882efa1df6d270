"""The downward API: fields that a container reads of its own Pod must be those of the virtual Pod.

The host pod carries the virtual values as annotations, and each reference is led there. See
https://kubernetes.io/docs/concepts/workloads/pods/downward-api/.
"""

from collections.abc import Mapping

from syncer.api import Context, Marks, Obj, Paths, annotations_of, labels_of

#: Paths of the names of fields.
PLACES = (
    "spec.containers[].env[].valueFrom.fieldRef.fieldPath",
    "spec.initContainers[].env[].valueFrom.fieldRef.fieldPath",
    "spec.volumes[].downwardAPI.items[].fieldRef.fieldPath",
    "spec.volumes[].projected.sources[].downwardAPI.items[].fieldRef.fieldPath",
)

_USED = Paths(dict.fromkeys(PLACES, None))

#: Below the marks' prefix: annotations on host pods that hold what no mark holds already.
LABELS, ANNOTATIONS, SERVICE_ACCOUNT = "pod-labels", "pod-annotations", "pod-service-account"

#: How Go's ``%q`` writes characters that it doesn't write as they are.
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
    """Return the field of the host pod that holds the value of a field of the virtual one."""
    annotation = {
        "metadata.name": marks.name,
        "metadata.namespace": marks.namespace,
        "metadata.uid": marks.uid,
        "metadata.labels": f"{marks.prefix}/{LABELS}",
        "metadata.annotations": f"{marks.prefix}/{ANNOTATIONS}",
        "spec.serviceAccountName": f"{marks.prefix}/{SERVICE_ACCOUNT}",
    }.get(field)
    return f"metadata.annotations['{annotation}']" if annotation else field


def annotations(ctx: Context, virtual: Obj) -> dict[str, str]:
    """Return the annotations that hold what the Pod's containers read of it, beside the marks.

    None that nobody reads.
    """
    used = {field for _, field in _USED.found(virtual)}
    prefix, result = ctx.marks.prefix, {}
    if "metadata.labels" in used:
        result[f"{prefix}/{LABELS}"] = lines(labels_of(virtual))
    if "metadata.annotations" in used:
        result[f"{prefix}/{ANNOTATIONS}"] = lines(annotations_of(virtual))
    if "spec.serviceAccountName" in used:
        result[f"{prefix}/{SERVICE_ACCOUNT}"] = service_account(virtual)
    return result


def service_account(pod: Obj) -> str:
    """Return the ServiceAccount that a Pod runs under."""
    return (pod.get("spec") or {}).get("serviceAccountName") or "default"


def lines(values: Mapping[str, str]) -> str:
    """Labels or annotations as the kubelet writes them into a file: sorted, one ``key="value"`` a line."""
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
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
