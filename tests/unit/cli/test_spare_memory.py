"""The daemon's process gives back the memory of large texts."""

import subprocess
import sys

PROGRAM = """\
from pathlib import Path
from syncer.cli.run import spare_memory

def resident():
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) << 10

spare_memory()
bytearray(20 << 20)
before, kept, texts = resident(), [], []
for _ in range(40):
    texts.append(b"x" * (700 << 10))
    kept.append(b"y" * 4000)
texts.clear()
print(resident() - before)
"""


def test_large_texts_between_small_ones_leave_no_holes() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=600)
    assert int(done.stdout) < 2 << 20, "of 28 MB"
