"""Run a program of an installation without the bounds in seconds that callgrind distorts.

`without_bounds.py PROGRAM ARGUMENTS...`: callgrind makes the daemon some 30 times slower. So each
request alone would use up a turn of the event loop, and the workers that wait for the next one
would be counted: a quarter more instructions than by itself. And connections would be idle for so
long between requests that they are closed, and their handshakes would be counted again.
"""

import math
import runpy
import sys

from syncer.clusters import pool
from syncer.workqueue import fair

fair.TURN_SECONDS = math.inf
pool.SPARE_SECONDS = math.inf
pool.IDLE_SECONDS = math.inf
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
