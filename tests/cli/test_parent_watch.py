"""The watch over the parent, in a small process: however the parent ends, and whatever it was, the watch says so."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pykbroker.cli import parent_watch

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 60

WATCHES = """
import os, sys
from pykbroker.cli import parent_watch
if {without_pidfd}:
    parent_watch._pidfd = lambda pid: None
watch = parent_watch.ParentWatch({parent})
print("watches", flush=True)
print(watch.wait(), flush=True)
"""


def watcher(parent: int | None = None, *, without_pidfd: bool = False) -> list[str]:
    return [sys.executable, "-c", WATCHES.format(parent=parent, without_pidfd=without_pidfd)]


SPAWNS = """
import os, subprocess, sys, threading, time
how, *command = sys.argv[1:]
{early}
def start():
    child = subprocess.Popen(command, stdin=subprocess.PIPE if how == "pipe" else subprocess.DEVNULL)
if how == "thread":
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
else:
    start()
sys.stdin.read()
"""


class Parent:
    """A parent that starts a watcher; `lines` is the output of the latter."""

    def __init__(self, how: str, command: list[str], early: str = "") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SPAWNS.format(early=early), how, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            start_new_session=True,
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=TIMEOUT_S)


@pytest.mark.parametrize("without_pidfd", [False, True])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_end_of_the_parent_is_seen(number: int, without_pidfd: bool) -> None:
    parent = Parent("null", watcher(without_pidfd=without_pidfd))
    assert parent.line() == "watches\n"
    parent.process.send_signal(number)
    assert parent.line() == f"process {parent.process.pid}, which started this one, is gone\n"
    parent.close()


def test_the_end_of_the_thread_that_started_it_is_no_end() -> None:
    parent = Parent("thread", watcher())
    assert parent.line() == "watches\n"
    with pytest.raises(subprocess.TimeoutExpired):  # a second in which nothing is seen
        parent.process.wait(1)
    parent.process.kill()
    assert "is gone" in parent.line()
    parent.close()


@pytest.mark.parametrize("how", ["pipe", "socket"])
def test_the_end_of_standard_input_is_seen_and_nothing_is_read_from_it(how: str) -> None:
    if how == "pipe":
        own_end, other_end = os.pipe()
    else:
        one, other = socket.socketpair()
        own_end, other_end = one.detach(), other.detach()
    process = subprocess.Popen(watcher(), stdin=own_end, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    assert process.stdout.readline() == "watches\n"
    os.write(other_end, b"unread")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    os.close(other_end)
    assert process.stdout.readline() == "standard input has ended\n"
    assert os.read(own_end, 100) == b"unread"
    os.close(own_end)
    process.communicate(timeout=TIMEOUT_S)


def test_a_socket_that_is_shut_down_for_writing_has_ended() -> None:
    """Node's pipes are sockets, and `child.stdin.end()` is that."""
    one, other = socket.socketpair()
    with one, other:
        process = subprocess.Popen(watcher(), stdin=one, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert process.stdout is not None
        assert process.stdout.readline() == "watches\n"
        other.shutdown(socket.SHUT_WR)
        assert process.stdout.readline() == "standard input has ended\n"
        process.communicate(timeout=TIMEOUT_S)


@pytest.mark.parametrize("stdin", ["/dev/null", "file", "closed"])
def test_a_standard_input_that_is_no_pipe_is_not_watched(tmp_path: Path, stdin: str) -> None:
    (tmp_path / "file").write_text("")
    shell = {"/dev/null": "</dev/null", "file": f"<{tmp_path / 'file'}", "closed": "<&-"}[stdin]
    process = subprocess.Popen(
        ["/bin/sh", "-c", f'exec "$@" {shell}', "sh", *watcher()], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "watches\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.kill()
    process.communicate(timeout=TIMEOUT_S)


def test_another_process_can_be_meant() -> None:
    meant = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, cwd=ROOT)
    parent = Parent("null", watcher(meant.pid))
    assert parent.line() == "watches\n"
    parent.process.kill()
    parent.process.wait(TIMEOUT_S)
    meant.kill()
    meant.communicate(timeout=TIMEOUT_S)
    assert parent.line() == f"process {meant.pid}, which started this one, is gone\n"
    parent.close()


@pytest.mark.parametrize("without_pidfd", [False, True])
def test_another_process_that_is_gone_by_then_is_seen_at_once(without_pidfd: bool) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.communicate(timeout=TIMEOUT_S)
    done = subprocess.run(
        watcher(gone.pid, without_pidfd=without_pidfd),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        cwd=ROOT,
        check=True,
    )
    assert done.stdout.endswith(f"process {gone.pid}, which started this one, is gone\n")


WAITS_TO_BE_AN_ORPHAN = """
import os, time
first = os.getppid()
print("waits", flush=True)
while os.getppid() == first:
    time.sleep(0.01)
"""


@pytest.mark.parametrize("how", ["null", "pipe"])
def test_a_parent_that_was_gone_before_the_first_look_is_seen(how: str) -> None:
    """By its session: the process that takes orphans is of another one. By the pipe wherever there is one."""
    command = [sys.executable, "-c", WAITS_TO_BE_AN_ORPHAN + WATCHES.format(parent=None, without_pidfd=False)]
    parent = Parent(how, command)
    assert parent.line() == "waits\n"
    parent.process.kill()
    parent.process.wait(TIMEOUT_S)
    assert parent.line() == "watches\n"
    assert re.fullmatch(r"process \d+, which started this one, is gone\n|standard input has ended\n", parent.line())
    parent.close()


def test_the_leader_of_a_session_of_its_own_is_no_orphan() -> None:
    """Programs start a broker in a session of its own, so that it gets no signals of the terminal."""
    process = subprocess.Popen(
        watcher(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "watches\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.kill()
    process.communicate(timeout=TIMEOUT_S)


@pytest.mark.parametrize(
    ("own", "parents", "parent", "hung_up", "expected"),
    [
        (7, 7, 5, False, False),
        (7, 7, 1, False, False),  # process 1 of a container runs the tests
        (7, 7, 1, True, True),
        (7, 7, 5, True, False),  # a parent that does not read what is written, and lives
        (7, 1, 1, False, True),
        (7, 6, 5, False, True),
        pytest.param(os.getpid(), 6, 5, False, False, id="this process leads its session"),
        (7, 0, 0, False, False),  # the parent is outside of this container
    ],
)
def test_an_orphan_is_known_by_its_session_or_by_its_output(
    monkeypatch: pytest.MonkeyPatch, own: int, parents: int, parent: int, hung_up: bool, expected: bool
) -> None:
    getsid: Callable[[int], int] = lambda pid: parents if pid else own  # noqa: E731
    monkeypatch.setattr(parent_watch.os, "getsid", getsid)
    monkeypatch.setattr(parent_watch, "_has_no_other_end", lambda descriptor: hung_up)
    assert parent_watch._is_adopted(parent) is expected


def test_a_pipe_that_nobody_reads_has_no_other_end() -> None:
    reads, writes = os.pipe()
    assert not parent_watch._has_no_other_end(writes)
    os.close(reads)
    assert parent_watch._has_no_other_end(writes)
    os.close(writes)
    assert not parent_watch._has_no_other_end(writes)


def test_what_does_not_stop_when_asked_twice_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[object] = []
    over = threading.Event()
    watch = parent_watch.ParentWatch()
    monkeypatch.setattr(watch, "wait", lambda: "why")
    monkeypatch.setattr(parent_watch.time, "sleep", lambda seconds: happened.append(seconds))

    def end(code: int) -> None:
        happened.append(code)
        over.set()

    monkeypatch.setattr(parent_watch.os, "_exit", end)
    watch.start(happened.append)
    assert over.wait(TIMEOUT_S)
    assert happened == ["why", parent_watch.GRACE_S, "", parent_watch.LAST_S, 1]
