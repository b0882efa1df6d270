"""The backends of routes: Services of the tenant."""

from collections.abc import Iterable

from syncer.api import Reference, References
from vsyncer_gateway_api.kinds import SERVICES

#: The fields of a backend, wherever it is.
FIELDS = ("group", "kind", "namespace", "name", "port")

_SERVICE = Reference(SERVICES, namespace="namespace", kind="kind", group="group")


def named_at(paths: Iterable[str]) -> References:
    """Return the references of backends at these paths of a spec."""
    return {f"spec.{path}.name": _SERVICE for path in paths}
