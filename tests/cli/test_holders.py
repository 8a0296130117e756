"""Who holds a port or a directory of this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from pykbroker.cli import holders
from pykbroker.cli.holders import Holder, holder_of_file, holder_of_port, is_listened_on
from pykbroker.cli.main import main

from .test_start import StartNode, refused, start  # noqa: F401 - a fixture

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")

_LOCKS = """
import fcntl, os, sys
held = os.open(sys.argv[1], os.O_RDWR if sys.argv[2:] == ["posix"] else os.O_RDONLY)
(fcntl.lockf if sys.argv[2:] == ["posix"] else fcntl.flock)(held, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def locking(path: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", _LOCKS, str(path), *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    yield process
    process.communicate()


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_process_that_listens_is_found(family: socket.AddressFamily, host: str) -> None:
    with socket.create_server((host, 0), family=family) as listening:
        holder = holder_of_port(listening.getsockname()[1])
    assert holder is not None
    assert holder.pid == os.getpid()
    assert holder.command


def test_nobody_listens_on_a_port_that_is_closed_or_only_bound() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        assert holder_of_port(port) is None
        assert not is_listened_on(port)


def test_the_process_that_has_a_lock_is_found(tmp_path: Path) -> None:
    assert holder_of_file(str(tmp_path)) is None
    with locking(tmp_path) as process:
        holder = holder_of_file(str(tmp_path))
        assert holder is not None
        assert holder.pid == process.pid
    assert holder_of_file(str(tmp_path)) is None
    assert holder_of_file(str(tmp_path / "nothing")) is None


def test_the_words_of_a_command_write_no_lines(tmp_path: Path) -> None:
    with locking(tmp_path, "a\nb\x1b[31m", "x" * 1000):
        text = str(holder_of_file(str(tmp_path)))
    assert text.isprintable()
    assert text.isascii()
    assert len(text) < 200


def test_a_process_without_a_command_is_told_by_its_number() -> None:
    assert str(Holder(7, "")) == "process 7"


def test_without_proc_nothing_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(holders, "_PROC", tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert holder_of_port(port) is None
        assert not is_listened_on(port)
    with locking(tmp_path):
        assert holder_of_file(str(tmp_path)) is None


def test_a_start_says_who_has_its_port_and_how_to_take_another(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused("--port", str(port), cwd=tmp_path)
    assert line.startswith(
        f"Error: cannot listen on PLAINTEXT://127.0.0.1:{port}: Address already in use by process {os.getpid()} ("
    )
    assert line.endswith("; --port N takes another one, --port 0 any that is free, and listeners= says which")


def test_a_start_says_how_another_listener_takes_another_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listeners = f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{taken.getsockname()[1]}"
        line = refused("--override", f"listeners={listeners}", cwd=tmp_path)
    assert line.endswith("; listeners= gives CONTROLLER another one")


def test_a_port_that_nobody_listens_on_but_is_taken_names_nobody(tmp_path: Path) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        line = refused("--port", str(port), cwd=tmp_path)
    assert f"127.0.0.1:{port}: Address already in use; --port N" in line


def test_a_start_says_who_works_in_its_directory(start: StartNode, tmp_path: Path) -> None:  # noqa: F811
    node = start("--data-dir", "d")
    line = refused("--data-dir", "d", "--port", "0", cwd=tmp_path)
    assert line.startswith(f"Error: the log directory d is in use by process {node.process.pid} (")
    assert line.endswith("; --data-dir DIR takes another one")


def test_a_check_says_who_works_in_the_directory(start: StartNode, tmp_path: Path) -> None:  # noqa: F811
    node = start("--data-dir", "d")
    result = CliRunner().invoke(main, ["verify", str(tmp_path / "d")])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: the log directory {tmp_path}/d is in use by process {node.process.pid} (")
    assert result.stderr.endswith("): stop the broker first\n")


def test_a_file_that_java_has_locked_has_a_holder_as_well(tmp_path: Path) -> None:
    """Java's FileLock is a lock of the file `.lock` (POSIX), and not of the directory."""
    path = tmp_path / ".lock"
    path.touch()
    with locking(path, "posix") as process:
        assert str(holder_of_file(str(path))).startswith(f"process {process.pid}")
