"""The API for plugins. A plugin may import this package and :mod:`syncer.translate`; everything
else may change in any version.

A syncer is a plain class that decides and never acts::

    class Widgets(Mirror):
        name = "widgets"
        resource = Resource("example.org/v1", "Widget", "widgets")
        down = ("spec",)
        up = ("status",)
"""

from syncer.api import selectors
from syncer.api.config import Config, HostDeletion, Owner
from syncer.api.context import Context, Reader, Settings
from syncer.api.decision import (
    Decision,
    Outcome,
    Precondition,
    Token,
    Verb,
    Write,
    apply,
    bind,
    delete,
    retry,
    set_conditions,
    skip,
    wait,
)
from syncer.api.drift import DriftPolicies
from syncer.api.durations import Duration
from syncer.api.errors import (
    ClusterError,
    ConfigError,
    Conflict,
    Denied,
    Exists,
    Expired,
    Forbidden,
    Invalid,
    Missing,
    MissingRight,
    NotConnected,
    PluginError,
    Problem,
    QuotaExceeded,
    Refused,
    SyncerError,
    TooMany,
    Unauthorized,
    Unreachable,
)
from syncer.api.marks import Marks
from syncer.api.metadata_rules import KeyRules, MetadataRules
from syncer.api.names import NameTranslator
from syncer.api.networking import Networking
from syncer.api.objects import (
    Json,
    Key,
    Obj,
    ObjectRef,
    Pair,
    Request,
    Resource,
    Side,
    annotations_of,
    is_deleting,
    key_of,
    labels_of,
    uid_of,
)
from syncer.api.optional_roles import (
    AroundReconcile,
    Excludes,
    Indexes,
    Initialize,
    Live,
    LiveClient,
    OwnController,
    Refers,
    Watches,
)
from syncer.api.patches import Patch, Patches
from syncer.api.paths import (
    EACH,
    FieldPath,
    Paths,
    Steps,
    copy_fields,
    dig,
    is_within,
    metadata_key,
    overlaps,
    path_steps,
    path_text,
)
from syncer.api.patrol import Patrol
from syncer.api.reference_paths import Named, ReferencePaths, Untranslated
from syncer.api.references import Reference, References, Referred, Rewritten, Selects, Shown, Shows, resources_of
from syncer.api.registration import register_fake_syncer, register_syncer, registrations
from syncer.api.roles import API_VERSION, FakeSyncUp, Mirror, Sync, SyncDown, Syncer, SyncFromHost, SyncUp
from syncer.api.section import Section
from syncer.api.selection import Expression, Selector
from syncer.api.sources import Index, Right, Source, Watch

__all__ = [
    "API_VERSION",
    "EACH",
    "AroundReconcile",
    "ClusterError",
    "Config",
    "ConfigError",
    "Conflict",
    "Context",
    "Decision",
    "Denied",
    "DriftPolicies",
    "Duration",
    "Excludes",
    "Exists",
    "Expired",
    "Expression",
    "FakeSyncUp",
    "FieldPath",
    "Forbidden",
    "HostDeletion",
    "Index",
    "Indexes",
    "Initialize",
    "Invalid",
    "Json",
    "Key",
    "KeyRules",
    "Live",
    "LiveClient",
    "Marks",
    "MetadataRules",
    "Mirror",
    "Missing",
    "MissingRight",
    "NameTranslator",
    "Named",
    "Networking",
    "NotConnected",
    "Obj",
    "ObjectRef",
    "Outcome",
    "OwnController",
    "Owner",
    "Pair",
    "Patch",
    "Patches",
    "Paths",
    "Patrol",
    "PluginError",
    "Precondition",
    "Problem",
    "QuotaExceeded",
    "Reader",
    "Reference",
    "ReferencePaths",
    "References",
    "Referred",
    "Refers",
    "Refused",
    "Request",
    "Resource",
    "Rewritten",
    "Right",
    "Section",
    "Selector",
    "Selects",
    "Settings",
    "Shown",
    "Shows",
    "Side",
    "Source",
    "Steps",
    "Sync",
    "SyncDown",
    "SyncFromHost",
    "SyncUp",
    "Syncer",
    "SyncerError",
    "Token",
    "TooMany",
    "Unauthorized",
    "Unreachable",
    "Untranslated",
    "Verb",
    "Watch",
    "Watches",
    "Write",
    "annotations_of",
    "apply",
    "bind",
    "copy_fields",
    "delete",
    "dig",
    "is_deleting",
    "is_within",
    "key_of",
    "labels_of",
    "metadata_key",
    "overlaps",
    "path_steps",
    "path_text",
    "register_fake_syncer",
    "register_syncer",
    "registrations",
    "resources_of",
    "retry",
    "selectors",
    "set_conditions",
    "skip",
    "uid_of",
    "wait",
]
