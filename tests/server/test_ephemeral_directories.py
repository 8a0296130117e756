"""Ephemeral directories go with their process; a sweep removes those of killed processes, and nothing else."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pykbroker.server.runtime import ephemeral_directories
from pykbroker.server.runtime.ephemeral_directories import (
    OWNER_FILE,
    PREFIX,
    ephemeral_directory,
    sweep,
    sweep_in_background,
)

ROOT = Path(__file__).parents[2]
MAKES_SOME = """
import os, signal, sys
from contextlib import ExitStack
from pathlib import Path
from pykbroker.server.runtime.ephemeral_directories import ephemeral_directory

with ExitStack() as stack:
    for number in range(int(sys.argv[2])):
        path = stack.enter_context(ephemeral_directory(Path(sys.argv[1])))
        (path / "log-0").mkdir()
        (path / "log-0" / "0.log").write_text("records")
        (path / "file").write_text("")
    print("made", flush=True)
    sys.stdin.read()
"""


def start(parent: Path, count: int = 1) -> subprocess.Popen[str]:
    """Start a process with so many ephemeral directories; it ends with its standard input."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAKES_SOME, str(parent), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "made\n"
    return process


def left_by_a_kill(parent: Path, count: int = 1) -> list[Path]:
    process = start(parent, count)
    process.kill()
    process.communicate()
    left = sorted(parent.iterdir())
    assert len(left) == count
    return left


def test_it_goes_with_the_body_whatever_is_in_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("")
    with ephemeral_directory(tmp_path) as one, ephemeral_directory(tmp_path) as other:
        assert one != other
        assert one.stat().st_mode & 0o777 == 0o700
        (one / "a" / "b").mkdir(parents=True)
        (one / "link").symlink_to(outside)
        (one / "a" / "link").symlink_to(outside)
    assert [each.name for each in tmp_path.iterdir()] == ["outside"]
    assert (outside / "kept").exists()


def test_it_goes_after_an_error_too(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), ephemeral_directory(tmp_path):
        _ = 1 / 0
    assert list(tmp_path.iterdir()) == []


def test_one_that_is_gone_already_is_no_error(tmp_path: Path) -> None:
    with ephemeral_directory(tmp_path) as path:
        (path / OWNER_FILE).unlink()
        path.rmdir()


def test_a_fork_that_runs_through_the_same_code_removes_nothing(tmp_path: Path) -> None:
    program = MAKES_SOME.replace('print("made", flush=True)', "if os.fork() == 0: sys.exit(0)\n    os.wait()").replace(
        "sys.stdin.read()", "print(*os.listdir(sys.argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path, "2"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert len(done.stdout.split()) == 2
    assert list(tmp_path.iterdir()) == []


def test_what_a_kill_leaves_is_swept_and_what_lives_is_not(tmp_path: Path) -> None:
    left_by_a_kill(tmp_path, 3)
    with ephemeral_directory(tmp_path) as own:
        living = start(tmp_path, 2)
        assert sweep(tmp_path) == 3
        assert len(list(tmp_path.iterdir())) == 3
        assert own.is_dir()
        living.communicate()  # a clean end
        assert living.returncode == 0
        assert list(tmp_path.iterdir()) == [own]


def test_a_stopped_process_lives(tmp_path: Path) -> None:
    process = start(tmp_path)
    (directory,) = tmp_path.iterdir()
    os.kill(process.pid, 19)
    assert sweep(tmp_path) == 0
    assert (directory / "log-0" / "0.log").read_text() == "records"
    process.kill()
    process.communicate()
    assert sweep(tmp_path) == 1


def test_the_sweep_is_where_temporary_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left_by_a_kill(tmp_path)
    with ephemeral_directory() as own:
        assert own.parent == tmp_path
        sweep_in_background().join()
        assert list(tmp_path.iterdir()) == [own]


def test_a_place_that_is_not_there_is_no_error_of_a_sweep(tmp_path: Path) -> None:
    assert sweep(tmp_path / "gone") == 0


def _similar(name: str) -> Callable[[Path], Path]:
    def make(parent: Path) -> Path:
        (left,) = left_by_a_kill(parent)
        return left.rename(parent / name)

    return make


def _file(parent: Path) -> Path:
    path = parent / f"{PREFIX}aaaaaaaa"
    path.write_text("")
    return path


def _link(parent: Path) -> Path:
    elsewhere = parent / "elsewhere"
    elsewhere.mkdir()
    (left,) = left_by_a_kill(elsewhere)
    path = parent / f"{PREFIX}aaaaaaaa"
    path.symlink_to(left)
    return path


def _without_owner(parent: Path) -> Path:
    path = parent / f"{PREFIX}aaaaaaaa"
    path.mkdir()
    (path / "somebody's").write_text("")
    os.utime(path, (0, 0))
    return path


def _new_and_empty(parent: Path) -> Path:
    path = parent / f"{PREFIX}aaaaaaaa"
    path.mkdir()
    return path


def _owner_is_a_link(parent: Path) -> Path:
    (left,) = left_by_a_kill(parent)
    target = left / OWNER_FILE
    target.rename(parent / "owner")
    target.symlink_to(parent / "owner")
    return left


def _owner_is_a_pipe(parent: Path) -> Path:
    (left,) = left_by_a_kill(parent)
    (left / OWNER_FILE).unlink()
    os.mkfifo(left / OWNER_FILE)
    return left


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(_similar("pykbroker-aaaaaaaa"), id="another beginning"),
        pytest.param(_similar(f"{PREFIX}aaaaaaaaa"), id="too long"),
        pytest.param(_similar(f"{PREFIX}mine"), id="too short"),
        pytest.param(_similar(f"{PREFIX}Notebook"), id="other characters"),
        _file,
        _link,
        _without_owner,
        _new_and_empty,
        _owner_is_a_link,
        _owner_is_a_pipe,
    ],
)
def test_what_is_only_similar_stays(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    path = make(tmp_path)
    assert sweep(tmp_path) == 0
    assert path.exists()
    if path.is_dir() and make is not _new_and_empty:
        assert len(list(path.iterdir())) > 0


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a directory to another user, which takes root")
def test_another_users_directory_stays(tmp_path: Path) -> None:
    (left,) = left_by_a_kill(tmp_path)
    os.chown(left, 12345, 12345)
    assert sweep(tmp_path) == 0
    assert (left / "log-0" / "0.log").exists()


def test_an_empty_one_of_long_ago_is_swept(tmp_path: Path) -> None:
    """A process was killed before it made the owner file, or a sweep before its last step."""
    path = tmp_path / f"{PREFIX}aaaaaaaa"
    path.mkdir()
    os.utime(path, (time.time() - 3600,) * 2)
    assert sweep(tmp_path) == 1
    assert not path.exists()


def test_a_sweep_is_bounded_in_count_and_time(tmp_path: Path) -> None:
    left_by_a_kill(tmp_path, 5)
    assert sweep(tmp_path, at_most=2) == 2
    assert len(list(tmp_path.iterdir())) == 3
    assert sweep(tmp_path, seconds=-1) == 0
    assert sweep(tmp_path) == 3


def test_what_an_interrupted_sweep_leaves_can_be_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (left,) = left_by_a_kill(tmp_path)
    ticks = iter(range(100))
    monkeypatch.setattr(ephemeral_directories.time, "monotonic", lambda: next(ticks))
    assert sweep(tmp_path, seconds=2) == 0
    assert OWNER_FILE in os.listdir(left)
    assert len(os.listdir(left)) == 2, "one of the entries is removed by now"
    monkeypatch.undo()
    assert sweep(tmp_path) == 1


def test_two_sweeps_at_a_time_share_the_work(tmp_path: Path) -> None:
    left_by_a_kill(tmp_path, 30)
    swept: list[int] = []
    start_together = threading.Barrier(4)

    def work() -> None:
        start_together.wait()
        swept.append(sweep(tmp_path))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(swept) == 30
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("moment", ["made", "opened"])
def test_a_sweep_that_is_quicker_than_the_owner_takes_nothing_that_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The first directory is removed under its maker, who makes another one then."""
    removed: list[Path] = []
    real_mkdtemp, real_flock = ephemeral_directories.tempfile.mkdtemp, fcntl.flock

    def remove_the_first(path: Path) -> None:
        if not removed:
            removed.append(path)
            (path / OWNER_FILE).unlink(missing_ok=True)
            path.rmdir()

    def mkdtemp(**options: object) -> str:
        path: str = real_mkdtemp(**options)
        if moment == "made":
            remove_the_first(Path(path))
        return path

    def flock(descriptor: int, how: int) -> None:
        if moment == "opened":
            (path,) = [each for each in tmp_path.iterdir() if each not in removed]
            remove_the_first(path)
        real_flock(descriptor, how)

    monkeypatch.setattr(ephemeral_directories.tempfile, "mkdtemp", mkdtemp)
    monkeypatch.setattr(ephemeral_directories.fcntl, "flock", flock)
    with ephemeral_directory(tmp_path) as path:
        assert removed != [path]
        assert len(removed) == 1
        assert sweep(tmp_path) == 0
        assert path.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_makers_and_sweeps_side_by_side_never_lose_a_directory_in_use(tmp_path: Path) -> None:
    over = threading.Event()

    def sweep_on() -> None:
        while not over.is_set():
            sweep(tmp_path)

    sweeping = [threading.Thread(target=sweep_on) for _ in range(2)]
    for thread in sweeping:
        thread.start()
    try:
        for _ in range(200):
            with ephemeral_directory(tmp_path) as path:
                (path / "x").write_text("")
                assert (path / "x").exists()
    finally:
        over.set()
        for thread in sweeping:
            thread.join()
    assert list(tmp_path.iterdir()) == []
