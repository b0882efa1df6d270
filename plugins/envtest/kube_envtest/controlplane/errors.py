"""Errors that can occur before a test begins."""

from __future__ import annotations


class NotAvailable(Exception):
    """No real API server is available here, or not as configured; the message is a single line that
    says what to do.
    """


class StartFailed(Exception):
    """A program of a control plane ended or didn't become ready; the message has the last lines of
    its log.
    """
