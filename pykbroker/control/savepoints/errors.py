"""Errors of savepoints and forks. Every message is one clear line."""

from __future__ import annotations


class SavepointError(ValueError):
    """The base of all of them."""


class SavepointRefused(SavepointError):
    """The node cannot be copied as it is, or a savepoint does not fit where it is to begin."""


class InvalidSavepoint(SavepointError):
    """The file is no savepoint, is damaged or cut off, or comes from a later version."""


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())
