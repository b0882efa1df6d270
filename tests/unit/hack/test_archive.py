"""Image archives in the format of `docker save`."""

import io
import json
import tarfile
from pathlib import Path

from hack.realnode.archive import Image, write


def test_image_has_the_layers_of_its_base_and_shares_them(tmp_path: Path) -> None:
    base = tmp_path / "base.tar"
    with tarfile.open(base, "w") as tar:
        tar.addfile(tarfile.TarInfo("from-base"))
    program = tmp_path / "program"
    program.write_text("program")
    middle = Image(["middle:1", "middle:2"], ["/program"], {"program": program}, base=base, command=["pause"])
    top = Image(["top:1"], files={"etc/text": "text"}, modes={"etc/text": 0o4755}, folders=["var/own"], base=middle)
    write(tmp_path / "images.tar", [middle, top])
    with tarfile.open(tmp_path / "images.tar") as tar:
        names = tar.getnames()
        assert len(names) == len(set(names))

        def read(name: str) -> bytes:
            found = tar.extractfile(name)
            assert found is not None
            return found.read()

        first, second = json.loads(read("manifest.json"))
        assert (first["RepoTags"], second["RepoTags"]) == (["middle:1", "middle:2"], ["top:1"])
        assert second["Layers"][:2] == first["Layers"]
        assert read(first["Layers"][0]) == base.read_bytes()
        config = json.loads(read(first["Config"]))
        assert (config["config"]["Entrypoint"], config["config"]["Cmd"]) == (["/program"], ["pause"])
        assert [f"{one.removeprefix('sha256:')}/layer.tar" for one in config["rootfs"]["diff_ids"]] == first["Layers"]
        with tarfile.open(fileobj=io.BytesIO(read(second["Layers"][2]))) as layer:
            assert {entry.name: oct(entry.mode) for entry in layer if not entry.name.endswith("tmp")} == {
                "var/own": "0o755",
                "etc/text": "0o4755",
            }
