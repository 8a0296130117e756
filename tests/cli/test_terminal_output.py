"""What commands print on terminals of any width, without colours, into closed pipes; names that are not harmless."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.cli.conftest import PYKBROKER, ROOT, TIMEOUT_S, Outcome
from tests.cli.terminals import at_terminal

Call = Callable[..., Outcome]
ESCAPED = "red\\x1b[31m"
EVIL = "red\x1b[31m"


@pytest.fixture
def group(call: Call, topic: str) -> str:
    """A group with a committed offset, whose name takes a terminal's attention."""
    call(f"topics create {topic} --partitions 2")
    group = f"{topic}-{EVIL}"
    assert call(f"groups reset-offsets --topic {topic} --to-earliest --yes", group).code == 0
    return group


LISTS = [
    "topics list",
    "topics describe",
    "brokers list",
    "brokers describe",
    "quorum describe",
    "quorum replication",
    "log-dirs describe",
    "log-dirs describe --by-topic",
    "reassign list",
    "features describe",
    "features version-mapping",
    "offsets list",
    "apis",
    "groups list",
    "groups describe",
    "configs describe broker --all",
    "transactions list",
    "users list",
    "quotas list",
    "elect-leaders --all-topic-partitions",
    "kafka",
]


def _of(line: str, bootstrap: str) -> list[str]:
    return line.split() if line == "kafka" else [*line.split(), "--bootstrap-server", bootstrap]


@pytest.mark.parametrize("line", LISTS)
def test_each_list_is_drawn_at_any_width_without_colours(bootstrap: str, group: str, line: str) -> None:
    for columns in (60, 20):
        code, shown = at_terminal(_of(line, bootstrap), columns=columns, NO_COLOR="1")
        assert code == 0, shown
        assert "Traceback" not in shown
        assert "\x1b[3" not in shown
        assert EVIL not in shown
        assert "…" not in shown, "what does not fit is not cut"


@pytest.mark.parametrize("columns", [200, 90, 40, 20, 1])
def test_no_terminal_is_too_narrow_for_a_table(bootstrap: str, topic: str, group: str, columns: int) -> None:
    line = ["groups", "describe", group, "--bootstrap-server", bootstrap]
    code, shown = at_terminal(line, columns=columns, NO_COLOR="1")
    assert code == 0
    squeezed = "".join(shown.split())
    for cell in (topic, "PARTITION", "LAG", "HOST"):
        assert cell in squeezed.replace("─", "") or columns >= 90
    if columns <= 40:
        assert squeezed.count("LAG:0") == 2
        assert squeezed.count(f"TOPIC:{topic}PARTITION:") == 2


def test_a_narrow_terminal_shows_the_titles_of_an_empty_table(bootstrap: str) -> None:
    line = ["topics", "list", "--topic", "no-such-topic", "--bootstrap-server", bootstrap]
    code, shown = at_terminal(line, columns=20)
    assert (code, shown.split()) == (0, ["TOPIC", "PARTITIONS", "REPLICATION", "INTERNAL"])


@pytest.mark.parametrize("command", [("groups", "list"), ("configs", "describe", "broker", "--all")])
def test_colours_are_for_terminals_that_want_them(bootstrap: str, command: tuple[str, ...]) -> None:
    line = [*command, "--bootstrap-server", bootstrap]
    code, shown = at_terminal(line, NO_COLOR="1")
    assert code == 0
    assert "\x1b[3" not in shown
    piped = subprocess.run([*PYKBROKER, *line], cwd=ROOT, capture_output=True, check=True)
    assert b"\x1b" not in piped.stdout


def test_control_characters_of_a_name_do_not_reach_the_terminal(call: Call, bootstrap: str, group: str) -> None:
    for line in ("groups list", "groups --list", "groups --list --state", f"groups describe {group}"):
        listed = call(*line.split(maxsplit=0))
        assert EVIL not in listed.out + listed.err, line
        assert ESCAPED in listed.out, line
        code, shown = at_terminal([*line.split(), "--bootstrap-server", bootstrap])
        assert code == 0
        assert EVIL not in shown
    assert group in [each["group"] for each in json.loads(call("groups list --json").out)]
    missing = call("groups describe", f"{group}x")
    assert EVIL not in missing.err


@pytest.mark.parametrize(
    "line",
    [
        "--help",
        "topics --help",
        "topics list --json",
        "completion bash",
        "doctor --watch 0",
        "top --once",
        "brokers list",
        "apis",
    ],
)
def test_a_closed_pipe_is_a_good_end(bootstrap: str, line: str) -> None:
    words = line.split()
    where = [bootstrap] if words[0] == "doctor" else ["--bootstrap-server", bootstrap]
    reader, writer = os.pipe()
    os.close(reader)
    arguments = words if "help" in line or words[0] in ("completion", "kafka") else [*words, *where]
    ended = subprocess.run([*PYKBROKER, *arguments], cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("module", ["pykbroker.cli.brokers", "pykbroker.cli.broker_actions", "trio"])
def test_ctrl_c_while_a_command_is_imported_ends_it_in_silence(module: str) -> None:
    script = f"""
import signal, sys
from pykbroker.cli.main import main
class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "{module}":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
main()
print("imported no {module}")
"""
    words = [sys.executable, "-c", script, "brokers", "list", "--bootstrap-server", "127.0.0.1:1"]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")


def test_closed_standard_streams_are_no_terminal(bootstrap: str, topic: str, call: Call) -> None:
    call(f"topics create {topic}")
    words = [*PYKBROKER, "topics", "delete", "--topic", f"{topic}.*", "--bootstrap-server", bootstrap]
    for closed in ("<&-", ">&-", "<&- >&-"):
        script = f'"$@" {closed}'
        ended = subprocess.run(["sh", "-c", script, "sh", *words], cwd=ROOT, stderr=subprocess.PIPE, check=False)
        assert ended.returncode == 1
        assert b"Nobody can be asked here" in ended.stderr
        assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("arguments", ["--help", "topics --help", "kafka", "completion bash"])
def test_a_full_standard_output_is_one_line(arguments: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*PYKBROKER, *arguments.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": ""},  # as a user has it
            text=True,
            timeout=TIMEOUT_S,
        )
    assert (done.returncode, done.stderr) == (1, "Error: No space left on device\n")
