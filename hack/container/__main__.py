"""The command ``hack/image``."""

import json
import sys

import click

from hack.bench.image import measured
from hack.bench.scene import fresh_planes
from hack.container.build import TAG, build, save
from hack.container.emulator import emulated
from hack.container.engine import engine
from hack.endings import interrupt_on_sigterm
from hack.realnode import archive, outside
from hack.realnode.inside import Failed
from hack.realnode.node_site import NodeSite

PLATFORMS = ("linux/amd64", "linux/arm64")


@click.command()
@click.option(
    "--base",
    metavar="IMAGE",
    default="",
    help="An image with Python, pip and venv. By default the Dockerfile's; where that can't be "
    "pulled, one of Debian's packages.",
)
@click.option("--tag", metavar="TAG", default=TAG, show_default=True, help="The image's name.")
@click.option(
    "--platform",
    type=click.Choice(PLATFORMS),
    default=f"linux/{archive.architecture()}",
    show_default=True,
    help="Another one than this machine's runs in an emulator, which root on Linux gets from "
    "Debian's packages.",
)
@click.option("--node", is_flag=True, help="Load it into the running node of hack/node, too.")
@click.option(
    "--measure",
    is_flag=True,
    help="Run it once between two real API servers, read-only, without capabilities and as "
    "another user: seconds until it is ready, and MB at rest. hack/bench/image has the median of "
    "several runs.",
)
def main(base: str, tag: str, platform: str, node: bool, measure: bool) -> None:
    """Build the container image of the daemon.

    Writes an archive that `docker load` and `hack/node load` take, with an SBOM beside it, to
    build/image.
    """
    architecture = platform.partition("/")[2]
    with emulated(architecture), engine() as found:
        build(found, tag, architecture=architecture, base=base)
        saved = save(found, tag, architecture)
        summary = saved.as_json()
        if measure:
            with fresh_planes() as planes:
                summary |= {
                    name: round(figure, 2) for name, figure in measured(found, tag, planes).items()
                }
    if node:
        outside.load(NodeSite.here(), [saved.archive])
    click.echo(json.dumps(summary))
    added = summary["added"]["compressed_bytes"]
    click.echo(
        f"{saved.tag}: {saved.compressed / 1e6:.1f} MB compressed, {added / 1e6:.1f} of it ours",
        err=True,
    )


if __name__ == "__main__":
    interrupt_on_sigterm()
    try:
        main()
    except (Failed, RuntimeError, OSError) as error:
        sys.exit(f"image: {error}")
