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

from hack.webshop.demo import Demo
from hack.webshop.waiting import Failed, say
from syncer.api import SyncerError


def main() -> int:
    """Run the demo; the exit status is 0 if everything arrived."""
    parser = argparse.ArgumentParser(prog="hack/demo", description=__doc__)
    parser.add_argument("--once", action="store_true", help="print the table when all has arrived, and end")
    parser.add_argument("--embedded", action="store_true", help="clusters in this process instead of real ones")
    parser.add_argument("--clusters", action="store_true", help="the clusters alone, for a configuration of your own")
    parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS", help="how long arriving may take (60)")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="syncer-demo-"))
    demo = Demo(
        folder,
        once=options.once,
        embedded=options.embedded,
        timeout=options.timeout,
        clusters_only=options.clusters,
    )
    try:
        asyncio.run(_interruptible(demo))
    except (Failed, SyncerError) as failure:
        print(f"\nhack/demo: {failure}\nLeft for you to look at: {folder}", file=sys.stderr)
        return 1
    except asyncio.CancelledError:
        say("stopped before all had arrived" if demo.once else "ended; nothing is left running")
        status = 130 if demo.once else 0
    except BrokenPipeError:  # of `hack/demo | head`: the reader has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    else:
        status = 0
    shutil.rmtree(folder)
    return status


async def _interruptible(demo: Demo) -> None:
    """Run it; the first Ctrl-C ends it regularly, and later ones don't disturb that."""
    running, loop = asyncio.ensure_future(demo.run()), asyncio.get_running_loop()

    def interrupt() -> None:
        if not running.cancelling():
            say("\nending …")
            running.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    await running


if __name__ == "__main__":
    sys.exit(main())
