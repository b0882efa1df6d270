"""Read, check and explain the configuration.

:mod:`syncer.config.render` shows it, and is loaded on demand.
"""

from syncer.api.durations import duration_text
from syncer.config.document import Document, dotted, parse, read
from syncer.config.load import DEFAULT, Loaded, Override, Plugins, build, load, model_for
from syncer.config.model import SyncerConfig
from syncer.config.options import ConnectionSection, LeaderElection, VirtualClusterSecretsSection
from syncer.config.problems import nearest
from syncer.config.sections import config_with
from syncer.config.types import Option, option_at, options
from syncer.config.values import listen_on
from syncer.config.virtual_cluster import Enabled, VirtualCluster

__all__ = [
    "DEFAULT",
    "ConnectionSection",
    "Document",
    "Enabled",
    "LeaderElection",
    "Loaded",
    "Option",
    "Override",
    "Plugins",
    "SyncerConfig",
    "VirtualCluster",
    "VirtualClusterSecretsSection",
    "build",
    "config_with",
    "dotted",
    "duration_text",
    "listen_on",
    "load",
    "model_for",
    "nearest",
    "option_at",
    "options",
    "parse",
    "read",
]
