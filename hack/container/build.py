"""The build of the image, its archive and its bill of materials (SBOM)."""

import gzip
import hashlib
import os
import shutil
import sys
import venv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.checkout import THIS
from hack.commands import run
from hack.container.base import bases
from hack.container.engine import OUTPUT, Engine
from hack.container.layers import Layer, layers
from hack.realnode.inside import Failed
from syncer.version import VERSION

#: The name of the image in this version.
TAG = f"ghcr.io/vsyncer/syncer:{VERSION}"
LOCKS = Path(__file__).parent
#: Packages that are listed with their size, at most.
_SHOWN = 12
#: Syft asks its makers for a newer version otherwise.
_OFFLINE = {"SYFT_CHECK_FOR_APP_UPDATE": "false"}


@dataclass(frozen=True, slots=True)
class Saved:
    """The files that an image was written to."""

    tag: str
    #: The identity of the image: the digest of its configuration.
    identity: str
    archive: Path
    #: The packages in it, as CycloneDX JSON.
    bill: Path
    #: The lowest is the base, of Python alone; the others are what we add.
    layers: tuple[Layer, ...]

    @property
    def compressed(self) -> int:
        """The size of the archive in bytes, which is that of the image's compressed layers."""
        return self.archive.stat().st_size

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        files = {"archive": str(self.archive), "sbom": str(self.bill)}
        added = self.layers[1:]
        packages = Counter[str]()
        for each in added:
            packages.update(each.packages)
        return {
            "image": self.tag,
            "id": self.identity,
            **files,
            "compressed_bytes": self.compressed,
            "added": {
                "compressed_bytes": sum(each.compressed for each in added),
                "unpacked_bytes": sum(each.unpacked for each in added),
                "packages": dict(packages.most_common(_SHOWN)),
            },
        }


def build(engine: Engine, tag: str, *, architecture: str, base: str = "") -> None:
    """Build the image.

    Args:
        engine: Builds it.
        tag: Its name.
        architecture: ``amd64`` or ``arm64``.
        base: An image with Python, pip and venv. By default the Dockerfile's; where that can't be
            pulled, one of Debian's packages.

    Raises:
        Failed: The build failed.
    """
    arguments = {"VERSION": VERSION, "REVISION": THIS.commit or "unknown"}
    more = []
    if base:
        arguments["BASE"] = base
    elif not _pulls(engine, _default_base(), architecture):
        arguments["BASE"], arguments["BUILDER"] = bases(engine, architecture)
        more = ["--network=host"]
    _log(f"building {tag}")
    given = [f"--build-arg={name}={value}" for name, value in arguments.items()]
    engine.run(
        "build", f"--platform=linux/{architecture}", *more, *given, f"--tag={tag}", str(THIS.folder)
    )


def save(engine: Engine, tag: str, architecture: str) -> Saved:
    """Write the archive of an image and its bill of materials, unless this very image was written.

    Raises:
        Failed: The engine hasn't got the image, or its packages can't be listed.
    """
    identity = engine.run("image", "inspect", "--format={{.Id}}", tag)
    name = f"{tag.rpartition('/')[2].replace(':', '-')}-{architecture}"
    archive, bill, stamp = (OUTPUT / f"{name}.{end}" for end in ("tar.gz", "cdx.json", "id"))
    if not (
        stamp.exists()
        and stamp.read_text() == f"{tag} {identity}"
        and archive.exists()
        and bill.exists()
    ):
        _log(f"writing {archive.name}")
        plain = OUTPUT / f"{name}.tar"
        engine.run("save", f"--output={plain}", tag)
        try:
            _list_packages(plain, tag, bill)
            with (
                plain.open("rb") as read,
                gzip.GzipFile(archive, "wb", compresslevel=6, mtime=0) as write,
            ):
                shutil.copyfileobj(read, write, 1 << 20)
        finally:
            plain.unlink()
        stamp.write_text(f"{tag} {identity}")
    return Saved(tag, identity, archive, bill, tuple(layers(archive)))


def programs(lock: str) -> Path:
    """Return the folder of the programs in a lock file, installed in an environment of their own.

    Raises:
        Failed: They can't be installed.
    """
    folder = THIS.folder / ".venv" / "image"
    wanted = LOCKS / lock
    stamp = folder / "made-from"
    digest = hashlib.sha256(wanted.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        venv.create(folder, clear=True, with_pip=True)
        command = [
            str(folder / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--require-hashes",
            "-r",
        ]
        done = run([*command, str(wanted)])
        if done.returncode:
            raise Failed(f"{wanted.name} can't be installed:\n{done.stderr.strip()[-2000:]}")
        stamp.write_text(digest)
    return folder / "bin"


def _list_packages(archive: Path, tag: str, into: Path) -> None:
    name, _, version = tag.rpartition(":")
    command = [
        str(programs("programs.lock") / "syft"),
        "scan",
        "--quiet",
        f"docker-archive:{archive}",
    ]
    command += [
        f"--source-name={name}",
        f"--source-version={version}",
        f"--output=cyclonedx-json={into}",
    ]
    done = run(command, env={**os.environ, **_OFFLINE})
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")


def _default_base() -> str:
    lines = (THIS.folder / "Dockerfile").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("ARG BASE="))


def _pulls(engine: Engine, image: str, architecture: str) -> bool:
    """Return True if the image can be pulled."""
    done = engine.command("pull", "--quiet", f"--platform=linux/{architecture}", image)
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1]
        _log(f"{image} can't be pulled ({why}); the base is made of Debian's packages")
    return not done.returncode


def _log(text: str) -> None:
    print(f"image: {text}", file=sys.stderr, flush=True)
