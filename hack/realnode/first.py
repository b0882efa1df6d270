"""The first process in a node's namespaces: it runs the node, and reaps the orphans of containers.

When it ends, the kernel ends all others with it.
"""

import os
import signal
import subprocess
import sys


def main() -> int:
    """Run the node until it ends or SIGTERM arrives; return its exit status."""
    child = subprocess.Popen([sys.executable, "-m", "hack.realnode.inside", *sys.argv[1:]])
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child.pid, signal.SIGTERM))
    while True:
        try:
            pid, status = os.wait()
        except InterruptedError:
            continue
        if pid == child.pid:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
