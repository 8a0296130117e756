"""Errors of brokers in tests. Every message is one sentence that says what to do, where something can be done."""

from __future__ import annotations

from typing import Any


class TestingError(Exception):
    """The base of all of them."""

    __test__ = False  # no test class of pytest, whatever its name


class BrokerFailed(TestingError):
    """The broker did not start, or ended by itself; the message is its own."""


class BrokerNotRunning(TestingError):
    """The broker has not been started, or has been stopped."""


class NotOffered(TestingError):
    """The call needs a broker of pykbroker in this process, and this is another one."""


def first_of(error: BaseException) -> Any:
    """Return the first error of a group that is none itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
