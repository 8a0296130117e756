"""Clients in processes of their own, of which another one takes the place where one stands still.

librdkafka 2.16 may block its main thread for ever where a broker goes that Metadata leaves out while
OffsetForLeaderEpoch is under way there (its issue 5476). confluent-kafka asks that thread something when partitions are
revoked, and holds Python's interpreter lock meanwhile: no thread of the process runs any more.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import random
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from compat_tests.waiting import until
from tests.history.recorder import Recorder, merge

from .ends import name_of
from .progress import Progress
from .stage import Stage, Work

STANDS_STILL_S = 30.0
"""A process that has not said for so long that it is alive is given up."""
_ALIVE_EVERY_S = 1.0
_LOOK_EVERY_S = 0.2
_STACKS_WITHIN_S = 5.0
_PR_SET_PDEATHSIG = 1

STOOD_STILL = "a process that stands still"


@dataclass(frozen=True, slots=True)
class _Terms:
    """What a process needs to know of its stage."""

    directory: Path
    bootstrap: str
    seed: int
    librdkafka_debug: str
    round_number: int
    beginnings: Mapping[str, int]


class WorkApart:
    """`work`, done in a process; it is to be found by its module's name."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __call__(self, stage: Stage, _: random.Random) -> None:
        """Raises AssertionError with what the work failed with."""
        name = threading.current_thread().name
        number = 1
        while not _Process(stage, self._work, name, number).is_done():
            stage.progress.note_end(STOOD_STILL)
            number += 1


class _Process:
    def __init__(self, stage: Stage, work: Work, name: str, number: int) -> None:
        self._stage = stage
        self._name = name
        self._connection, there = Pipe()
        label = f"{name.replace(' ', '-')}-{number}"
        self._stacks = stage.directory / f"{label}.stacks"
        terms = _Terms(
            stage.directory,
            stage.bootstrap,
            stage.seed,
            stage.librdkafka_debug,
            stage.round_number,
            dict(stage.beginnings),
        )
        self._process = get_context("spawn").Process(
            target=_live, args=(there, terms, work, name, label, self._stacks), daemon=True
        )
        self._process.start()
        there.close()
        stage.whereabouts[name] = self._where

    def is_done(self) -> bool:
        """Follow it to its end; False where it stood still. Raises AssertionError with what it failed with."""
        try:
            return self._follow()
        finally:
            del self._stage.whereabouts[self._name]
            self._process.kill()
            self._process.join()
            self._connection.close()

    def _follow(self) -> bool:
        events = {"writing": self._stage.writing, "reading": self._stage.reading}
        heard_s = time.monotonic()
        while time.monotonic() - heard_s < STANDS_STILL_S:
            for name in [name for name, event in events.items() if not event.is_set()]:
                del events[name]
                self._tell(name)
            if not self._connection.poll(_LOOK_EVERY_S):
                continue
            heard_s = time.monotonic()
            match self._hear():
                case ("done", int(count)):
                    self._stage.progress.note(count)
                case ("given up", str(reason)):
                    self._stage.progress.note_end(reason)
                case ("failed", str(text)):
                    raise AssertionError(f"in the process of {self._name}: {text}")
                case "ended":
                    return True
        return False

    def _tell(self, name: str) -> None:
        try:
            self._connection.send(name)
        except OSError:
            pass  # it has ended, and its last words are still to be heard

    def _hear(self) -> object:
        try:
            return self._connection.recv()
        except EOFError:
            self._process.join(STANDS_STILL_S)
            raise AssertionError(f"the process of {self._name} ended with exit code {self._process.exitcode}") from None

    def _where(self) -> str:
        """The calls that its threads are in, also where none of them runs."""
        pid = self._process.pid
        if pid is None or not self._process.is_alive():
            return f"the process of {self._name} has ended"
        if not self._stacks.exists():  # the signal would end it: nobody handles it yet
            return f"the process of {self._name} has not begun"
        before = self._stacks.stat().st_size
        os.kill(pid, signal.SIGUSR1)
        with suppress(AssertionError):
            until(lambda: self._stacks.stat().st_size != before, "it tells where it is", _STACKS_WITHIN_S)
        return f"the process of {self._name} is in:\n{self._stacks.read_text()}"


class _ToldProgress(Progress):
    def __init__(self, tell: Callable[[object], None]) -> None:
        super().__init__()
        self._tell_parent = tell

    def note(self, count: int = 1) -> None:
        self._tell_parent(("done", count))

    def note_end(self, reason: object) -> None:
        self._tell_parent(("given up", name_of(reason)))


def _live(connection: Connection[Any, Any], terms: _Terms, work: Work, name: str, label: str, stacks: Path) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    lock = threading.Lock()

    def tell(message: object) -> None:
        with lock:
            connection.send(message)

    with stacks.open("w") as stacks_file, history_of(terms.directory, label).open("w", encoding="utf-8") as history:
        faulthandler.register(signal.SIGUSR1, stacks_file, all_threads=True)
        stage = Stage(
            terms.directory,
            terms.bootstrap,
            Recorder(history),
            terms.seed,
            librdkafka_debug=terms.librdkafka_debug,
            round_number=terms.round_number,
            beginnings=terms.beginnings,
            progress=_ToldProgress(tell),
            values_of=f"{label}.",
        )
        threading.Thread(target=_say_that_it_lives, args=(tell,), daemon=True).start()
        threading.Thread(target=_listen, args=(connection, stage), daemon=True).start()
        threading.current_thread().name = name
        try:
            work(stage, random.Random(f"{terms.seed} {terms.round_number} {label}"))
        except BaseException:
            tell(("failed", traceback.format_exc()))
        else:
            tell("ended")
    os._exit(0)  # not by way of destructors: they may wait for a thread that is blocked


def _say_that_it_lives(tell: Callable[[object], None]) -> None:
    while True:
        tell("alive")
        time.sleep(_ALIVE_EVERY_S)


def _listen(connection: Connection[Any, Any], stage: Stage) -> None:
    events = {"writing": stage.writing, "reading": stage.reading}
    try:
        while True:
            events[connection.recv()].clear()
    except EOFError:
        os._exit(1)


def history_of(directory: Path, label: str) -> Path:
    return directory / f"history-{label}.jsonl"


def gather(path: Path) -> None:
    """Put what processes have written beside the history at this path into it. The last line of one that was killed may
    be torn.
    """
    parts = sorted(path.parent.glob("history-*.jsonl"))
    if not parts:
        return
    gathered = path.with_suffix(".gathered")
    with gathered.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in merge(map(_whole_lines, [path, *parts])))
    gathered.replace(path)
    for each in parts:
        each.unlink()


def _whole_lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        yield from (line for line in file if line.endswith("\n"))
