"""The command ``hack/node``."""

import sys
from pathlib import Path

import click

from hack.realnode import outside
from hack.realnode.inside import Failed
from hack.realnode.node_site import NodeSite


@click.group()
def main() -> None:
    """Run a real Kubernetes node with its control plane, in namespaces of its own on this machine.

    Its network enforces NetworkPolicies.
    """


@main.command()
def up() -> None:
    """Start the node; nothing is done if it runs."""
    found = outside.up(NodeSite.here())
    click.echo(f"The node is ready. kubectl --kubeconfig {found['kubeconfig']} get pods -A")


@main.command()
def down() -> None:
    """End the node, and remove all that it made."""
    outside.down(NodeSite.here())


@main.command()
@click.argument("archives", nargs=-1, required=True, type=click.Path(path_type=Path))
def load(archives: tuple[Path, ...]) -> None:
    """Import image archives that `docker save` wrote."""
    outside.load(NodeSite.here(), archives)


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True)
def run(command: tuple[str, ...]) -> None:
    """Run a command where the node runs, such as `ctr` or `nft list ruleset`."""
    outside.inside(NodeSite.here(), command)


if __name__ == "__main__":
    try:
        main()
    except (Failed, RuntimeError, OSError) as error:
        sys.exit(f"node: {error}")
