"""The bar that a terminal shows while logs are opened: there from the first figures to the last, and gone."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pykbroker.cli.loading_bar import loading_bar
from pykbroker.server.logs.log_loading import LoadProgress
from pykbroker.server.runtime.log_lines import write_log_to


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def standard_error_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", stream)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    write_log_to(stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_bar_shows_how_much_is_checked_and_log_lines_go_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with standard_error_on_a_terminal(monkeypatch) as terminal, loading_bar(terminal) as on_loading:
        assert on_loading is not None
        on_loading(LoadProgress(logs=6, logs_opened=2, bytes_to_check=2_000_000_000, bytes_checked=500_000_000))
        assert "opened 2 of 6 logs, 500 MB checked, 1,500 MB to check" in terminal.getvalue()
        logging.getLogger("somebody").warning("in the middle of it")
        on_loading(LoadProgress(logs=6, logs_opened=6, bytes_to_check=2_000_000_000, bytes_checked=2_000_000_000))
        shown = terminal.getvalue()
        assert "WARNING somebody in the middle of it" in shown
        assert sys.stderr is terminal
        logging.getLogger("somebody").warning("later")
        assert terminal.getvalue()[len(shown) :].endswith("WARNING somebody later\n")


def test_a_start_that_is_broken_off_leaves_the_terminal_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    with standard_error_on_a_terminal(monkeypatch) as terminal:
        with loading_bar(terminal) as on_loading:
            assert on_loading is not None
            on_loading(LoadProgress(logs=10_000, logs_opened=7, bytes_to_check=0, bytes_checked=0))
            assert "opened 7 of 10000 logs" in terminal.getvalue()
        assert sys.stderr is terminal
        assert terminal.getvalue().rstrip().endswith("\x1b[2K"), "the bar is wiped away"


def test_nobody_is_told_where_nobody_watches() -> None:
    with loading_bar(io.StringIO()) as on_loading:
        assert on_loading is None
