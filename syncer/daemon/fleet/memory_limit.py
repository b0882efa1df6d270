"""The memory that this process may take, if it runs in a container with a limit."""

from pathlib import Path

#: Where a container sees the limit of its control group, of version 2 and 1.
FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
#: As version 1 shows no limit: this many bytes or more.
_NONE = 1 << 60


def memory_limit() -> int:
    """Return the limit in bytes; 0 if there is none."""
    for file in FILES:
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        if not text.isdigit():  # "max"
            return 0
        limit = int(text)
        return limit if limit < _NONE else 0
    return 0
