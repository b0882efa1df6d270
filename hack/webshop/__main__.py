"""Two clusters on this machine, the daemon between them, and a web shop to see it work.

Ctrl-C ends it and cleans up.
"""

import argparse
import asyncio
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from hack.realnode import outside
from hack.webshop.contexts import MOST, ContextsDemo
from hack.webshop.demo import Demo
from hack.webshop.fleet import FleetDemo
from hack.webshop.waiting import Failed, say
from syncer.api import SyncerError


def main() -> int:
    """Run the demo; the exit status is 0 if everything arrived."""
    parser = argparse.ArgumentParser(prog="hack/demo", description=__doc__)
    parser.add_argument(
        "--once", action="store_true", help="print the table when all has arrived, and end"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--node", action="store_true", help="real containers, on a real node (Linux, as root)"
    )
    where.add_argument(
        "--embedded", action="store_true", help="clusters in this process instead of real ones"
    )
    parser.add_argument(
        "--chart",
        action="store_true",
        help="with --node: by `helm install` of charts/virtual-cluster",
    )
    parser.add_argument(
        "--clusters",
        type=int,
        nargs="?",
        const=0,
        metavar="N",
        help="the two clusters alone, for a configuration of your own; or N clusters with one "
        "kubeconfig",
    )
    where.add_argument(
        "--fleet", type=int, metavar="N", help="N virtual clusters of one daemon; it ends by itself"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=60,
        metavar="SECONDS",
        help="how long arriving may take (60)",
    )
    options = parser.parse_args()
    alone = options.clusters is not None
    if options.chart and (not options.node or alone):
        parser.error("--chart needs --node, and takes no --clusters")
    if options.node and (reason := outside.why_not()):
        print(f"hack/demo: NO REAL NODE: {reason}", file=sys.stderr)
        return 1
    if options.clusters and (options.node or options.once or not 1 <= options.clusters <= MOST):
        parser.error(f"--clusters takes a number from 1 to {MOST}, without --node and --once")
    if options.fleet is not None and (options.fleet < 2 or alone):
        parser.error("--fleet needs two virtual clusters at least, and takes no --clusters")
    folder = Path(tempfile.mkdtemp(prefix="syncer-demo-"))
    demo: Demo | FleetDemo | ContextsDemo
    if options.fleet:
        demo = FleetDemo(folder, options.fleet, options.timeout)
    elif options.clusters:
        demo = ContextsDemo(folder, options.clusters, embedded=options.embedded)
    else:
        demo = Demo(
            folder,
            once=options.once,
            embedded=options.embedded,
            node=options.node,
            timeout=options.timeout,
            clusters_only=alone,
            chart=options.chart,
        )
    try:
        asyncio.run(_interruptible(demo))
    except (Failed, SyncerError) as failure:
        print(f"\nhack/demo: {failure}\nLeft for you to look at: {folder}", file=sys.stderr)
        return 1
    except asyncio.CancelledError:
        if options.once:
            say("stopped before all had arrived")
            status = 130
        else:
            say("ended; nothing is left running")
            status = 0
    except BrokenPipeError:  # of `hack/demo | head`: the reader has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    else:
        status = 0
    shutil.rmtree(folder)
    return status


async def _interruptible(demo: Demo | FleetDemo | ContextsDemo) -> None:
    """Run it; the first Ctrl-C ends it regularly, and later ones don't disturb that."""
    running = asyncio.ensure_future(demo.run())
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        if not running.cancelling():
            say("\nending …")
            running.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    await running


if __name__ == "__main__":
    sys.exit(main())
