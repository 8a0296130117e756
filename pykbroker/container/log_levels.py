"""Levels of the log in log4j's words: of all that pykbroker logs, and of some of its loggers."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Final

from pykbroker.config import ConfigurationError

LOG_LEVEL: Final = "KAFKA_LOG4J_ROOT_LOGLEVEL"
LOGGERS: Final = "KAFKA_LOG4J_LOGGERS"
_OURS: Final = "pykbroker"
_LEVELS: Final = {
    "ALL": logging.DEBUG,
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL,
}


def log_levels(variables: Mapping[str, str]) -> dict[str, int]:
    """The level of each logger that variables name. Raises ConfigurationError."""
    levels = {}
    if variables.get(LOG_LEVEL, "").strip():
        levels[_OURS] = _level(LOG_LEVEL, variables[LOG_LEVEL])
    for name, text in _entries(variables.get(LOGGERS, "")):
        if name.startswith(_OURS):
            levels[name] = _level(LOGGERS, text)
    return levels


def names_other_loggers(text: str) -> bool:
    """Tell whether loggers of Kafka's are named, which are not here."""
    return any(not name.startswith(_OURS) for name, _ in _entries(text))


def _entries(text: str) -> Iterator[tuple[str, str]]:
    for entry in filter(None, text.split(",")):
        name, _, level = entry.partition("=")
        yield name.strip(), level


def _level(variable: str, text: str) -> int:
    word = text.strip().upper()
    if word not in _LEVELS:
        raise ConfigurationError(f"{variable} has the log level {word!r}; there are {', '.join(_LEVELS)}")
    return _LEVELS[word]
