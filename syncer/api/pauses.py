"""The ``pause`` section: who may stop writes by a mark."""

from syncer.api.section import Section


class Pauses(Section):
    """Pauses by the mark `vsyncer.dev/paused`, which leave objects as they are
    (docs/operate/state-and-drift.md).

    A pause on a copy, where only the host's operator can set it, always counts.
    """

    by_tenants: bool = True
    """Whether the mark counts in the virtual cluster: on objects, on Namespaces, and on the
    ConfigMap of the virtual cluster, where tenants can set it.

    It stops neither a deletion nor the removal of what a copy may no longer have, whatever is set
    here.
    """
