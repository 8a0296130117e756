"""A line of the log as JSON, whatever the record holds."""

from __future__ import annotations

import json
import logging
import math
from io import StringIO
from typing import Any

import pytest

from pykbroker.server.runtime.json_lines import JsonFormatter, json_line


class Log:
    """A logger whose lines are JSON."""

    def __init__(self) -> None:
        self.text = StringIO()
        handler = logging.StreamHandler(self.text)
        handler.setFormatter(JsonFormatter())
        self.logger = logging.Logger("tests.json")
        self.logger.addHandler(handler)

    @property
    def line(self) -> dict[str, Any]:
        """The one line that there is."""
        (line,) = self.text.getvalue().splitlines()
        assert line.isascii()
        parsed = json.loads(line, parse_constant=_no_json)
        assert isinstance(parsed, dict)
        return parsed


def _no_json(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


@pytest.fixture
def log() -> Log:
    return Log()


def test_a_line_has_time_level_logger_and_message(log: Log) -> None:
    log.logger.warning("%d partitions are offline", 3)
    line = log.line
    time = line.pop("time")
    assert line == {"level": "WARN", "logger": "tests.json", "message": "3 partitions are offline"}
    assert len(time) == len("2026-01-01T00:00:00.000Z")
    assert time.endswith("Z")


@pytest.mark.parametrize(
    "message", ['"quoted"', "two\nlines", "a \\ back", "\x00\x1b[31m", "\u2028", "caf\u00e9 \U0001f600", "", "{}"]
)
def test_any_message_comes_back_as_it_was(log: Log, message: str) -> None:
    log.logger.info("%s", message)
    assert log.line["message"] == message


def test_a_text_that_is_no_unicode_is_escaped(log: Log) -> None:
    log.logger.info("a file %s", "\udcff")
    assert log.line["message"] == "a file \\udcff"


def test_a_message_whose_arguments_do_not_fit_is_a_line_as_well(log: Log) -> None:
    log.logger.info("%d partitions of %s", "three")
    assert log.line["message"] == "%d partitions of %s ('three',)"


def test_fields_stand_apart_from_what_each_record_has(log: Log) -> None:
    fields = {"topic": "orders", "lag": 3, "ratio": math.nan, "is_new": True, "owner": None, "path": StringIO}
    log.logger.info("behind", extra=fields)
    told = log.line["fields"]
    assert told.pop("path").startswith("<class")
    assert told == {"topic": "orders", "lag": 3, "ratio": "nan", "is_new": True, "owner": None}


def test_an_exception_is_in_the_line(log: Log) -> None:
    try:
        raise ValueError("a \ud800 value")
    except ValueError:
        log.logger.exception("it failed")
    exception = log.line["exception"]
    assert exception.startswith("Traceback (most recent call last):\n")
    assert exception.endswith("ValueError: a \\ud800 value")


def test_a_line_without_a_record_looks_the_same() -> None:
    line = json.loads(json_line("INFO", "tests", "a\nb", node=1))
    assert list(line) == ["time", "level", "logger", "message", "fields"]
    assert (line["message"], line["fields"]) == ("a\nb", {"node": 1})
