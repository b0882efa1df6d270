"""Name translators: virtual key ↔ host key.

Pure; registered in the entry-point group ``syncer.names``.
"""

from syncer.names.per_namespace import PerNamespace
from syncer.names.single_namespace import SingleNamespace
from syncer.names.unchanged import Unchanged
from syncer.names.vcluster_compat import VclusterCompat

__all__ = ["PerNamespace", "SingleNamespace", "Unchanged", "VclusterCompat"]
