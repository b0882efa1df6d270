"""The command ``hack/conformance``."""

import fcntl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click

from hack.endings import interrupt_on_sigterm
from hack.realnode import builds, outside
from hack.realnode.inside import Failed
from hack.realnode.node_site import ROOT, NodeSite
from hack.realnode.virtual import VirtualCluster
from hack.suite import images, runner, table
from hack.suite.cases import CONFORMANCE, NETWORK_POLICIES, BadChoice, chosen
from hack.suite.results import Results

#: The daemon's configuration: a tenant who is trusted with all that the tests do in their own
#: cluster, such as pods in the host's network.
_SECTIONS = {
    "sync": {
        "toHost": {
            "pods": {"podSecurity": "privileged", "allowNodeName": True},
            "podTokens": {"nameNode": True},
        },
        "fromHost": {"nodes": {"enabled": True}},
    },
}


@click.command()
@click.option(
    "--focus",
    default="",
    metavar="SIG-OR-REGEX",
    help="Only tests of a sig, or with this in their name.",
)
@click.option(
    "--shard", default="1/1", metavar="I/N", help="Only the I-th of N parts of the tests."
)
@click.option(
    "--resume",
    is_flag=True,
    help="Only tests that have no result yet; otherwise the chosen run again.",
)
@click.option(
    "--against",
    type=click.Choice(["host", "virtual", "both"]),
    default="both",
    show_default=True,
    help="The node's own cluster, a virtual cluster on it, or the one after the other.",
)
@click.option(
    "--processes", default=8, show_default=True, help="Processes of tests that may run together."
)
@click.option(
    "--results",
    default=ROOT / "build" / "conformance",
    type=click.Path(path_type=Path),
    help="The folder of results; build/conformance by default.",
)
@click.option(
    "--network-policies",
    is_flag=True,
    help="The tests of NetworkPolicies in their place: of the node's network, so against the host "
    "alone.",
)
@click.option(
    "--scheduler",
    is_flag=True,
    help="The virtual cluster with a scheduler of its own; its results are apart, in the folder "
    "scheduler.",
)
@click.option("--keep", is_flag=True, help="Leave the node running, for the next run.")
def main(
    focus: str,
    shard: str,
    resume: bool,
    against: str,
    processes: int,
    results: Path,
    network_policies: bool,
    scheduler: bool,
    keep: bool,
) -> None:
    """Run Kubernetes' conformance tests against a real node on this machine.

    The first run builds the tests and their images, which takes some 15 minutes of a core. All
    tests take about an hour on each side.
    """
    interrupt_on_sigterm()
    if reason := outside.why_not():
        raise Failed(reason)
    if network_policies:
        results = results / "network-policies"
        against = "host"
    if scheduler:
        results = results / "scheduler"
        against = "virtual"
    results = results.resolve()
    results.mkdir(parents=True, exist_ok=True)
    everything = runner.all_cases(NETWORK_POLICIES if network_policies else CONFORMANCE)
    cases = chosen(everything, focus, shard)
    sides = {side: Results(results, side) for side in ("host", "virtual")}
    builds.BINARIES.mkdir(exist_ok=True)
    site = NodeSite.here()
    _lock = locked(builds.BINARIES / "suite.lock")
    ran_before = outside.pid_of(site) is not None
    try:
        _prepare(site)
        for side in sides if against == "both" else (against,):
            left = [case for case in cases if not resume or case not in sides[side]]
            sides[side].forget(left)
            if left:
                with _cluster(side, site, results, scheduler=scheduler) as kubeconfig:
                    runner.Runner(kubeconfig, sides[side], results, processes, _log).run(left)
    finally:
        if not keep and not ran_before:
            outside.down(site)
    reported = [side for side in sides.values() if any(case in side for case in everything)]
    text = table.report(
        [case for case in everything if any(case in side for side in reported)],
        reported,
        table.known_reasons(),
    )
    (results / "report.md").write_text(text)
    click.echo(text)


def locked(path: Path) -> IO[str]:
    """Return a lock file that is held until it is closed, as a checkout has a single node.

    Raises:
        Failed: Another run holds it.
    """
    path.parent.mkdir(exist_ok=True)
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise Failed(
            "hack/conformance runs already in this checkout, and they would share a node"
        ) from None
    return file


@contextmanager
def _cluster(side: str, site: NodeSite, results: Path, *, scheduler: bool) -> Iterator[Path]:
    """Yield the kubeconfig of a side's administrator; the virtual cluster runs only meanwhile."""
    if side == "host":
        yield site.folder / "admin.kubeconfig"
    else:
        folder = results / "daemon"
        folder.mkdir(exist_ok=True)
        virtual = VirtualCluster(site, folder, _SECTIONS, scheduler=scheduler)
        with virtual.running():
            yield virtual.kubeconfig


def _prepare(site: NodeSite) -> None:
    """Start the node, and load the tests' images into it."""
    outside.up(site)
    loaded = site.folder / "suite-images"
    archive = site.folder / "suite.tar"
    if not loaded.exists():
        images.write_images(archive)
        outside.load(site, [archive])
        archive.unlink()
        loaded.touch()


def _log(text: str) -> None:
    print(f"conformance: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main()
    except (BadChoice, Failed, RuntimeError, OSError) as error:
        sys.exit(f"conformance: {error}")
