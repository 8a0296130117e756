"""Examples in `--help`: each is a command line that the commands' parsers take."""

import shlex
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from pykbroker.cli.examples import command_lines, examples
from pykbroker.cli.main import main


def commands(group: click.Group, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield (*names, name), command
            if isinstance(command, click.Group):
                yield from commands(command, (*names, name))


def pieces(line: str) -> Iterator[list[str]]:
    """Each command of a pipe, as the shell takes it apart."""
    words = shlex.split(line)
    while words:
        end = words.index("|") if "|" in words else len(words)
        yield words[:end]
        words = words[end + 1 :]


def parse(words: list[str]) -> None:
    """Raise click's errors for words that are no command line of `pykbroker`."""
    command: click.Command = main
    context = None
    while True:
        name, *words = words
        context = command.make_context(name, words, parent=context)
        if not isinstance(command, click.Group):
            return
        words = [*context._protected_args, *context.args]
        if not words:  # the flags of Kafka's tool
            return
        found = command.get_command(context, words[0])
        assert found is not None, words[0]
        command = found


EXAMPLES = [
    pytest.param(names, line, id=line)
    for names, command in commands(main)
    if command.epilog
    for line in command_lines(command.epilog)
]


def test_there_are_examples_of_both_directions() -> None:
    assert {names for names, _ in (each.values for each in EXAMPLES)} >= {("consume",), ("produce",)}


@pytest.mark.parametrize(("names", "line"), EXAMPLES)
def test_an_example_is_a_command_line(names: tuple[str, ...], line: str) -> None:
    ours = [words for words in pieces(line) if words[0] == "pykbroker"]
    assert any(tuple(words[1 : 1 + len(names)]) == names for words in ours)
    for words in ours:
        parse(words)


@pytest.mark.parametrize("line", ["pykbroker consume --topik t", "pykbroker produce --rate much --topic t"])
def test_an_example_that_the_parser_refuses_is_found(line: str) -> None:
    with pytest.raises(click.ClickException):
        parse(line.split())


def test_help_shows_examples_as_they_were_written() -> None:
    line = f"pykbroker consume --topic {'t' * 150} -e"
    command = click.Command("it", epilog=examples(("read a topic", line), ("and once more", "pykbroker consume")))
    shown = CliRunner().invoke(command, ["--help"]).output
    assert f"  Examples:\n\n    # read a topic\n    {line}\n\n    # and once more\n    pykbroker consume\n" in shown
