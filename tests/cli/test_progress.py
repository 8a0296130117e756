"""The bars of commands that take longer than a second: on a terminal, on standard error, and nowhere else."""

from __future__ import annotations

import io
import re
import sys
import time

import click
import pytest

from pykbroker.cli import progress as bars
from pykbroker.cli.progress import in_portions, progress, stages
from tests.cli.conftest import TIMEOUT_S
from tests.cli.terminal import Terminal


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal_of_a_test(monkeypatch: pytest.MonkeyPatch) -> FakeTerminal:
    """Standard error as a terminal, and bars that wait for no second."""
    stream = FakeTerminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(bars, "SHOWN_AFTER_S", 0)
    return stream


def shown(terminal: FakeTerminal, text: str) -> bool:
    deadline = time.monotonic() + TIMEOUT_S
    while text not in terminal.getvalue():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_a_step_that_takes_long_has_a_bar_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of_a_test(monkeypatch)
    with progress("Asking [brokers]", 7) as advance:
        assert shown(terminal, "Asking [brokers]")
        assert shown(terminal, "0/7")
        advance(3)
        assert shown(terminal, "3/7")
    assert terminal.getvalue().rstrip().endswith("\x1b[2K"), "the bar is wiped away"


def test_a_stage_is_named_and_gives_way_to_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of_a_test(monkeypatch)
    with stages(3) as under_way:
        under_way.begin("Connecting")
        assert shown(terminal, "Connecting")
        with under_way.others_write("left: a script", "Reading"):
            before = terminal.getvalue()
            assert before.rstrip().endswith("left: a script")
        assert shown(terminal, "Reading")
        assert shown(terminal, "2/3")


def test_what_goes_to_a_file_meanwhile_stays_out_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of_a_test(monkeypatch)
    file = io.StringIO()
    monkeypatch.setattr(sys, "stdout", file)
    with progress("Reading", 2) as advance:
        assert shown(terminal, "0/2")
        click.echo("a record")
        advance()
    assert file.getvalue() == "a record\n"


def test_nothing_is_drawn_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(bars, "SHOWN_AFTER_S", 0)
    monkeypatch.setattr(bars, "started_bar", lambda *_, **__: pytest.fail("a bar is drawn"))
    with progress("Asking", 1) as advance, stages(1) as under_way:
        under_way.begin("Waiting")
        with under_way.others_write("left: a script", "Reading"):
            advance()
    assert not stream.getvalue()


def test_bytes_are_passed_on_in_portions() -> None:
    told: list[int] = []
    add = in_portions(told.append)
    for _ in range(3):
        add(1 << 19)
    assert told == [1 << 20]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("doctor {bootstrap} --watch 3", "Looking at groups"),
        ("wait --bootstrap-server {bootstrap} --topic {topic} --timeout 3s", "Waiting"),
        ("diff --left {bootstrap} --right-start= -- sleep 1", "right: (starting a broker|reading what is there)"),
    ],
    ids=["doctor", "wait", "diff"],
)
def test_a_command_that_waits_says_what_for(bootstrap: str, group: str, arguments: str, text: str) -> None:
    with Terminal(arguments.format(bootstrap=bootstrap, topic=f"{group}-none").split()) as terminal:
        terminal.wait()
        assert re.search(text, terminal.received.decode())
        assert "━" not in terminal.text, "the bar is gone"


def test_diff_has_the_scripts_lines_below_its_name(bootstrap: str) -> None:
    with Terminal(["diff", "--left", bootstrap, "--right", bootstrap, "--", "echo", "a line"]) as terminal:
        terminal.wait()
        lines = [line for line in terminal.lines if line]
    assert [line for line in lines if "a line" in line] == [
        "left: echo 'a line'",
        "a line",
        "right: echo 'a line'",
        "a line",
    ]
