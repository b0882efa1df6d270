"""Run another program that ends when the process that started it ends, even by SIGKILL.

A separate program rather than a `preexec_fn`, which would run between fork and exec of a process
with threads, where Python may not run safely; Python 3.12 warns of it.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h; survives exec


def main() -> None:
    """Run.

    Usage: launch.py PARENT-PID DESCRIPTOR PROGRAM [ARGUMENT...]. Closes the descriptor once bound
    to the parent. A program without a slash is searched in PATH, as a shell does.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the process that started this one is gone")
    os.close(int(sys.argv[2]))
    os.execvp(sys.argv[3], sys.argv[3:])


if __name__ == "__main__":
    main()
