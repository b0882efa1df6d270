"""The layers of a saved image: what each adds, and how much of it is which Python package."""

import json
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

_CHUNK = 1 << 20
_PACKAGES = "site-packages"


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer; sizes are in bytes."""

    #: As a registry has it: gzip, level 6.
    compressed: int
    unpacked: int
    #: What each top-level name in a folder of Python's packages takes.
    packages: Mapping[str, int]


def layers(archive: Path) -> Iterator[Layer]:
    """Yield the layers of an archive as ``docker save`` writes it, the lowest first.

    Raises:
        OSError, tarfile.TarError: It can't be read.
    """
    with tarfile.open(archive) as saved:
        manifest = saved.extractfile("manifest.json")
        assert manifest is not None
        for name in json.load(manifest)[0]["Layers"]:
            yield _layer(saved, name)


def _layer(saved: tarfile.TarFile, name: str) -> Layer:
    def opened() -> IO[bytes]:
        found = saved.extractfile(name)
        assert found is not None
        return found

    unpacked = 0
    packages = Counter[str]()
    with opened() as data, tarfile.open(fileobj=data, mode="r:*") as files:
        for each in files:
            unpacked += each.size
            parts = PurePosixPath(each.name).parts
            if _PACKAGES in parts[:-1]:
                packages[parts[parts.index(_PACKAGES) + 1]] += each.size
    with opened() as data:
        return Layer(_compressed(data), unpacked, packages)


def _compressed(data: IO[bytes]) -> int:
    """Return the size of the data compressed; that of data
    that is compressed already is its own.
    """
    first = data.read(_CHUNK)
    if first.startswith(b"\x1f\x8b"):
        return len(first) + sum(map(len, iter(lambda: data.read(_CHUNK), b"")))
    squeeze = zlib.compressobj(6, wbits=31)
    size = 0
    chunk = first
    while chunk:
        size += len(squeeze.compress(chunk))
        chunk = data.read(_CHUNK)
    return size + len(squeeze.flush())
