"""Tables for scripts and for people."""

import io

import pytest

from pykbroker.cli import output
from pykbroker.cli.output import Column, plain_table, print_table


def test_columns_are_as_wide_as_they_must_and_lines_end_without_spaces() -> None:
    lines = plain_table([Column("A", 4), Column("LONG TITLE", 2), Column("C")], [["abcdefg", "-", ""], ["x", "y", "z"]])
    assert lines == [
        "A       LONG TITLE C",
        "abcdefg -",
        "x       y          z",
    ]


def test_a_pipe_gets_the_plain_form_and_a_terminal_the_drawn_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    print_table([Column("NAME", 6)], [["[bold]x"]], apart=True)
    assert capsys.readouterr().out == "\nNAME\n[bold]x\n"

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(output.sys, "stdout", terminal)
    print_table([Column("NAME", 6)], [["[bold]x"]], apart=True)
    assert "NAME" in terminal.getvalue()
    assert "[bold]x" in terminal.getvalue()
    assert "──" in terminal.getvalue()
