"""A base for the image where none can be pulled: Debian's Python."""

import sys
from pathlib import Path

from hack.commands import run
from hack.container.engine import OUTPUT, Engine
from hack.realnode import debian
from hack.realnode.archive import Image, write

#: The release of Debian whose Python it is.
_SUITE = "trixie"
#: libstdc++6 is for extension modules; python:slim has it, too.
_PACKAGES = ("python3", "python3-venv", "ca-certificates", "libstdc++6")
#: Settings of this machine's pip that reach its package index.
_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "proxy")


def bases(engine: Engine, architecture: str) -> tuple[str, str]:
    """Return the tags of the base and of the builder's base, made and loaded once.

    The builder's also has the settings that this machine's pip reaches its index with; no file of
    it is in the image of the daemon.

    Args:
        engine: Loads them.
        architecture: ``amd64`` or ``arm64``.

    Raises:
        Failed: They can't be made.
    """
    tar = debian.root(
        f"python-{_SUITE}-{architecture}", _PACKAGES, suite=_SUITE, architecture=architecture
    )
    made = f"{_SUITE}-{architecture}-{tar.stat().st_mtime_ns:x}"
    base = f"vsyncer.dev/python:{made}"
    builder = f"vsyncer.dev/python-with-pip:{made}"
    if engine.has(builder):
        return base, builder
    lower = Image([base], base=tar, architecture=architecture)
    upper = Image([builder], base=lower, files=_settings_of_pip(), architecture=architecture)
    archive = OUTPUT / "base.tar"
    write(archive, [lower, upper])
    engine.run("load", "--quiet", f"--input={archive}")
    archive.unlink()
    return base, builder


def _settings_of_pip() -> dict[str, Path | str]:
    """Return the files of an image in which pip reaches the index that this machine's does."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = run(command)
    done.check_returncode()
    # Lines such as :env:.cert='/a/file' or global.index-url='https://…'.
    found = {
        name.rpartition(".")[2]: value.strip("'")
        for name, _, value in (x.partition("=") for x in done.stdout.split("\n"))
    }
    lines = [f"{name} = {found[name]}" for name in _SETTINGS if name in found]
    files: dict[str, Path | str] = {}
    if certificates := found.get("cert"):
        lines.append("cert = /etc/pip.pem")
        files["etc/pip.pem"] = Path(certificates).read_text()
    return files | {"etc/pip.conf": "\n".join(["[global]", *lines, ""])}
