"""A rate limit that allows bursts, with a clock controlled by the test."""

import pytest

from syncer.token_bucket import TokenBucket


def test_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    bucket = TokenBucket(rate=10, burst=3, now=100.0)
    assert [round(bucket.take(100.0), 6) for _ in range(6)] == [0, 0, 0, 0.1, 0.2, 0.3]
    assert round(bucket.take(100.3), 6) == 0.1
    assert [round(bucket.take(200.0), 6) for _ in range(4)] == [0, 0, 0, 0.1]


def test_burst_is_one_at_least() -> None:
    bucket = TokenBucket(rate=2, burst=0, now=0.0)
    assert [bucket.take(0.0), bucket.take(0.0)] == [0, 0.5]


@pytest.mark.parametrize("rate", [1 / 300, 10.0])
def test_token_that_is_not_there_is_not_taken(rate: float) -> None:
    bucket = TokenBucket(rate=rate, burst=2, now=0.0)
    assert [bucket.take_now(0.0) for _ in range(9)] == [True, True, *[False] * 7]
    assert not bucket.take_now(0.99 / rate)
    assert [bucket.take_now(1.01 / rate) for _ in range(2)] == [True, False]


def test_token_that_is_given_back_can_be_taken_again() -> None:
    bucket = TokenBucket(rate=1, burst=1, now=0.0)
    assert bucket.take_now(0.0)
    bucket.give_back()
    assert [bucket.take_now(0.0) for _ in range(2)] == [True, False]
