"""Image archives in the format of ``docker save``, written without Docker or a registry."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Image:
    """An image of files and links from paths in it, the same way as a Dockerfile."""

    tags: Sequence[str]
    entrypoint: Sequence[str] = ()
    files: Mapping[str, Path | str] = field(default_factory=dict)
    #: Symbolic links, and what they lead to.
    links: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    #: What lies below, as `FROM`: another image, or the tar of a root file system.
    base: "Image | Path | None" = None
    #: The arguments of the entrypoint, or the command where there is none.
    command: Sequence[str] = ()
    #: Modes of files that don't have the usual: 0644 for a text, 0755 for a file of this machine.
    modes: Mapping[str, int] = field(default_factory=dict)
    #: Empty folders.
    folders: Sequence[str] = ()
    #: By default that of this machine.
    architecture: str = ""

    def layers(self) -> list[bytes]:
        """Return the layers as uncompressed tars, the lowest first."""
        if isinstance(self.base, Image):
            return [*self.base.layers(), self._layer()]
        return [*([self.base.read_bytes()] if self.base else []), self._layer()]

    def _layer(self) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for path in ("tmp", *self.folders):
                entry = _entry(path, 0o1777 if path == "tmp" else 0o755)
                entry.type = tarfile.DIRTYPE
                tar.addfile(entry)
            for path, source in self.files.items():
                data = source.encode() if isinstance(source, str) else source.read_bytes()
                entry = _entry(
                    path, self.modes.get(path, 0o644 if isinstance(source, str) else 0o755)
                )
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
            for path, target in self.links.items():
                entry = _entry(path, 0o777)
                entry.type = tarfile.SYMTYPE
                entry.linkname = target
                tar.addfile(entry)
        return buffer.getvalue()


def write(path: Path, images: Sequence[Image]) -> None:
    """Write an archive of images.

    A layer that several images have is written once.
    """
    manifest = []
    written: set[str] = set()
    with tarfile.open(path, "w") as tar:
        for image in images:
            digests = []
            for layer in image.layers():
                digests.append(hashlib.sha256(layer).hexdigest())
                if digests[-1] not in written:
                    _add(tar, f"{digests[-1]}/layer.tar", layer)
                    written.add(digests[-1])
            config = json.dumps(_config(image, digests)).encode()
            name = f"{hashlib.sha256(config).hexdigest()}.json"
            _add(tar, name, config)
            layers = [f"{digest}/layer.tar" for digest in digests]
            manifest.append({"Config": name, "RepoTags": list(image.tags), "Layers": layers})
        _add(tar, "manifest.json", json.dumps(manifest).encode())


def architecture() -> str:
    """Return the name that images have for this machine's architecture."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def _config(image: Image, digests: Sequence[str]) -> dict[str, Any]:
    run: dict[str, Any] = {
        "Env": [_PATH],
        "Entrypoint": list(image.entrypoint),
        "Cmd": list(image.command),
    }
    if image.user:
        run["User"] = image.user
    return {
        "architecture": image.architecture or architecture(),
        "os": "linux",
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
        "history": [{"created_by": image.tags[0]} for _ in digests],
    }


def _entry(path: str, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path.lstrip("/"))
    entry.mode = mode
    return entry


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = _entry(name, 0o644)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))
