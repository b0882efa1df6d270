"""What can go wrong before a test even begins."""

from __future__ import annotations


class NotAvailable(Exception):
    """No real API server can be had here, or not in the way asked for; the message is one line and says what to do."""


class StartFailed(Exception):
    """A program of a control plane ended or didn't get ready; the message has the last lines of its log."""
