"""The files of a release. Packages and charts of a commit are the same bytes in each build."""

import gzip
import hashlib
import os
import posixpath
import re
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from build import BuildBackendException, ProjectBuilder

from hack.commands import run
from hack.container.build import build as build_image
from hack.container.build import save as save_image
from hack.container.emulator import emulated
from hack.container.engine import engine
from hack.realnode import builds
from hack.realnode.inside import Failed
from hack.release_checks import IMAGE, charts, git, published

#: The architectures that the image is built for.
ARCHITECTURES = ("amd64", "arm64")
#: The file with the SHA-256 of each of the others, as sha256sum writes it.
CHECKSUMS = "checksums.txt"
#: All that packages and charts are made of.
_SOURCES = ("LICENSE", "README.md", "pyproject.toml", "setup.cfg", "syncer", "plugins", "charts")
#: The files of the tree are below this address, as in the alerts' links to runbooks.
_FILES = "https://github.com/vsyncer/vsyncer/blob/main"
_CODE_BLOCK = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
_RELATIVE_LINK = re.compile(r"\]\((?![\w+.-]+:|#)([^)\s]+)\)")
#: Modes of files by default, whatever the umask of who builds.
_UMASK = 0o022


def commit_time(tree: Path) -> int:
    """Return the time of HEAD, in seconds since 1970.

    Raises:
        Failed: The tree is not a git checkout.
        Hung: git took too long.
    """
    found = git(tree, "log", "-1", "--format=%ct")
    if not found:
        raise Failed(f"{tree}: git shows no commit. Release from a clone")
    return int(found)


def copy_sources(tree: Path, into: Path) -> None:
    """Copy the files that packages and charts are made of, without what git ignores.

    Their modes are those that git knows: executable or not.

    Raises:
        Failed: The tree is not a git checkout.
        Hung: git took too long.
    """
    which = ("--cached", "--others", "--exclude-standard")
    listed = git(tree, "ls-files", "-z", *which, "--", *_SOURCES)
    if listed is None:
        raise Failed(f"{tree}: git lists no files. Release from a clone")

    for name in sorted(set(listed.rstrip("\0").split("\0"))):
        source = tree / name
        # A file that was deleted and not committed yet, in a dry run.
        if not source.exists():
            continue

        target = into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        mode = 0o644
        if source.stat().st_mode & 0o100:
            mode = 0o755
        target.chmod(mode)


def build_packages(sources: Path, into: Path, *, epoch: int) -> None:
    """Write a source distribution and a wheel of each published distribution.

    The wheel is built from the source distribution, so that this is known to be complete. The
    build backend is that of this environment, in the version of hack/constraints.txt.

    Args:
        sources: A copy of the tree; builds write into it.
        into: The folder for the files.
        epoch: The time of all files in them, in seconds since 1970.

    Raises:
        Failed: A build failed, or took too long.
    """

    def run_backend(
        cmd: Sequence[str],
        cwd: str | None = None,
        extra_environ: Mapping[str, str] | None = None,
    ) -> None:
        environment = {**os.environ, **(extra_environ or {}), "SOURCE_DATE_EPOCH": str(epoch)}
        done = run(cmd, cwd=cwd, env=environment, umask=_UMASK)
        if done.returncode:
            output = (done.stdout + done.stderr).strip()
            raise Failed(f"the build failed:\n{output[-2000:]}")

    for each in published(sources):
        readme = sources / each.folder / "README.md"
        if readme.exists():
            page = with_absolute_links(readme.read_text(), each.folder)
            readme.write_text(page)

        unpacked = sources / "unpacked" / each.name
        try:
            source = ProjectBuilder(sources / each.folder, runner=run_backend)
            archive = Path(source.build("sdist", into))
            pack_again(archive, epoch=epoch)

            shutil.unpack_archive(archive, unpacked, filter="data")
            [root] = unpacked.iterdir()
            ProjectBuilder(root, runner=run_backend).build("wheel", into)
        except BuildBackendException as error:
            raise Failed(f"{each.name}: {error.exception}") from error


def with_absolute_links(page: str, folder: Path) -> str:
    """Return a README for the package index, which has no other file of the tree.

    Args:
        page: The README, in Markdown.
        folder: Its folder, relative to the tree.
    """

    def absolute(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder.as_posix(), link[1]))
        return f"]({_FILES}/{path})"

    parts = _CODE_BLOCK.split(page)
    # Every second part is a block of code.
    parts[::2] = [_RELATIVE_LINK.sub(absolute, prose) for prose in parts[::2]]
    return "".join(parts)


def pack_again(archive: Path, *, epoch: int) -> None:
    """Write a ``.tar.gz``, sorted, with one time for all files and without their owners.

    setuptools heeds SOURCE_DATE_EPOCH in wheels alone.
    """
    new = archive.with_name(f"{archive.name}.new")
    with (
        tarfile.open(archive) as old,
        new.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=epoch) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w", format=tarfile.PAX_FORMAT) as packed,
    ):
        for member in sorted(old.getmembers(), key=_name):
            member.mtime = epoch
            member.uid = 0
            member.gid = 0
            member.uname = ""
            member.gname = ""
            member.pax_headers = {}
            content = None
            if member.isfile():
                content = old.extractfile(member)
            packed.addfile(member, content)
    new.replace(archive)


def _name(member: tarfile.TarInfo) -> str:
    return member.name


def package_charts(sources: Path, into: Path, *, epoch: int) -> None:
    """Package each chart that can be installed, with its dependencies.

    Args:
        sources: A copy of the tree; dependencies are written into it.
        into: The folder for the files.
        epoch: The time of all files in them, in seconds since 1970.

    Raises:
        Failed: Helm failed.
        RuntimeError: There is no Helm, and it can't be built.
    """
    helm = builds.tool("helm")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}

    for folder, chart in charts(sources).items():
        if chart.get("type") == "library":
            continue

        steps: list[list[str | Path]] = []
        lock = sources / folder / "Chart.lock"
        is_locked = lock.exists()
        if chart.get("dependencies"):
            steps.append([helm, "dependency", "build", sources / folder])
        steps.append([helm, "package", sources / folder, "--destination", into])

        for step in steps:
            done = run(step, env=environment, umask=_UMASK)
            if done.returncode:
                raise Failed(f"{' '.join(map(str, step))}: {done.stderr.strip()[-2000:]}")
            # A lock that Helm has just written has the time of now in it.
            if not is_locked:
                lock.unlink(missing_ok=True)


def build_images(version: str, into: Path) -> None:
    """Write an archive of the image, and its bill of materials, for each architecture.

    Raises:
        Failed: There is no Docker engine, or a build failed.
        Hung: A build took too long.
    """
    tag = f"{IMAGE}:{version}"
    for architecture in ARCHITECTURES:
        with emulated(architecture), engine() as found:
            build_image(found, tag, architecture=architecture)
            saved = save_image(found, tag, architecture)
        shutil.copyfile(saved.archive, into / saved.archive.name)
        shutil.copyfile(saved.bill, into / saved.bill.name)


def write_checksums(folder: Path) -> None:
    """Write the SHA-256 of each file of a folder, for ``sha256sum --check``."""
    lines = []
    for file in sorted(folder.iterdir()):
        if file.name != CHECKSUMS:
            with file.open("rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").hexdigest()
            lines.append(f"{digest}  {file.name}\n")
    (folder / CHECKSUMS).write_text("".join(lines))
