"""The loggers of this process by Kafka's names of levels: what a start sets, and what clients read and change.

A logger that does not exist is never made, since names come from clients. A package, such as `pykbroker.raft`, exists
as soon as one of its modules has a logger. `root` is the logger above all others. Not here: how a line
looks (`log_lines`).
"""

from __future__ import annotations

import logging
from types import MappingProxyType
from typing import Final

ROOT: Final = "root"
TRACE: Final = 5

LEVELS: Final = MappingProxyType(
    {
        "TRACE": TRACE,
        "DEBUG": logging.DEBUG,
        "INFO": logging.INFO,
        "WARN": logging.WARNING,
        "ERROR": logging.ERROR,
        "FATAL": logging.CRITICAL,
    }
)
"""Kafka's levels, from the one that shows most."""


def logger_names() -> list[str]:
    """All loggers there are, the root first and the others by name."""
    return [ROOT, *sorted(logging.root.manager.loggerDict.copy())]


def has_logger(name: str) -> bool:
    return name == ROOT or name in logging.root.manager.loggerDict


def level_of(name: str) -> str:
    """The level in force at a logger that exists, its own or that of the next one above it."""
    return level_name(_logger(name).getEffectiveLevel())


def level_name(number: int) -> str:
    """Kafka's name for a level; one that stands between two of Kafka's counts as the lower one."""
    return next((name for name, each in reversed(list(LEVELS.items())) if each <= number), "TRACE")


def set_level(name: str, level: str | None) -> None:
    """Set the level of a logger; None takes it away, so that the next logger above counts."""
    _logger(name).setLevel(logging.NOTSET if level is None else LEVELS[level])


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)
