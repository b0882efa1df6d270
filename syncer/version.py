"""The version of the installed distribution."""

from importlib.metadata import PackageNotFoundError, version


def _installed() -> str:
    try:
        return version("vsyncer")
    except PackageNotFoundError:
        return "0+unknown"


#: Such as ``0.1.0``; ``0+unknown`` where the package runs without being installed.
VERSION = _installed()
