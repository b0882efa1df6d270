"""Registers syncers by a call, for programs that bring their own and then run ``syncer.cli.main()``."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from syncer.api.contract import Fault, syncer_faults
from syncer.api.errors import PluginError
from syncer.api.optional_roles import OwnController
from syncer.api.roles import FakeSyncUp, Sync, SyncDown, Syncer, SyncFromHost, SyncUp

_Class = TypeVar("_Class", bound=type[Syncer])

#: What is registered in this process, and the module that each class is from: the one state that lasts between calls.
_registered: dict[type[Syncer], str] = {}


def register_syncer(cls: _Class) -> _Class:
    """Make a syncer known as the built-in ones are, without an entry point; may be used as a decorator.

    Its section of the configuration is there from then on, and it is on unless the section says otherwise. Raises
    PluginError where the class can't be used. Conflicts with other syncers are refused when the configuration is read.
    """
    return _register(cls, (SyncDown, Sync, SyncUp, SyncFromHost, OwnController), "register_fake_syncer")


def register_fake_syncer(cls: _Class) -> _Class:
    """Like :func:`register_syncer`, for a syncer of what the virtual side needs and neither side has (FakeSyncUp)."""
    return _register(cls, (FakeSyncUp,), "register_syncer")


@contextmanager
def registrations() -> Iterator[None]:
    """Forget at the end of the block what was registered in it: for tests."""
    before = dict(_registered)
    try:
        yield
    finally:
        _registered.clear()
        _registered.update(before)


def registered() -> Mapping[type[Syncer], str]:
    """Return the registered classes in the order of their registration, each with the module that it is from."""
    return dict(_registered)


def _register(cls: _Class, roles: tuple[type, ...], other: str) -> _Class:
    faults = syncer_faults(cls)
    if not faults and not issubclass(cls, roles):
        wanted = ", ".join(role.__name__ for role in roles)
        faults = [Fault(f"{cls.__name__} has none of the roles {wanted}; use {other} for it")]
    module = getattr(cls, "__module__", "?")
    if faults:
        why = "; ".join(fault.message for fault in faults)
        name = getattr(cls, "name", None) or getattr(cls, "__name__", None) or repr(cls)
        raise PluginError(str(name), f"registered by {module}: {why}")
    _registered[cls] = module
    return cls
