"""Commands of hack/ end what they have started."""

import signal

import pytest

from hack.endings import uninterrupted


def test_interrupt_while_a_process_is_started_comes_once_it_can_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.default_int_handler)
    steps = []
    try:
        with uninterrupted():
            signal.raise_signal(signal.SIGTERM)
            steps.append("started")
    except KeyboardInterrupt:
        steps.append("interrupted")
    assert steps == ["started", "interrupted"]
    assert signal.signal(signal.SIGTERM, signal.SIG_DFL) == signal.SIG_DFL


def test_block_without_a_signal_ends_as_usual() -> None:
    former = signal.getsignal(signal.SIGINT)
    with uninterrupted():
        pass
    assert signal.getsignal(signal.SIGINT) == former
