"""The command ``hack/release``: check that all versions agree, then write a release's files."""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from hack.checkout import THIS
from hack.endings import interrupt_on_sigterm
from hack.realnode.inside import Failed
from hack.release_builds import (
    build_images,
    build_packages,
    commit_time,
    copy_sources,
    package_charts,
    write_checksums,
)
from hack.release_checks import findings, published


@click.command()
@click.argument("version", required=False, default="")
@click.option(
    "--into",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="An empty or a new folder. By default dist/VERSION, with --dry-run a temporary one.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Build all but the images, also of what is not committed yet. What the release itself "
    "settles is listed only: dates of changelogs, the commit, the tag. VERSION is that of "
    "setup.cfg by default.",
)
def main(version: str, into: Path | None, dry_run: bool) -> None:
    """Write all files of a release: packages, charts, images with their SBOMs, checksums.

    VERSION is such as 1.2.0 or 1.2.0-rc.1.
    """
    tree = THIS.folder
    if not version:
        if not dry_run:
            raise click.UsageError("VERSION is missing, such as 1.2.0")
        version = next(published(tree)).version

    found = findings(tree, version)
    blocking = [each for each in found if not (dry_run and each.is_pending)]
    if blocking:
        lines = "\n".join(f"  {each}" for each in blocking)
        raise Failed(f"{version} can't be released:\n{lines}")
    for each in found:
        click.echo(f"before the release: {each}", err=True)

    with TemporaryDirectory(prefix="vsyncer-release-") as temporary:
        target = into or (Path(temporary) / version if dry_run else tree / "dist" / version)
        if target.exists() and any(target.iterdir()):
            raise Failed(f"{target} is not empty. Remove it, or choose another folder by --into")

        _write(tree, version, target, Path(temporary), with_images=not dry_run)
        for file in sorted(target.iterdir()):
            click.echo(f"{file.stat().st_size:>12,}  {file.name}")
    if dry_run:
        click.echo("left out by --dry-run: the images and their SBOMs")
    else:
        click.echo(f"{version} is in {target}")


def _write(tree: Path, version: str, target: Path, temporary: Path, *, with_images: bool) -> None:
    """Write the files to the folder; it appears when all are there."""
    epoch = commit_time(tree)
    sources = temporary / "sources"
    copy_sources(tree, sources)

    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as unfinished:
        files = Path(unfinished) / "files"
        files.mkdir()
        _say("packages")
        build_packages(sources, files, epoch=epoch)
        _say("charts")
        package_charts(sources, files, epoch=epoch)
        if with_images:
            _say("images")
            build_images(version, files)
        write_checksums(files)

        if target.exists():
            target.rmdir()
        shutil.move(files, target)


def _say(text: str) -> None:
    click.echo(f"release: building {text}", err=True)


if __name__ == "__main__":
    interrupt_on_sigterm()
    try:
        main()
    except (Failed, RuntimeError, OSError) as error:
        sys.exit(f"release: {error}")
