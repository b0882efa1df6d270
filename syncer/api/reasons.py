"""Reasons: why an object isn't in step, as a code with arguments.

Every code of ours is defined here, with its sentence and its way out. A syncer of a plugin may
define its own codes, or give a plain text as the reason::

    ASLEEP = ReasonCode("Asleep", RequestState.SKIPPED, "{0} is asleep", "wake it")

    def sync_down(self, ctx, virtual):
        return skip(ASLEEP(virtual["metadata"]["name"]))

A reason is its sentence, a ``str``, which knows its code and arguments. Only these are kept of an
object that isn't in step (:mod:`syncer.engine.controllers.request_status`).
"""

import re
import shlex
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

#: The end of the text before a command in a way out: ``see why: syncer explain …``.
_COMMAND = re.compile(r": (?=(?:syncer|kubectl) )")


class RequestState(StrEnum):
    """The state of an object that isn't in step."""

    #: It waits for something that is missing, and is decided again when that is there.
    PENDING = "pending"
    #: It has no counterpart, and that is right.
    SKIPPED = "skipped"
    #: Its last attempt failed, and is repeated soon.
    FAILING = "failing"
    #: It failed for a reason that doesn't pass by itself.
    PARKED = "parked"
    #: An annotation stops it.
    PAUSED = "paused"
    #: All of it is in step but fields that are left alone for a time.
    FROZEN = "frozen"


class StateReason(str):
    """The sentence of a code with its arguments."""

    __slots__ = ("args", "code")

    code: "ReasonCode"
    args: tuple[object, ...]

    def __new__(cls, code: "ReasonCode", *args: object) -> Self:
        """Return the sentence.

        Args:
            code: The code.
            args: The values for ``{0}``, ``{1}`` … of the sentence: texts, numbers or keys.

        Raises:
            IndexError: An argument is missing.
        """
        self = super().__new__(cls, code.sentence.format(*args))
        self.code = code
        self.args = args
        return self

    @property
    def way_out(self) -> str:
        """How to have the object synced all the same; ``""`` if nothing need be done.

        Arguments are quoted in a command, as names may be a tenant's.
        """
        whole = self.code.way_out
        found = _COMMAND.search(whole)
        if found is None:
            return whole.format(*self.args)
        words = [shlex.quote(str(each)) for each in self.args]
        text = whole[: found.end()].format(*self.args)
        command = whole[found.end() :].format(*words)
        return f"{text}{command}"


@dataclass(frozen=True, slots=True, eq=False)
class ReasonCode:
    """A reason without its arguments."""

    #: A word in CamelCase, such as ``NotSelected``.
    name: str
    #: The state of an object with this reason; None if its error decides.
    state: RequestState | None
    #: The sentence, with ``{0}``, ``{1}`` … for the arguments.
    sentence: str
    #: How to have the object synced all the same, with the same arguments; ``""`` if nothing need
    #: be done, or the sentence has it.
    way_out: str = ""
    #: True if the only argument is a whole text, of a syncer or an API server.
    is_text: bool = False
    #: True if decisions with it have an Event of their own, as `Decision.warn` gives them.
    has_event: bool = False

    def __call__(self, *args: object) -> StateReason:
        """Return the reason with these arguments."""
        return StateReason(self, *args)


#: The codes that are defined here, by name.
CODES: dict[str, ReasonCode] = {}


def _define(
    name: str,
    state: RequestState | None,
    sentence: str,
    way_out: str = "",
    *,
    is_text: bool = False,
    has_event: bool = False,
) -> ReasonCode:
    code = ReasonCode(name, state, sentence, way_out, is_text, has_event)
    CODES[name] = code
    return code


def _skipped(name: str, sentence: str, way_out: str = "") -> ReasonCode:
    return _define(name, RequestState.SKIPPED, sentence, way_out)


def _pending(name: str, sentence: str, way_out: str = "", *, has_event: bool = False) -> ReasonCode:
    return _define(name, RequestState.PENDING, sentence, way_out, has_event=has_event)


def _paused(name: str, sentence: str, way_out: str) -> ReasonCode:
    return _define(name, RequestState.PAUSED, sentence, way_out)


def _refused(name: str, way_out: str = "") -> ReasonCode:
    return _define(name, RequestState.PARKED, "{0}", way_out, is_text=True)


def _failed(name: str, way_out: str = "") -> ReasonCode:
    return _define(name, None, "{0}", way_out, is_text=True)


# -- skipped: by the engine ------------------------------------------------------------------------

SKIPPED_BY_SYNCER = _define("SkippedBySyncer", RequestState.SKIPPED, "{0}", is_text=True)
NO_OBJECT = _skipped(
    "NoObject",
    "the virtual cluster has no such object, and the host no such copy of one",
    "see that kind, namespace and name are right",
)
CAME_FROM_HOST = _skipped("CameFromHost", "the virtual object came from the host")
ORIGINAL_ENDS = _skipped("OriginalEnds", "the virtual {0} is being deleted")
HOST_ENDS = _skipped("HostEnds", "the host {0} is being deleted")
NOT_OURS = _skipped("NotOurs", "the host object is not ours")
COPY_OF_ANOTHER = _skipped("CopyOfAnother", "the host object is the copy of another object")
HOST_GONE = _skipped(
    "HostGone",
    "no host object appears as this one: there is none, or sync.{0} leaves it out",
    "see the options of sync.{0}",
)
HOST_UNLABELLED = _skipped(
    "HostUnlabelled",
    "no host object appears as this one: there is none with the labels {1}, or sync.{0} leaves it"
    " out",
    "give the host object the labels {1}, or see the options of sync.{0}",
)
BOTH_GO = _skipped("BothGo", "the host object is gone, and the virtual object is being deleted")
TENANTS_OWN = _skipped("TenantsOwn", "the virtual object is not one that we made")
SYNCS_NOTHING = _skipped("SyncsNothing", "this syncer syncs nothing")
NOT_SELECTED = _skipped(
    "NotSelected",
    "its labels are not those of sync.{0}.selector",
    "give it such labels, or change sync.{0}.selector",
)
HOST_MAKES = _skipped("HostMakes", "the host makes it, for {0} {1}")
OTHER_PLACE_GONE = _skipped("OtherPlaceGone", "the copy at another place is gone")
COPY_DELETED = _skipped(
    "CopyDeleted",
    "the copy {0} was deleted on the host, and {1} is {2}; the virtual object is being deleted",
)
NAMESPACE_EXCLUDED = _skipped("NamespaceExcluded", "its host namespace: {0}")
NOT_REPAIRED = _skipped(
    "NotRepaired",
    "{0}; but what is missing was not seen to go, and drift of this class is not repaired",
    "set patrol.drift.orphan to repair, or delete the copy by hand",
)

# -- skipped: by syncers ---------------------------------------------------------------------------

API_SERVERS_OWN = _skipped("ApiServersOwn", "it is {0}the virtual API server's own Service")
STATIC_POD = _skipped("StaticPod", "it mirrors a static Pod of a kubelet")
BUILT_IN = _skipped("BuiltIn", "every API server has its own")
COPY_OF_CRD = _skipped("CopyOfCrd", "it is the copy of a tenant's CRD")
VOLUME_UNUSED = _skipped("VolumeUnused", "no synced claim is bound to this volume")
NODE_UNUSED = _skipped("NodeUnused", "no synced Pod is on this node")
CRD_NOT_PUBLIC = _skipped(
    "CrdNotPublic", "the host CRD has no label {0}: {1!r}", "set the label on the host CRD"
)
DENIED_BY_OPTION = _skipped("DeniedByOption", "{0} is among {1}", "take it out of {1}")
NOT_LISTED = _skipped("NotListed", "{0} is not among {1}", "add it to {1}")
CRD_ENDS = _skipped("CrdEnds", "{0}; {1} is being deleted")
CRD_RETAINED = _skipped("CrdRetained", "{0}; {1} stays, as {2} says", "change {2}, or delete it")
CRD_UNCHECKED = _skipped(
    "CrdUnchecked",
    "{0}; {1} stays: none of its versions is served, so its use can't be checked",
    "delete it by hand, or serve a version",
)
ONLY_A_NAME = _skipped(
    "OnlyAName",
    "it is only a DNS name; see sync.toHost.services.allow.externalNames",
    "set that option",
)
COPY_RETAINED = _skipped(
    "CopyRetained",
    "the virtual object {0}, and sync.{1}.onDelete is retain",
    "set sync.{1}.onDelete to delete, or delete the copy by hand",
)
LEFT_OUT = _skipped("LeftOut", "sync.{0} leaves it out", "change the options of sync.{0}")
NO_OWNER = _skipped("NoOwner", "it doesn't belong to a synced {0}")
ANOTHERS = _skipped("Anothers", "it is kept by {0}")
NO_HOST_NAMESPACES = _skipped(
    "NoHostNamespaces",
    "the name translator gives virtual namespaces no host namespaces of their own",
)
HOST_NAMESPACE_LISTED = _skipped(
    "HostNamespaceListed", "names.namespaces lists the host's own namespace of this name"
)
BUILT_IN_NAMESPACE = _skipped(
    "BuiltInNamespace",
    "every cluster has a namespace of this name for itself; names.namespaces doesn't list it",
    "list it in names.namespaces",
)
HOST_MAKES_SLICE = _skipped(
    "HostMakesSlice", "the Service has a selector, so the host makes slices for it by itself"
)
NO_SERVICE_NAMED = _skipped("NoServiceNamed", "no label {0} names its Service", "set the label {0}")
UNUSED = _skipped("Unused", "no synced object refers to this {0}; to copy it all the same, {1}")
EVENT_UNRELATED = _skipped("EventUnrelated", "the event is not about a synced object")
EVENT_OF_CONTAINER = _skipped(
    "EventOfContainer", "the event is about a container of the host's own"
)
NAME_UNPUBLISHED = _skipped(
    "NameUnpublished", "it is only a DNS name, and no client on the host is led to one of a tenant"
)
NO_TOKEN = _skipped("NoToken", "it mounts no token")
POD_OVER = _skipped("PodOver", "the Pod has finished or is being deleted")
NOT_RUN = _skipped("NotRun", "the host does not run it")
OWN_NODE = _skipped("OwnNode", "a node of the virtual cluster itself runs it")
FINISHED = _skipped("Finished", "it has finished")
GATED = _skipped(
    "Gated",
    "scheduling gates hold it; it is sent to the host when they are gone",
    "remove spec.schedulingGates",
)
WAITS_FOR_FINALIZERS = _skipped(
    "WaitsForFinalizers", "it is being deleted and waits for its finalizers"
)

# -- paused, frozen --------------------------------------------------------------------------------

PAUSED = _paused(
    "Paused",
    "paused: remove the annotation {0} from the {1} {2} {3} to go on",
    "remove the annotation {0} from the {1} {2} {3}",
)
SYNCER_PAUSED = _paused(
    "SyncerPaused",
    "paused: take {0} out of the annotation {1} of the {2} {3} {4} to go on",
    "take {0} out of the annotation {1} of the {2} {3} {4}",
)
FIELDS_FROZEN = _define("FieldsFrozen", RequestState.FROZEN, "{0}", is_text=True)

# -- pending: by the engine ------------------------------------------------------------------------

AWAITED_BY_SYNCER = _define("AwaitedBySyncer", RequestState.PENDING, "{0}", is_text=True)
REMADE = _pending("Remade", "the {0} is being deleted; it is created again once it is gone")
EARLIER_COPY = _pending(
    "EarlierCopyEnds", "the host copy of an earlier object of this name is being deleted"
)
DESELECTED = _pending(
    "Deselected", "its labels are not those of sync.{0}.selector; the host copy is being deleted"
)
LISTED_JUST_NOW = _pending("ListedJustNow", "{0}, as it was listed a moment ago; that may be old")
LIST_IN_PART = _pending("ListInPart", "{0}, as a list shows that is not complete yet")
DELETIONS_COUNTED = _pending(
    "DeletionsCounted", "{0}; how many more would be deleted is being counted"
)
NO_COPY_YET = _pending(
    "NoCopyYet",
    "it names the {0} {1}, which has no copy on the host yet",
    "see why that has none: syncer explain {0} {1}",
)
TOO_MANY_MISSING = _pending(
    "TooManyMissing",
    "it names more than {0} objects that are not there, as the {1} {2}",
    "create them, or name fewer",
)
PLACE_UNKNOWN = _pending(
    "PlaceUnknown",
    "it names the {0} {1}, and whose object has that place on the host isn't known yet",
)
HOME_MISSING = _pending(
    "HomeMissing",
    "it names the {0} {1}, whose host namespace is not there yet",
)
HOST_NAMESPACE_UNREADY = _pending(
    "HostNamespaceUnready",
    "the host namespace {0}",
    "see its Namespace: syncer explain namespaces {1}",
)
PACED = _pending(
    "Paced", "its host object was written twice within a second; further changes are collected"
)
TOO_HEAVY = _pending(
    "TooHeavy",
    "other large objects of this virtual cluster are worked on first, as they take much memory",
)
CONFIRMED_LATER = _pending(
    "ConfirmedLater",
    "it names many objects that are not there, and the host is asked about them in turn",
)
NOT_SETTLED = _pending("NotSettled", "{0}; it still needed a write after {1} rounds")
MERGE_REFUSED = _define("MergeRefused", RequestState.PENDING, "{0}", is_text=True, has_event=True)

QUEUED = _pending("Queued", "it is in the queue, or a worker has it", "ask again in a moment")
UNWRITTEN = _pending("Unwritten", "a daemon would make {0} API calls for it", "run the daemon")
SYNCER_WAITS = _pending("SyncerWaits", "the syncer {0} waits: {1}")
NOT_SEEN = _pending(
    "NotSeen",
    "its present state isn't known: {0}",
    "see which cluster doesn't answer: syncer clusters",
)
CLUSTER_UNSERVED = _pending(
    "ClusterUnserved",
    "the virtual cluster {0} can't be served at present: {1}",
    "see its state: syncer clusters --cluster {0}",
)
SYNCER_STARTS = _pending("SyncerStarts", "the syncer {0} fills its caches", "ask again in a moment")

# -- pending: by syncers ---------------------------------------------------------------------------

NOT_SHOWN = _pending(
    "NotShown",
    "it names the {0} {1}, which is none of those that the host shows",
    "name another, or have the operator show it",
)
CLASS_NOT_LISTED = _pending(
    "ClassNotListed",
    "the host has no {0} {1} for this virtual cluster: name one that is listed",
    "list them: kubectl get {0}",
    has_event=True,
)
DEFAULT_NOT_LISTED = _pending(
    "DefaultClassNotListed",
    "it names no {0}, and the host's default isn't for this virtual cluster: name one that is"
    " listed",
    "list them: kubectl get {0}",
    has_event=True,
)
NO_PRIORITY_CLASS = _pending(
    "NoPriorityClass", "there is no PriorityClass {0}", "create it, or name another"
)
PRIORITY_CLASS_ABSENT = _pending(
    "PriorityClassAbsent",
    "the PriorityClass {0} isn't where Pods run yet",
    "see why: syncer explain priorityclasses {0}",
)
NO_FREE_ADDRESS = _pending(
    "NoFreeAddress",
    "there is no address that is free on both sides",
    "delete the Service and create it again",
)
COPY_ABSENT = _pending(
    "CopyAbsent",
    "the Service has no copy on the host yet",
    "see why that has none: syncer explain services {0}",
)
NO_NAMESPACE = _pending(
    "NoNamespace", "the virtual cluster has no namespace {0} yet", "create the namespace {0}"
)
OWNER_ABSENT = _pending("OwnerAbsent", "its {0} is not on the host{1}")
VIRTUAL_ENDS = _pending("VirtualEnds", "the virtual {0} is being deleted")
HOME_UNLABELLED = _pending(
    "HomeUnlabelled",
    "its host namespace doesn't have its labels yet",
    "see why: syncer explain namespaces {0}",
)
HOME_LACKS = _pending(
    "HomeLacks", "its host namespace has no {0} yet", "see why: syncer explain namespaces {1}"
)
HOME_OUTDATED = _pending(
    "HomeOutdated",
    "its host namespace still has an earlier {0}",
    "see why: syncer explain namespaces {1}",
)
QUOTA_NOT_ENFORCED = _pending(
    "QuotaNotEnforced",
    "the host doesn't enforce the {0} of its host namespace yet",
    "see that the host runs the controller for quotas",
)
USERS_UNKNOWN = _pending("UsersUnknown", "not all objects that may refer to it are known yet")
NO_SERVICE_ACCOUNT = _pending(
    "NoServiceAccount", "its ServiceAccount {0} is not there yet", "create the ServiceAccount {0}"
)
ACCOUNT_NOT_ON_HOST = _pending(
    "AccountNotOnHost",
    "its ServiceAccount {0} is not on the host yet",
    "see why: syncer explain serviceaccounts {1}",
)
TOKEN_NOT_ON_HOST = _pending(
    "TokenNotOnHost",
    "its token is not on the host yet",
    "see why: syncer explain pod-tokens {0}",
)
TOKEN_WITHOUT_NODE = _pending(
    "TokenWithoutNode", "its tokens can't name its Node until the Node is there"
)
NO_DNS_ADDRESS = _pending(
    "NoDnsAddress",
    "the DNS Service {0} has no address on the host yet",
    "see why: syncer explain services {0}",
)
SERVICE_NOT_ON_HOST = _pending(
    "ServiceNotOnHost",
    "the Service {0}, whose address it gets in variables, is not on the host yet",
    "see why: syncer explain services {0}",
)
NODE_MISSING = _pending(
    "NodeMissing",
    "the virtual cluster has no Node {0} yet; sync.fake.nodes makes one for each that is used",
    "see why: syncer explain nodes {0}",
)
VOLUME_UNREAD = _pending("VolumeUnread", "the host's PersistentVolume {0} is not known yet")
NOT_BOUND = _pending(
    "NotBound",
    "no scheduler of the virtual cluster has bound it to a Node yet",
    "see its Events, and that a scheduler runs in the virtual cluster",
)
NOT_PLACED = _pending(
    "NotPlaced",
    "it is bound to the Node {0}, and the host has not put it there yet",
    "make room on that Node, or delete the Pod to have another one scheduled",
)
BOTH_END = _pending("BothEnd", "both are being deleted; the host's kubelet is stopping it")
HOST_ENDS_AT_ONCE = _pending(
    "HostEndsAtOnce",
    "the host is deleting it without grace; its end state is known once it is gone",
)

# -- refused: by the engine and by syncers; the name is that of the Event, too ---------------------

SYNC_REFUSED = _refused("SyncRefused")
NAME_COLLISION = _refused("NameCollision")
NAME_TOO_LONG = _refused("NameTooLong")
TOO_LARGE = _refused("TooLarge")
UNREADABLE = _refused("Unreadable")
IN_USE = _refused("InUse")
HOST_NAMESPACE_GONE = _refused("HostNamespaceGone")
HOST_KIND_GONE = _refused("HostKindGone")
NAMESPACE_REFUSED = _refused("NamespaceRefused")
SYNC_FAILED = _refused("SyncFailed")
IDENTITY_LOST = _refused("IdentityLost")
REFERENCE_UNSYNCED = _refused("ReferenceUnsynced")
TOO_MANY_FIELDS = _refused("TooManyFields")
DELETIONS_HELD = _refused("DeletionsHeld")
NOT_COPIED = _refused("NotCopied")
PATCH_FAILED = _refused("PatchFailed")
HOST_COPY_DELETED = _refused("HostCopyDeleted")
TOO_MANY_CLASSES = _refused("TooManyClasses")
NOT_ALLOWED = _refused("NotAllowed")
VOLUME_REFUSED = _refused("VolumeRefused")
DATA_SOURCE_REFUSED = _refused("DataSourceRefused")
TOO_MANY_NAMESPACES = _refused("TooManyNamespaces")
TOO_MANY_SLICES = _refused("TooManySlices")
TOO_MANY_POLICIES = _refused("TooManyPolicies")
SERVICE_ACCOUNT_NOT_FOUND = _refused("ServiceAccountNotFound")
NOT_SYNCED = _refused("NotSynced")
NODE_NAME_REFUSED = _refused("NodeNameRefused")
POD_SECURITY = _refused("PodSecurity")
BOUND_ELSEWHERE = _refused("BoundElsewhere")

# -- failed: by the class of the error -------------------------------------------------------------

NOT_FOUND = _failed("NotFound")
ALREADY_EXISTS = _failed("AlreadyExists")
CONFLICT = _failed("Conflict")
INVALID = _failed("Invalid", "change the object so that the API server accepts it")
DENIED = _failed("Denied", "change the object, or what refuses it on that side")
QUOTA_EXCEEDED = _failed("QuotaExceeded", "make room in the quota, or have it raised")
FORBIDDEN = _failed(
    "Forbidden",
    "give the daemon this right; syncer rbac prints all of them; a host namespace that is being"
    " deleted loses its Roles first",
)
TOO_MANY = _failed("TooMany")
NOT_CONNECTED = _failed("NotConnected", "see which cluster doesn't answer: syncer clusters")
UNAUTHORIZED = _failed("Unauthorized", "renew the credentials in that kubeconfig")
UNREACHABLE = _failed("Unreachable", "see which cluster doesn't answer: syncer clusters")
NO_CREDENTIALS = _failed("NoCredentials", "see why the program that gives the credentials hangs")
SERVER_FAILED = _failed(
    "ServerFailed", "see the log of that API server, and whether its etcd answers"
)
WEBHOOK_FAILED = _failed(
    "WebhookFailed", "repair that webhook, or have its failurePolicy or rules changed"
)
NAMESPACE_TERMINATING = _failed(
    "NamespaceTerminating",
    "see what holds that namespace: kubectl get namespace -o yaml; once it is gone, make it again",
)
EXPIRED = _failed("Expired")
UNEXPECTED_ANSWER = _failed(
    "UnexpectedAnswer", "see what answers instead of the API server, such as a proxy"
)
SYNCER_RAISED = _failed("SyncerRaised", "report the traceback in the daemon's log")
