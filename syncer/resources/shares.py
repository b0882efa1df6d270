"""Counts that all namespaces of a virtual cluster share.

None takes them from the others.
"""

from collections.abc import Collection

from syncer.api import SHARE_TIMES, Context, Key, Obj, Refused, Resource, Side, key_of


def may_add(
    ctx: Context,
    virtual: Obj,
    resource: Resource,
    most: int,
    copies: Collection[Key] | None = None,
) -> bool:
    """Return True if a virtual object may have a copy, of at most so many of the virtual cluster.

    Its namespace may have one, and up to :data:`~syncer.api.SHARE_TIMES` as many as are left then:
    three quarters if no other has any. ``copies`` are the host keys of the copies; None if all
    host objects that are cached are copies.
    """
    if copies is None:
        copies = ctx.reader.keys(Side.HOST, resource)
    left = most - len(copies) - 1
    if left < 0:
        return False
    if len(copies) < SHARE_TIMES * left:
        return True
    namespace = key_of(virtual).namespace
    own = sum(1 for key in copied(ctx, resource, copies) if key.namespace == namespace)
    return own < max(SHARE_TIMES * left, 1)


def copied(ctx: Context, resource: Resource, copies: Collection[Key] | None = None) -> list[Key]:
    """Return the virtual keys of a resource that have copies; ``copies`` as for :func:`may_add`."""
    if copies is None:
        copies = ctx.reader.keys(Side.HOST, resource)
    found: list[Key] = []
    for key in ctx.reader.keys(Side.VIRTUAL, resource):
        try:
            host_key = ctx.names.to_host(resource, key)
        except Refused:
            continue
        if host_key in copies:
            found.append(key)
    return found
