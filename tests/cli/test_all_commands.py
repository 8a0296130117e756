"""What holds for every command: help with examples, suggestions, JSON, and completion that is quick."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from compat_tests.installed import PYTHONPATH
from pykbroker.cli.main import main
from tests.cli.conftest import ROOT, Outcome

Call = Callable[..., Outcome]
CONTEXT = click.Context(main, info_name="pykbroker")
NAMES = main.list_commands(CONTEXT)
MADE_FROM_OPERATIONS = ("ctl",)
"""Groups whose words are made from a list of operations, which says what each does."""


def commands(names: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Return the words of each command, and of each word below it."""
    command = found(names)
    if isinstance(command, click.Group):
        for name in command.list_commands(CONTEXT):
            if names[:1] not in [(each,) for each in MADE_FROM_OPERATIONS]:
                yield (*names, name)
                yield from commands((*names, name))


def found(names: tuple[str, ...]) -> click.Command:
    command: click.Command = main
    for name in names:
        assert isinstance(command, click.Group)
        inner = command.get_command(CONTEXT, name)
        assert inner is not None
        command = inner
    return command


COMMANDS = [" ".join(names) for names in commands()]


@pytest.mark.parametrize("words", COMMANDS)
def test_help_says_what_a_command_does_and_has_examples(words: str) -> None:
    """click keeps the names of a command's help option from its first call: whoever calls one by itself, and not by
    `main`, leaves it without `-h` in this process.
    """
    for flag in ("--help", "-h"):
        shown = CliRunner().invoke(main, [*words.split(), flag])
        assert shown.exit_code == 0, shown.output
        assert f"Usage: pykbroker {words}" in shown.stdout.replace("Usage: main", "Usage: pykbroker")
        assert "Examples:" in shown.stdout
        assert f"pykbroker {words}" in shown.stdout.split("Examples:")[1]


def test_the_page_about_commands_has_all_of_them_with_their_words() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|([^|]*)\|", (ROOT / "docs" / "commands.md").read_text(), re.MULTILINE)
    documented = {name: sorted(re.findall(r"`([a-z-]+)`", words)) for name, words in rows}
    for name in NAMES:
        command = found((name,))
        words = command.list_commands(CONTEXT) if isinstance(command, click.Group) else _choices(command)
        assert documented[name] == sorted(words)


def _choices(command: click.Command) -> list[str]:
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    return [choice for each in arguments if isinstance(each.type, click.Choice) for choice in each.type.choices]


@pytest.mark.parametrize("group", [words for words in COMMANDS if isinstance(found(tuple(words.split())), click.Group)])
def test_a_misspelled_word_is_answered_with_the_one_that_was_meant(group: str) -> None:
    names = group.split()
    command = found(tuple(names))
    assert isinstance(command, click.Group)
    word = command.list_commands(CONTEXT)[0]
    missed = CliRunner().invoke(main, [*names, f"{word}x"])
    assert missed.exit_code in (1, 2)
    assert f"No such command '{word}x'. Did you mean '{word}'" in missed.stderr


def test_json_is_one_flag_of_all_that_list(call: Call, topic: str, tmp_path: Path) -> None:
    call(f"topics create {topic}")
    call(f"groups reset-offsets {topic} --topic {topic} --to-earliest --yes")
    for words in (
        "topics list",
        f"topics describe {topic}",
        "topics --list",
        "groups list",
        f"groups describe {topic}",
        f"groups describe {topic} --members",
        f"groups describe {topic} --state",
        "groups --list",
        "share-groups list",
        "share-groups describe",
        "share-groups --list",
        "streams-groups list",
        "streams-groups describe --members",
        "streams-groups --list",
        f"groups --describe --group {topic}",
        f"groups reset-offsets {topic} --to-earliest --dry-run",
        "configs describe topic",
        f"configs describe topic {topic} --all",
        "configs describe broker --all",
        "configs describe broker --default",
        "configs describe user",
        f"configs --describe --topic {topic}",
        "quotas list",
        "quotas describe --user alice",
        "quotas --describe",
        "users list",
        "users --describe",
        "transactions list",
        f"transactions producers --topic {topic} --partition 0",
        f"transactions find-hanging --topic {topic}",
    ):
        listed = call(f"{words} --json")
        assert (listed.code, listed.err) == (0, ""), (words, listed)
        entries = json.loads(listed.out)
        assert isinstance(entries, list), words
        assert all(isinstance(each, dict) for each in entries), words
        assert len(entries) == 0 or len(listed.lines) == len(entries), words


@pytest.mark.parametrize("name", NAMES)
def test_completion_of_a_command_starts_no_loop_and_draws_nothing(name: str) -> None:
    script = "import sys, pykbroker.cli.main as m\ntry:\n m.main(prog_name='pykbroker')\nexcept SystemExit: pass\n"
    script += "print(sorted({'trio', 'rich', 'pyspark'} & set(sys.modules)))"
    environment = os.environ | {
        "_PYKBROKER_COMPLETE": "bash_complete",
        "COMP_WORDS": f"pykbroker {name} --",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=ROOT, capture_output=True, check=True, text=True
    )
    *completed, imported = done.stdout.splitlines()
    assert imported == "[]"
    assert "plain,--help" in completed


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A directory for PATH, in which `pykbroker` is."""
    script = tmp_path / "pykbroker"
    script.write_text(f"#!{sys.executable}\nfrom pykbroker.cli.main import main\n\nmain()\n")
    script.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("pykbroker gro", ["groups"]),
        ("pykbroker groups d", ["describe", "delete", "delete-offsets"]),
        ("pykbroker groups describe --lag", ["--lag-above"]),
        ("pykbroker topics --under-rep", ["--under-replicated-partitions"]),
        ("pykbroker spark a", ["archive", "audit"]),
        ("pykbroker completion ", ["bash", "zsh", "fish"]),
        ("pykbroker groups nonsense", []),
    ],
)
def test_bash_completes_commands_words_and_options(program: Path, line: str, completed: list[str]) -> None:
    words = line.split(" ")
    script = (
        'eval "$(pykbroker completion bash)"; complete -p pykbroker >&2\n'
        f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}\n"
        '_pykbroker_completion pykbroker; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environment = os.environ | {"PATH": f"{program}:{os.environ['PATH']}", "PYTHONPATH": PYTHONPATH}
    done = subprocess.run(["bash", "--norc", "-c", script], env=environment, capture_output=True, check=True, text=True)
    assert done.stdout.split() == completed
    assert "-F _pykbroker_completion pykbroker" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_calls_pykbroker(shell: str) -> None:
    printed = CliRunner().invoke(main, ["completion", shell])
    assert printed.exit_code == 0
    assert f"_PYKBROKER_COMPLETE={shell}_complete" in printed.stdout


def test_a_shell_that_is_not_known_is_one_line() -> None:
    refused = CliRunner().invoke(main, ["completion", "tcsh"])
    assert refused.exit_code == 1
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in refused.stderr
    assert refused.stderr.count("\n") == 1
