"""The identity of a virtual cluster, which is stored in it.

So a changed setting can't make every copy look lost. With another cluster name, host namespace,
translator or mark prefix, no copy on the host would be recognised: all would be created a second
time, and Pods that have started would be taken for lost and deleted.
"""

import contextlib
from collections.abc import Iterable

from syncer.api.context import Settings
from syncer.api.errors import AlreadyExists, ConfigError, Forbidden, NotFound, Problem, Refused
from syncer.api.objects import Key, Obj, key_of
from syncer.api.roles import Syncer
from syncer.clusters import codec
from syncer.clusters.client import SideClient
from syncer.directions import direction_of
from syncer.resources.kinds import CONFIG_MAPS

#: The ConfigMap in the virtual cluster.
NOTE_KEY = Key("kube-system", "vsyncer")
#: The options that the parts of an identity come from.
_PATHS = {
    "identity": "name and host namespace",
    "translator": "names.translator",
    "marks": "marks.prefix",
}


async def claim(
    virtual: SideClient,
    settings: Settings,
    *,
    translator: str,
    host: SideClient,
    copied: Iterable[Syncer],
) -> None:
    """Store the identity in the virtual cluster, or compare it with the stored one.

    ``copied`` are the syncers to the host.

    Raises:
        ConfigError: The stored identity differs. Or none is stored though the host has copies: this
            may be another virtual cluster than that of the copies, or one that lost its data, and
            all copies would be deleted.
        ClusterError: A request failed.
    """
    wanted = _wanted(settings, translator)
    noted = await _noted(virtual)
    if noted is None:
        for syncer in copied:
            await _must_have_no_copy(host, settings, syncer, wanted)
        noted = await _note(virtual, wanted)
    _compare(noted, wanted)


async def is_claimed(virtual: SideClient, settings: Settings, *, translator: str) -> bool:
    """Return True if the identity is stored.

    Raises:
        ConfigError: The stored identity differs.
        ClusterError: The request failed.
    """
    noted = await _noted(virtual)
    if noted is not None:
        _compare(noted, _wanted(settings, translator))
    return noted is not None


class IdentityLost(Refused):
    """The virtual cluster has no identity any more, or another one.

    It is a class of its own for metrics and alerts.
    """


async def must_be_claimed(virtual: SideClient, settings: Settings, *, translator: str) -> None:
    """Check that the identity is still stored.

    This is done before a copy is deleted because the virtual cluster lacks its original.

    Raises:
        IdentityLost: It isn't, or another one is.
        ClusterError: The request failed.
    """
    if await _noted(virtual) != _wanted(settings, translator):
        why = (
            f"the virtual cluster has lost its ConfigMap {NOTE_KEY}, and so perhaps all its data:"
            " its copies stay. Restore the ConfigMap; or check that the virtual cluster is"
            " complete, restart the daemon, and follow its message"
        )
        raise IdentityLost(why, reason="IdentityLost")


async def release(virtual: SideClient) -> None:
    """Delete the stored identity, when nothing is left that it protects.

    Raises:
        ClusterError: The request failed.
    """
    with contextlib.suppress(NotFound):
        await virtual.delete(CONFIG_MAPS, NOTE_KEY)


def _wanted(settings: Settings, translator: str) -> Obj:
    return {"identity": settings.identity, "translator": translator, "marks": settings.marks.prefix}


def _compare(noted: Obj, wanted: Obj) -> None:
    problems = []
    for name, value in wanted.items():
        before = noted.get(name)
        if before == value:
            continue
        why = (
            f"this virtual cluster was synced as {str(before)!r} before and is now to be"
            f" {value!r}: its copies would be lost."
        )
        hint = (
            "Set it back; or, if there are no copies left, delete the ConfigMap"
            f" {NOTE_KEY} in the virtual cluster."
        )
        problems.append(Problem(why, path=_PATHS[name], hint=hint))
    if problems:
        raise ConfigError(*problems)


async def _noted(virtual: SideClient) -> Obj | None:
    try:
        found = await virtual.get(CONFIG_MAPS, NOTE_KEY)
    except NotFound:
        return None
    return found.get("data") or {}


async def _note(virtual: SideClient, wanted: Obj) -> Obj:
    metadata = {"name": NOTE_KEY.name, "namespace": NOTE_KEY.namespace}
    note = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": wanted}
    try:
        await virtual.create(CONFIG_MAPS, note)
    except AlreadyExists:
        return await _noted(virtual) or {}
    return wanted


async def _must_have_no_copy(
    host: SideClient, settings: Settings, syncer: Syncer, wanted: Obj
) -> None:
    resource = syncer.host_resource
    marks = settings.marks
    identity = settings.identity
    selector = marks.selector(identity)
    direction = direction_of(syncer)
    namespaces = direction.own_namespaces(settings)
    if namespaces is None:
        namespaces = settings.names.host_namespaces() if resource.namespaced else None
    for namespace in ("",) if namespaces is None else namespaces:
        with contextlib.suppress(NotFound, Forbidden):  # then the daemon doesn't sync them either
            async for page in host.list_pages(resource, namespace=namespace, selector=selector):
                for obj in map(codec.observed, page.items):
                    if marks.is_ours(
                        obj,
                        cluster=identity,
                        resource=syncer.resource,
                        made_for=direction.made_for,
                    ):
                        copy = f"{resource.kind} {key_of(obj)}"
                        raise ConfigError(_survivor(copy, wanted))


def _survivor(copy: str, wanted: Obj) -> Problem:
    why = (
        f"the host has copies of {wanted['identity']!r} ({copy}, for one), but this virtual"
        " cluster was never synced as that, or has lost its data: copies without an original"
        " would be deleted on the host."
    )
    literals = " ".join(f"--from-literal={name}={value}" for name, value in wanted.items())
    create = f"kubectl -n {NOTE_KEY.namespace} create configmap {NOTE_KEY.name} {literals}"
    hint = (
        "Check that it is the right virtual cluster. To start over, remove the copies: syncer"
        f" uninstall --yes. To continue with its present objects: {create}, in the virtual"
        " cluster."
    )
    return Problem(why, hint=hint)
