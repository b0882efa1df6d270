"""Objects as an API server has them when it validates them: with their defaults."""

from typing import Any

from kube_envtest.apiserver import defaults

Obj = dict[str, Any]


def made(kind: str, name: str = "x", **fields: Any) -> Obj:
    """Return an object of a kind."""
    metadata = {"name": name, "namespace": "n", "uid": "u", **fields.pop("metadata", {})}
    return defaults.default(kind, {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields})


def pod(*containers: Obj, metadata: Obj | None = None, **spec: Any) -> Obj:
    """Return a Pod with these containers, or with one."""
    default = {"name": "c", "image": "i"}
    body = {"containers": [{**default, **one} for one in containers] or [default], **spec}
    return made("Pod", metadata=metadata or {}, spec=body)
