"""Text that takes as much memory as it is long, as it can't be compressed to half."""

import random
import string

LETTERS = string.ascii_letters + string.digits + "+/"


def noise(size: int, seed: object = 0) -> str:
    """Return so many characters, the same for the same seed."""
    return "".join(random.Random(f"{seed}").choices(LETTERS, k=size))
