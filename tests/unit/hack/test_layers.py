"""What each layer of a saved image adds."""

import gzip
import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from hack.container.layers import layers


def tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            made.addfile(entry, io.BytesIO(data))
    return out.getvalue()


@pytest.mark.parametrize("pack", [bytes, lambda data: gzip.compress(data, 6, mtime=0)], ids=["plain", "compressed"])
def test_layers_are_listed_with_their_sizes_and_packages(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    noise = os.urandom(5000)
    base = tar({"usr/bin/python3": noise})
    packages = "opt/syncer/lib/python3.13/site-packages"
    added = tar({f"{packages}/msgspec/core.so": b"a" * 3000, f"{packages}/msgspec/x.py": b"b" * 10, "etc/x": b"c"})
    manifest = json.dumps([{"Layers": ["blobs/one", "blobs/two"]}]).encode()
    archive = tmp_path / "image.tar"
    archive.write_bytes(tar({"manifest.json": manifest, "blobs/one": pack(base), "blobs/two": pack(added)}))
    first, second = layers(archive)
    assert (first.unpacked, first.packages) == (5000, {})
    assert 5000 < first.compressed < 5600
    assert (second.unpacked, second.packages) == (3011, {"msgspec": 3010})
    assert second.compressed < 500
