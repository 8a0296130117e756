"""Writes a history while clients work: each process calls `invoke`, and later the operation's `ok`, `fail` or `info`.

Errors count strictly: after a timeout, a lost connection, NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS_AFTER_APPEND or
REQUEST_TIMED_OUT nobody knows what happened (`outcome_of`). Threads of one operating system process may share a
recorder; several of those, on one machine, write files of their own, and `merge` puts them in the order of time.
"""

from __future__ import annotations

import heapq
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TextIO

from pykbroker.protocol.errors import ErrorCode

from .operations import FAIL, INFO, OK, Operation, Value, parse_history

_UNKNOWN_EFFECT = frozenset(
    (
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
)


def outcome_of(error_code: int) -> str:
    code = ErrorCode(error_code)
    return OK if code is ErrorCode.NONE else INFO if code in _UNKNOWN_EFFECT else FAIL


class Recording:
    """One operation under way. What is noted of it is in the history even when the process dies before its end."""

    def __init__(self, recorder: Recorder, proc: int, kind: str) -> None:
        self._recorder = recorder
        self._proc = proc
        self._kind = kind
        self._mops: list[Any] = []
        self._details: dict[str, Any] = {}
        self.is_ended = False

    def sending(self, key: str, value: Value) -> int:
        """A record is about to go out; the number is for `sent`."""
        self._mops.append(["send", key, [None, value]])
        self._write("progress", {"mops": self._mops[-1:]})
        return len(self._mops) - 1

    def sent(self, number: int, offset: int) -> None:
        self._mops[number][2][0] = offset

    def not_sent(self, number: int) -> None:
        """It certainly is nowhere. The numbers of others stay."""
        self._mops[number] = None

    def polled(self, found: Mapping[str, list[tuple[int, Value]]]) -> None:
        if any(found.values()):
            self._mops.append(["poll", {key: records for key, records in found.items() if records}])

    def commits(self, group: str, offsets: Mapping[str, int]) -> None:
        """Offsets that are committed now, or that the coordinator told."""
        self._mops.append(["commit", group, dict(offsets)])
        self._write("progress", {"mops": self._mops[-1:]})

    def delivered(self, group: str, found: Mapping[str, list[tuple[int, Value, int]]]) -> None:
        """Records that a share group gave: offset, value, and the how-manieth delivery it is."""
        self.polled({key: [(offset, value) for offset, value, _ in records] for key, records in found.items()})
        self._mops += [
            ["deliver", group, key, [[offset, count] for offset, _, count in records]]
            for key, records in found.items()
            if records
        ]

    def acknowledging(self, group: str, kind: str, deliveries: Mapping[str, list[tuple[int, int]]]) -> None:
        """What a member is about to say of deliveries, offset and count of each; `acknowledged` has the answer."""
        mops = [["acknowledge", group, key, kind, INFO, records] for key, records in deliveries.items() if records]
        self._mops += mops
        self._write("progress", {"mops": mops})

    def acknowledged(self, outcomes: Mapping[str, str]) -> None:
        """The leaders' answers by partition; it is not known what became of the others."""
        for mop in self._mops:
            if mop[0] == "acknowledge":
                mop[4] = outcomes.get(mop[2], INFO)

    def decided(self) -> None:
        """The end of the transaction is asked for from now on: it may be committed."""
        self._details["decide_ns"] = self._recorder.now_ns()
        self._write("progress", {"decide_ns": self._details["decide_ns"]})

    def note(self, **details: Any) -> None:
        """What the end's object has beside its parts, such as `hw`, `producer`, `final`."""
        self._details |= details

    def ok(self) -> None:
        self._end(OK)

    def fail(self) -> None:
        self._end(FAIL)

    def info(self) -> None:
        self._end(INFO)

    def ended(self, outcome: str) -> None:
        self._end(outcome)

    def _end(self, outcome: str) -> None:
        assert not self.is_ended
        self.is_ended = True
        self._write(outcome, {"mops": [mop for mop in self._mops if mop is not None], **self._details})

    def _write(self, step: str, content: dict[str, Any]) -> None:
        self._recorder.write({"proc": self._proc, "type": step, "f": self._kind, **content})


class Recorder:
    """file: where lines go at once, for processes that are killed; without one the history is kept in memory."""

    def __init__(self, file: TextIO | None = None, *, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.now_ns = now_ns
        self.lines: list[str] = []
        self._file = file
        self._lock = threading.Lock()
        self._processes = 0

    def new_process(self) -> int:
        with self._lock:
            self._processes += 1
            return self._processes

    def invoke(self, proc: int, kind: str) -> Recording:
        self.write({"proc": proc, "type": "invoke", "f": kind})
        return Recording(self, proc, kind)

    def tell(self, proc: int, kind: str, **details: Any) -> None:
        """An operation that takes no time: assign, crash, heal, copy, …"""
        recording = self.invoke(proc, kind)
        recording.note(**details)
        recording.ok()

    def write(self, event: dict[str, Any]) -> None:
        with self._lock:
            line = json.dumps({"t_ns": self.now_ns(), **event}, separators=(",", ":"))
            if self._file is None:
                self.lines.append(line)
            else:
                self._file.write(line + "\n")
                self._file.flush()

    def operations(self) -> list[Operation]:
        """Of what was kept in memory."""
        return parse_history(self.lines)


def merge(histories: Iterable[Iterable[str]]) -> Iterator[str]:
    """Several files as one, in the order of time. Their processes become different ones."""
    return (
        json.dumps(event, separators=(",", ":"))
        for _, _, event in heapq.merge(*(_numbered(source, lines) for source, lines in enumerate(histories)))
    )


def _numbered(source: int, lines: Iterable[str]) -> Iterator[tuple[int, tuple[int, int], dict[str, Any]]]:
    for number, line in enumerate(lines):
        event = json.loads(line)
        event["proc"] += source * 1_000_000
        yield event["t_ns"], (source, number), event
