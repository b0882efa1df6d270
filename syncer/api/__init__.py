"""All that a plugin may import, with :mod:`syncer.translate`. Anything else may change in any version.

A syncer is a plain class that decides and never acts::

    class Widgets(Mirror):
        name = "widgets"
        resource = Resource("example.org/v1", "Widget", "widgets")
        down = ("spec",)
        up = ("status",)
"""

from syncer.api.config import Config
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
    dig,
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
from syncer.api.patches import EACH, Patch, Patches, path_steps
from syncer.api.patrol import Patrol
from syncer.api.registration import register_fake_syncer, register_syncer, registrations
from syncer.api.roles import API_VERSION, FakeSyncUp, Mirror, Sync, SyncDown, Syncer, SyncUp
from syncer.api.section import Section
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
    "Excludes",
    "Exists",
    "Expired",
    "FakeSyncUp",
    "Forbidden",
    "Index",
    "Indexes",
    "Initialize",
    "Invalid",
    "Json",
    "Key",
    "Live",
    "LiveClient",
    "Marks",
    "Mirror",
    "Missing",
    "MissingRight",
    "NameTranslator",
    "Networking",
    "NotConnected",
    "Obj",
    "ObjectRef",
    "Outcome",
    "OwnController",
    "Pair",
    "Patch",
    "Patches",
    "Patrol",
    "PluginError",
    "Precondition",
    "Problem",
    "QuotaExceeded",
    "Reader",
    "Refers",
    "Refused",
    "Request",
    "Resource",
    "Right",
    "Section",
    "Settings",
    "Side",
    "Source",
    "Sync",
    "SyncDown",
    "SyncUp",
    "Syncer",
    "SyncerError",
    "Token",
    "TooMany",
    "Unauthorized",
    "Unreachable",
    "Verb",
    "Watch",
    "Watches",
    "Write",
    "annotations_of",
    "apply",
    "bind",
    "delete",
    "dig",
    "is_deleting",
    "key_of",
    "labels_of",
    "path_steps",
    "register_fake_syncer",
    "register_syncer",
    "registrations",
    "retry",
    "set_conditions",
    "skip",
    "uid_of",
    "wait",
]
