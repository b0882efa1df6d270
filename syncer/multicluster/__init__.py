"""Controllers for many clusters, on the caches and queues of the daemon.

A :class:`Cluster` is a live client with caches. A :class:`Controller` watches resources in
clusters, and reconciles a :class:`Request` at a time. A :class:`Manager` runs both.
:class:`Children` and :class:`Decorator` are controllers that need only functions from object to
object. A :class:`ClusterRegistry` starts the same controllers in each of several clusters, by name.
A :class:`ClusterCache` keeps the connections to the clusters that its providers find.
"""

from syncer.api.errors import (
    AlreadyExists,
    ClusterError,
    ConfigError,
    Conflict,
    NotConnected,
    NotFound,
    PluginError,
    SyncerError,
    Unreachable,
)
from syncer.api.objects import Key, Obj, Resource, key_of, labels_of, uid_of
from syncer.cache.handlers import Handler
from syncer.clusters.client import Client
from syncer.clusters.connection import ConnectionSettings
from syncer.clusters.login import Login
from syncer.leaderelection.lease import Lease
from syncer.multicluster.cache_metrics import ClusterCacheCollector
from syncer.multicluster.cache_options import (
    NODE_PROVIDER_ID_INDEX,
    ClusterCacheOptions,
    FieldIndex,
)
from syncer.multicluster.changes import (
    add_finalizer,
    has_finalizer,
    remove_finalizer,
    write_changes,
)
from syncer.multicluster.children import (
    ADMIRALTY_FINALIZER,
    ADMIRALTY_PARENT_LABEL,
    FINALIZER,
    PARENT_LABEL,
    Children,
    DuplicateChildren,
)
from syncer.multicluster.cluster import Cluster
from syncer.multicluster.cluster_cache import ClusterCache
from syncer.multicluster.cluster_events import ClusterEvent, ClusterSource, Happening
from syncer.multicluster.cluster_informer import ClusterInformer
from syncer.multicluster.cluster_options import ClusterOptions, Part, Transform
from syncer.multicluster.cluster_status import ClusterStatus, Health, State
from syncer.multicluster.clusters import ClusterReader, Clusters
from syncer.multicluster.controller import Controller, ControllerOptions
from syncer.multicluster.decorator import Decorator
from syncer.multicluster.errors import (
    CacheTooLarge,
    CallbackTimeout,
    CannotStart,
    ClusterNameTaken,
    ClusterNotFound,
    NotInstalled,
    NotRunning,
    NotSynced,
    StillRunning,
)
from syncer.multicluster.factories import installed_factories, known_factories
from syncer.multicluster.kinds import (
    CONFIG_MAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    INGRESSES,
    JOBS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
)
from syncer.multicluster.listeners import (
    ClusterListener,
    ConnectionListener,
    ControllerListener,
    ListenedClusters,
    MultiClusterSyncer,
    PatrolOptions,
    PeriodicTask,
)
from syncer.multicluster.logins import CannotConnect, Reason, parsed
from syncer.multicluster.pages import ControllerCollector
from syncer.multicluster.process import Manager
from syncer.multicluster.providers import (
    CallableProvider,
    ContextsProvider,
    Fleet,
    FolderProvider,
    ProvidedCluster,
    Provider,
    StaticProvider,
)
from syncer.multicluster.recorder import Recorder
from syncer.multicluster.references import (
    ADMIRALTY_REFERENCE_ANNOTATION,
    REFERENCE_ANNOTATION,
    ControllerReference,
    owner_of,
)
from syncer.multicluster.registry import (
    ClusterRegistry,
    ControllerFactory,
    Spawned,
    StackState,
    StackStatus,
)
from syncer.multicluster.remote_clusters import Agent, RemoteClusters
from syncer.multicluster.requests import Reconcile, Request, Result
from syncer.multicluster.secret_providers import ClusterApiProvider, SecretsProvider
from syncer.multicluster.watch_options import WatchOptions
from syncer.multicluster.watchdog import WATCHDOG, Step, Watchdog
from syncer.observe.events import EventType
from syncer.workqueue.queue import Queue

__all__ = [
    "ADMIRALTY_FINALIZER",
    "ADMIRALTY_PARENT_LABEL",
    "ADMIRALTY_REFERENCE_ANNOTATION",
    "CONFIG_MAPS",
    "CRON_JOBS",
    "DAEMON_SETS",
    "DEPLOYMENTS",
    "EVENTS",
    "FINALIZER",
    "INGRESSES",
    "JOBS",
    "NAMESPACES",
    "NODES",
    "NODE_PROVIDER_ID_INDEX",
    "PARENT_LABEL",
    "PERSISTENT_VOLUME_CLAIMS",
    "PODS",
    "REFERENCE_ANNOTATION",
    "SECRETS",
    "SERVICES",
    "SERVICE_ACCOUNTS",
    "STATEFUL_SETS",
    "WATCHDOG",
    "Agent",
    "AlreadyExists",
    "CacheTooLarge",
    "CallableProvider",
    "CallbackTimeout",
    "CannotConnect",
    "CannotStart",
    "Children",
    "Client",
    "Cluster",
    "ClusterApiProvider",
    "ClusterCache",
    "ClusterCacheCollector",
    "ClusterCacheOptions",
    "ClusterError",
    "ClusterEvent",
    "ClusterInformer",
    "ClusterListener",
    "ClusterNameTaken",
    "ClusterNotFound",
    "ClusterOptions",
    "ClusterReader",
    "ClusterRegistry",
    "ClusterSource",
    "ClusterStatus",
    "Clusters",
    "ConfigError",
    "Conflict",
    "ConnectionListener",
    "ConnectionSettings",
    "ContextsProvider",
    "Controller",
    "ControllerCollector",
    "ControllerFactory",
    "ControllerListener",
    "ControllerOptions",
    "ControllerReference",
    "Decorator",
    "DuplicateChildren",
    "EventType",
    "FieldIndex",
    "Fleet",
    "FolderProvider",
    "Handler",
    "Happening",
    "Health",
    "Key",
    "Lease",
    "ListenedClusters",
    "Login",
    "Manager",
    "MultiClusterSyncer",
    "NotConnected",
    "NotFound",
    "NotInstalled",
    "NotRunning",
    "NotSynced",
    "Obj",
    "Part",
    "PatrolOptions",
    "PeriodicTask",
    "PluginError",
    "ProvidedCluster",
    "Provider",
    "Queue",
    "Reason",
    "Reconcile",
    "Recorder",
    "RemoteClusters",
    "Request",
    "Resource",
    "Result",
    "SecretsProvider",
    "Spawned",
    "StackState",
    "StackStatus",
    "State",
    "StaticProvider",
    "Step",
    "StillRunning",
    "SyncerError",
    "Transform",
    "Unreachable",
    "WatchOptions",
    "Watchdog",
    "add_finalizer",
    "has_finalizer",
    "installed_factories",
    "key_of",
    "known_factories",
    "labels_of",
    "owner_of",
    "parsed",
    "remove_finalizer",
    "uid_of",
    "write_changes",
]
