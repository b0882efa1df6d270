"""A token bucket: a rate limit that allows bursts. Pure: the time is an argument."""


class TokenBucket:
    """A bucket of up to ``burst`` tokens, at least 1, that gains ``rate`` tokens per second; full
    at first.

    ``now`` is in seconds, on any clock.
    """

    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, *, rate: float, burst: float, now: float) -> None:
        self._rate, self._burst = rate, max(float(burst), 1.0)
        self._tokens, self._at = self._burst, now

    def take(self, now: float) -> float:
        """Take a token, possibly a future one, and return the seconds until it is available."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate) - 1.0
        self._at = now
        return max(0.0, -self._tokens / self._rate)

    def take_now(self, now: float) -> bool:
        """Take a token if there is one; return False if there is none."""
        is_there = not self.take(now)
        if not is_there:
            self.give_back()
        return is_there

    def give_back(self) -> None:
        """Return a token that was not used."""
        self._tokens += 1.0
