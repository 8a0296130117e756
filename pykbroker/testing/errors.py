"""Errors of brokers in tests. Every message is one sentence that says what to do, where something can be done."""

from __future__ import annotations


class TestingError(Exception):
    """The base of all of them."""

    __test__ = False  # no test class of pytest, whatever its name


class BrokerFailed(TestingError):
    """The broker did not start, or ended by itself; the message is its own."""


class NoJournal(TestingError):
    """There is no journal of the broker."""


class BrokerNotRunning(TestingError):
    """The broker has not been started, or has been stopped."""
