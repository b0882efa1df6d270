"""Become another program that ends when the process which started it ends, even by SIGKILL.

A program of its own and not a `preexec_fn`: that one runs between fork and exec of a process with threads, where
Python may not run safely, and Python 3.12 warns of it.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h; kept over exec


def main() -> None:
    """Usage: launch.py PARENT-PID DESCRIPTOR PROGRAM [ARGUMENT...]; closes the descriptor when bound to the parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the process that started this one is gone")
    os.close(int(sys.argv[2]))
    os.execv(sys.argv[3], sys.argv[3:])


if __name__ == "__main__":
    main()
