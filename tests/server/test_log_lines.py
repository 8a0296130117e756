"""What clients can make a broker write into its log is bounded."""

from __future__ import annotations

import logging
from io import StringIO

import pytest

from pykbroker.server.runtime.log_lines import RepetitionFilter, write_log_to

PERIOD_MS = 10_000
LIMIT = 30


class Log:
    """A logger behind the filter, at times of the test's choice."""

    def __init__(self) -> None:
        self.now_s = 1_700_000_000.0
        self.text = StringIO()
        handler = logging.StreamHandler(self.text)
        handler.addFilter(self._set_time)
        handler.addFilter(RepetitionFilter(limit=LIMIT, limit_of_errors=100, period_ms=PERIOD_MS))
        self.logger = logging.Logger("test")
        self.logger.addHandler(handler)

    def _set_time(self, record: logging.LogRecord) -> bool:
        record.created = self.now_s
        return True

    @property
    def lines(self) -> list[str]:
        return self.text.getvalue().splitlines()


@pytest.fixture
def log() -> Log:
    return Log()


def test_a_statement_that_says_the_same_again_and_again_is_silent_after_a_while(log: Log) -> None:
    for i in range(1000):
        log.logger.warning("an envelope of %s is refused", i)
        log.now_s += 0.001
    assert len(log.lines) == LIMIT
    log.now_s += PERIOD_MS / 1000
    log.logger.warning("another statement")
    for _ in range(2):
        log.logger.warning("an envelope of nobody is refused")
    assert log.lines[LIMIT] == "another statement"


def test_the_next_line_tells_how_many_were_left_out(log: Log) -> None:
    for i in range(2 * LIMIT):
        if i == 2 * LIMIT - 1:
            log.now_s += PERIOD_MS / 1000
        log.logger.info("vote of node %d", i)
    assert log.lines[-1] == f"vote of node {2 * LIMIT - 1} ({LIMIT - 1} similar lines were left out before)"


def test_errors_of_the_node_itself_have_more_room_than_failed_requests(log: Log) -> None:
    for i in range(90):
        log.logger.error("the log of t-%d is offline", i)
        try:
            raise ValueError
        except ValueError:
            log.logger.exception("request failed")
    assert len([line for line in log.lines if "offline" in line]) == 90
    assert len([line for line in log.lines if line == "request failed"]) == LIMIT


def test_a_clock_that_is_set_back_silences_nothing(log: Log) -> None:
    for _ in range(2 * LIMIT):
        log.now_s -= 3600
        log.logger.info("x")
    assert len(log.lines) == 2 * LIMIT


def test_the_log_of_every_command_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    root, text = logging.getLogger(), StringIO()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    write_log_to(text)
    for i in range(1000):
        logging.getLogger("pykbroker.api.envelope").warning("an envelope of %d is refused", i)
    assert 0 < len(text.getvalue().splitlines()) < 100
