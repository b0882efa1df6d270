"""What a scheduler in the virtual cluster asks of the host's CSI drivers, read-only.

kube-scheduler looks for a driver's CSIDriver. Only if that has ``storageCapacity: true``, it wants
a CSIStorageCapacity of the claim's StorageClass with enough room, which the node can reach by its
labels. It counts the volumes of a node up to the limit that the CSINode has
(kubernetes.io, "Storage Capacity" and "Node-specific Volume Limits").
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from syncer.api import (
    LONGEST_NAME,
    Config,
    Context,
    HostNamespace,
    Index,
    Indexes,
    Key,
    KeyRules,
    MetadataRules,
    Obj,
    Selector,
    Settings,
    Side,
    Source,
    dig,
    key_of,
    labels_of,
    reasons,
    selectors,
)
from syncer.resources import classes
from syncer.resources.classes import StorageClassSyncer
from syncer.resources.host_mirror import HostMirror
from syncer.resources.host_nodes import (
    HostNodeConfig,
    HostNodeSyncer,
    is_shown,
    shown_node,
    shown_nodes,
    shows_label,
)
from syncer.resources.kinds import CSI_CAPACITIES, CSI_DRIVERS, CSI_NODES, NODES

#: The virtual namespace of CSIStorageCapacities. A scheduler reads those of all namespaces, and an
#: API server makes this one itself.
HOME = "kube-system"
_NO_METADATA = MetadataRules(labels=KeyRules(deny=("*",)), annotations=KeyRules(deny=("*",)))

#: Indexes of the host's Nodes that appear, and of its CSINodes, by their names.
_NODE = "csinodes/node"
#: Indexes of the host's Nodes that appear by their labels, and of its capacities by those that a
#: node needs.
_LABEL = "csistoragecapacities/label"
#: Indexes of the host's StorageClasses by their names, and of its capacities by those of theirs.
_CLASS = "csistoragecapacities/class"
#: The value that stands for any Node in the index by labels.
_ANY = ""


class CsiDriverConfig(Config):
    """The options of CSIDrivers of the host that appear."""

    enabled: bool = False
    """Whether CSIDrivers of the host appear in the virtual cluster. It takes the right to get, list
    and watch them.
    """

    selector: Selector = Selector()
    """The labels of the host's CSIDrivers that appear. Empty: all of them."""


class CsiNodeConfig(Config):
    """The options of CSINodes of the host that appear."""

    enabled: bool = False
    """Whether the CSINodes of the host's nodes that appear (`sync.fromHost.nodes`, without
    `onlyUsed`) do, too. It takes the right to get, list and watch them.
    """


class CsiCapacityConfig(Config):
    """The options of CSIStorageCapacities of the host that appear."""

    enabled: bool = False
    """Whether CSIStorageCapacities of the host appear in the virtual cluster. It takes the right to
    get, list and watch them in `namespaces`.

    Those appear that are of a StorageClass that appears (`sync.fromHost.storageClasses`), and that
    a node can reach that appears (`sync.fromHost.nodes`, without `onlyUsed`). A scheduler goes by
    them if the CSIDriver appears, too (`sync.fromHost.csiDrivers`).
    """

    namespaces: tuple[HostNamespace, ...] = ()
    """The host namespaces in which the drivers run, and have their CSIStorageCapacities, such as
    `kube-system`. Without any, none appears. Each takes a watch.

    If one is removed, so are its CSIStorageCapacities in the virtual cluster: remove it before
    `enabled` is set to false.
    """

    selector: Selector = Selector()
    """The labels of the CSIStorageCapacities that appear, such as
    `csi.storage.k8s.io/drivername`. Empty: all of them.
    """


class CsiDriverSyncer(HostMirror):
    """CSIDrivers without what concerns the kubelet alone, such as the tokens that it requests.

    `storageCapacity` is false unless `fromHost.csiStorageCapacities` is on: a scheduler that finds
    no capacities would place no Pod.
    """

    name = "csidrivers"
    section = "fromHost.csiDrivers"
    resource = CSI_DRIVERS
    config = CsiDriverConfig
    up = (
        "spec.attachRequired",
        "spec.fsGroupPolicy",
        "spec.podInfoOnMount",
        "spec.requiresRepublish",
        "spec.storageCapacity",
        "spec.volumeLifecycleModes",
    )
    exact = up
    fixed = ("spec.attachRequired", "spec.volumeLifecycleModes")

    def shown(self, ctx: Context, host: Obj) -> Obj:
        """Return the virtual CSIDriver."""
        shown = super().shown(ctx, host)
        if not ctx.enabled(CsiCapacitySyncer.name):
            shown["spec"] = {**(shown.get("spec") or {}), "storageCapacity": False}
        return shown


class CsiNodeSyncer(HostMirror, Indexes):
    """CSINodes of the host's nodes that appear: their drivers, with the limits of volumes.

    The identity of the node at its drivers (`nodeID`) is its name, as that of the host's node tells
    which machine it is.
    """

    name = "csinodes"
    section = "fromHost.csiNodes"
    resource = CSI_NODES
    config = CsiNodeConfig
    metadata = _NO_METADATA
    up = ("spec.drivers",)
    exact = up

    def reads_with(self, settings: Settings) -> Iterable[Source]:
        """Return the nodes of the host that appear."""
        return _nodes(settings)

    def indexes(self) -> Sequence[Index]:
        """Return the index of the CSINodes by their names."""
        return [Index(Source(Side.HOST, CSI_NODES), _NODE, _own_name)]

    def indexes_with(self, settings: Settings) -> Sequence[Index]:
        """Return the index of the CSINodes, and that of the Nodes by which they come and go."""
        names = partial(_names_of_shown, settings)
        nodes = [Index(each, _NODE, names, requeues=_NODE) for each in _nodes(settings)]
        return [*self.indexes(), *nodes]

    def why_hidden(self, ctx: Context, host: Obj) -> str:
        """Return why a CSINode doesn't appear: its Node doesn't."""
        if _shows_nodes(ctx.settings) and shown_node(ctx, key_of(host).name) is not None:
            return ""
        return reasons.LEFT_OUT(HostNodeSyncer.section)

    def shown(self, ctx: Context, host: Obj) -> Obj:
        """Return the virtual CSINode."""
        name = key_of(host).name
        shown = ctx.virtual_copy(host, key_of(host))
        given = (host.get("spec") or {}).get("drivers") or ()
        shown["spec"] = {"drivers": [{**each, "nodeID": name} for each in given]}
        return shown

    def refused_change(self, virtual: Obj, shown: Obj) -> str:
        """Return the path of the drivers if one of them has changed: they only come and go."""
        wanted = {each["name"]: each for each in shown["spec"]["drivers"]}
        for each in dig(virtual, "spec.drivers") or ():
            if wanted.get(each["name"], each) != each:
                return "spec.drivers"
        return ""


class CsiCapacitySyncer(HostMirror, Indexes):
    """CSIStorageCapacities of classes that appear, in the virtual namespace `kube-system`.

    Their names are those of the host behind that of their host namespace. Labels in their
    `nodeTopology` that virtual Nodes don't show (`fromHost.nodes.metadata`) are left out of it, so
    that a scheduler takes any Node for one that can reach them.
    """

    name = "csistoragecapacities"
    section = "fromHost.csiStorageCapacities"
    resource = CSI_CAPACITIES
    config = CsiCapacityConfig
    metadata = MetadataRules(
        labels=KeyRules(allow=("csi.storage.k8s.io/drivername",)),
        annotations=KeyRules(deny=("*",)),
    )
    up = ("storageClassName", "nodeTopology", "capacity", "maximumVolumeSize")
    exact = up
    fixed = ("storageClassName", "nodeTopology")

    def host_namespaces(self, settings: Settings) -> tuple[str, ...]:
        """Return the host namespaces of the drivers."""
        config = settings.section(self.name, CsiCapacityConfig)
        if config:
            return config.namespaces
        return ()

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the key of the host object that appears at a virtual key.

        Without one, it is a key that no object has.
        """
        namespace, _, name = key.name.partition(".")
        if key.namespace != HOME or not name:
            return Key("", key.name)
        return Key(namespace, name)

    def virtual_key(self, ctx: Context, host: Obj) -> Key | None:
        """Return the key in the virtual cluster; None for a name that would be too long there."""
        key = super().virtual_key(ctx, host)
        if key is None:
            return None
        name = f"{key.namespace}.{key.name}"
        if len(name) > LONGEST_NAME:
            return None
        return Key(HOME, name)

    def reads_with(self, settings: Settings) -> Iterable[Source]:
        """Return the host's classes and nodes that appear."""
        return (*classes.sources(settings, StorageClassSyncer), *_nodes(settings))

    def indexes(self) -> Sequence[Index]:
        """Return the indexes of the capacities of all namespaces."""
        return self._indexes(Source(Side.HOST, CSI_CAPACITIES))

    def indexes_with(self, settings: Settings) -> Sequence[Index]:
        """Return the indexes by which capacities come and go with classes and nodes."""
        namespaces = self.host_namespaces(settings)
        if not namespaces:
            return ()
        selector = self.host_selector(settings)
        given = Source(Side.HOST, CSI_CAPACITIES, selector=selector, namespaces=namespaces)
        found = self._indexes(given)
        for each in classes.sources(settings, StorageClassSyncer):
            found.append(Index(each, _CLASS, _own_name, requeues=_CLASS, when="change"))
        labels = partial(_labels_of_shown, settings)
        for each in _nodes(settings):
            found.append(Index(each, _LABEL, labels, requeues=_LABEL))
        return found

    def why_hidden(self, ctx: Context, host: Obj) -> str:
        """Return why a capacity doesn't appear: its class doesn't, or no node that it is for."""
        if not classes.appears(ctx, StorageClassSyncer, host.get("storageClassName") or ""):
            return reasons.LEFT_OUT(StorageClassSyncer.section)
        if not _is_reached(ctx, host.get("nodeTopology")):
            return reasons.LEFT_OUT(HostNodeSyncer.section)
        return ""

    def shown(self, ctx: Context, host: Obj) -> Obj:
        """Return the virtual CSIStorageCapacity."""
        shown = super().shown(ctx, host)
        shown["nodeTopology"] = _by_shown_labels(ctx.settings, host.get("nodeTopology") or {})
        return shown

    def _indexes(self, given: Source) -> list[Index]:
        return [Index(given, _CLASS, _class_name), Index(given, _LABEL, _needed_labels)]


def _shows_nodes(settings: Settings) -> bool:
    """Return True if nodes of the host appear by their labels alone, also those without a Pod."""
    config = settings.section(HostNodeSyncer.name, HostNodeConfig)
    return config is not None and not config.only_used


def _nodes(settings: Settings) -> tuple[Source, ...]:
    """Return the source of the host's nodes that appear; none where they don't."""
    if _shows_nodes(settings):
        return (shown_nodes(settings),)
    return ()


def _is_reached(ctx: Context, topology: Obj | None) -> bool:
    """Return True if a node that appears can reach what has this topology; None: no node can."""
    if topology is None or not _shows_nodes(ctx.settings):
        return False
    candidates: set[Key] | None = None
    for value in _values(topology.get("matchLabels") or {}) or [_ANY]:
        keys = ctx.reader.indexed(Side.HOST, NODES, _LABEL, value)
        candidates = {*keys} if candidates is None else candidates.intersection(keys)
    for key in candidates or ():
        node = shown_node(ctx, key.name)
        if node is not None and selectors.matches(topology, labels_of(node)):
            return True
    return False


def _by_shown_labels(settings: Settings, topology: Obj) -> Obj:
    """Return a topology without the labels that virtual Nodes don't show."""
    labels = topology.get("matchLabels") or {}
    expressions = topology.get("matchExpressions") or ()
    left: Obj = {
        "matchLabels": {key: labels[key] for key in labels if shows_label(settings, key)},
        "matchExpressions": [each for each in expressions if shows_label(settings, each["key"])],
    }
    return {name: part for name, part in left.items() if part}


def _names_of_shown(settings: Settings, node: Obj) -> Iterable[str]:
    """Return the name of a node of the host that appears; nothing for another one."""
    if is_shown(settings, node):
        return _own_name(node)
    return ()


def _labels_of_shown(settings: Settings, node: Obj) -> Iterator[str]:
    """Yield the labels of a node of the host that appears; nothing for another one."""
    if is_shown(settings, node):
        yield _ANY
        yield from _values(labels_of(node))


def _needed_labels(capacity: Obj) -> Iterable[str]:
    """Return the labels by which nodes reach a capacity; without any, all nodes may."""
    topology = capacity.get("nodeTopology") or {}
    return _values(topology.get("matchLabels") or {}) or [_ANY]


def _values(labels: Mapping[str, str]) -> list[str]:
    return [f"{label}={value}" for label, value in sorted(labels.items())]


def _class_name(capacity: Obj) -> Iterable[str]:
    return [capacity.get("storageClassName") or ""]


def _own_name(obj: Obj) -> Iterable[str]:
    return [key_of(obj).name]
