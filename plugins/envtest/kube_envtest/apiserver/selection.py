"""The selection of a list, a watch or a deletecollection."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kube_envtest.apiserver import selectors
from kube_envtest.apiserver.errors import bad_request
from kube_envtest.apiserver.request import Call
from kube_envtest.apiserver.storage import Entry

Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Selection:
    """Objects of a namespace (or of all) that match both selectors."""

    namespace: str = ""
    labels: Callable[[dict[str, str]], bool] | None = None
    fields: Callable[[Obj], bool] | None = None

    @property
    def everything(self) -> bool:
        """True if there is no selector."""
        return self.labels is None and self.fields is None

    def chooses(self, entry: Entry) -> bool:
        """Return True if an object is selected."""
        if self.namespace and not entry.key.startswith(self.namespace + "/"):
            return False
        if self.labels is not None and not self.labels(entry.obj["metadata"].get("labels") or {}):
            return False
        return self.fields is None or self.fields(entry.obj)


def selection_of(call: Call) -> Selection:
    """Parse ``labelSelector`` and ``fieldSelector``.

    Raises:
        ApiError: BadRequest, in the real server's words.
    """
    labels = fields = None
    if text := call.query.get("labelSelector"):
        try:
            labels = selectors.parse_labels(text)
        except selectors.SelectorError as problem:
            raise bad_request(str(problem)) from None
    text = call.query.get("fieldSelector", "")
    if call.name:
        text = f"metadata.name={call.name}" + (f",{text}" if text else "")
    if text:
        fields = _fields(call, text)
    return Selection(call.namespace, labels, fields)


def _fields(call: Call, text: str) -> Callable[[Obj], bool]:
    try:
        found = selectors.parse_fields(text)
        selectors.check_fields(text, call.type.kind, extra=[path.lstrip(".") for path in call.type.selectable])
    except selectors.SelectorError as problem:
        raise bad_request(_worded(call, str(problem))) from None
    return found


def _worded(call: Call, problem: str) -> str:
    """Return the message; kinds without selectable fields of their own have another one."""
    prefix, separator, name = problem.partition("field label not supported: ")
    if not separator or prefix or call.type.custom or call.type.kind in selectors.SELECTABLE:
        return problem
    return f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'
