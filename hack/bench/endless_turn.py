"""Run a program of an installation without the bound on requests in a turn of the event loop.

`endless_turn.py PROGRAM ARGUMENTS...`: callgrind makes the daemon some 30 times slower, so each
request alone would use up a turn, and the workers that wait for the next one would be counted: a
quarter more instructions than by itself.
"""

import math
import runpy
import sys

from syncer.workqueue import fair

fair.TURN_SECONDS = math.inf
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
