"""The package has the types that its users need, so that they import them from one place."""

import inspect
import typing
from collections.abc import Iterator

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

import syncer.multicluster as package
from syncer.byte_budget import ByteBudget
from syncer.clusters.credentials import LoginCredentials
from syncer.clusters.transport import Transport
from syncer.multicluster.cluster_connection import ClusterConnection

#: What a cluster cache and its own connections tell each other, or a test gives it.
INTERNAL = {ByteBudget, LoginCredentials, Transport, ClusterConnection}


def types_in(hint: object) -> Iterator[type]:
    """Yield the classes that a hint consists of."""
    inner = hint if isinstance(hint, list) else typing.get_args(hint)
    for each in inner:
        yield from types_in(each)
    if isinstance(hint, type) and not inner:
        yield hint


def functions_of(exported: object) -> Iterator[object]:
    """Yield the public functions of what is exported."""
    if inspect.isfunction(exported):
        yield exported
    elif inspect.isclass(exported) and not issubclass(exported, Exception):
        for name, member in inspect.getmembers(exported):
            function = member.fget if isinstance(member, property) else member
            is_ours = (getattr(function, "__module__", "") or "").startswith("syncer.multicluster")
            if is_ours and inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
                yield function


def test_types_in_public_signatures_can_be_imported_from_the_package() -> None:
    exported = {name: getattr(package, name) for name in package.__all__}
    known = {each for each in exported.values() if isinstance(each, type)} | INTERNAL
    missing = {
        f"{kind.__name__} of {name}"
        for name, each in exported.items()
        for function in functions_of(each)
        for hint in typing.get_type_hints(function, localns={"RSAPrivateKey": RSAPrivateKey}).values()
        for kind in types_in(hint)
        if kind.__module__.startswith("syncer") and kind not in known
    }
    assert missing == set()


def test_errors_that_controllers_catch_can_be_imported_from_the_package() -> None:
    names = ["ClusterError", "ClusterNotFound", "ConfigError", "Conflict", "AlreadyExists", "NotFound", "NotConnected"]
    assert [
        name for name in [*names, "SyncerError", "Unreachable", "Obj", "Handler"] if name not in package.__all__
    ] == []


def test_help_of_a_class_does_not_show_the_environment_of_the_process() -> None:
    """It may have tokens, and hides the arguments."""
    shown = {
        name: str(inspect.signature(function))
        for name in package.__all__
        for function in functions_of(getattr(package, name))
        if callable(function)
    }
    assert shown
    assert [name for name, text in shown.items() if "environ(" in text] == []
