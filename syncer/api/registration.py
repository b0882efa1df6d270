"""Registration of syncers by a call, for programs that bring their own syncers and then run
``syncer.cli.main()``.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from syncer.api.contract import ROLES, Fault, syncer_faults
from syncer.api.errors import PluginError
from syncer.api.roles import FakeSyncUp, Syncer

_Class = TypeVar("_Class", bound=type[Syncer])

#: The registered classes of this process, each with its module. The only state that outlives a
#: call.
_registered: dict[type[Syncer], str] = {}


def register_syncer(cls: _Class) -> _Class:
    """Register a syncer without an entry point, on a par with the built-in ones.

    Usable as a decorator.

    From then on its section is part of the configuration, and it is enabled unless that section
    disables it. Conflicts with other syncers are refused when the configuration is loaded.

    Raises:
        PluginError: The class is not a usable syncer.
    """
    return _register(
        cls,
        tuple(role for role in ROLES if role is not FakeSyncUp),
        "register_fake_syncer",
    )


def register_fake_syncer(cls: _Class) -> _Class:
    """Register a syncer of objects that the virtual side needs and that exist nowhere
    (``FakeSyncUp``).

    Otherwise like :func:`register_syncer`.

    Raises:
        PluginError: The class is not a usable syncer.
    """
    return _register(cls, (FakeSyncUp,), "register_syncer")


@contextmanager
def registrations() -> Iterator[None]:
    """Undo the registrations made in the block when it ends. For tests."""
    before = dict(_registered)
    try:
        yield
    finally:
        _registered.clear()
        _registered.update(before)


def registered() -> Mapping[type[Syncer], str]:
    """Return the registered classes in the order of their registration, each with its module."""
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
