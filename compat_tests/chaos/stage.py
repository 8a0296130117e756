"""What the clients of a run share: the cluster's address, the recorder of their history, when to stop."""

from __future__ import annotations

import itertools
import json
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Message, TopicPartition

from tests.history.operations import Value
from tests.history.recorder import Recorder

from .progress import Progress
from .truncation import TruncationReported

PLAIN, COPY, ORDERS, JAVA = "plain", "copy", "orders", "java"
TOPICS = {PLAIN: 3, COPY: 3, ORDERS: 2, JAVA: 1}
"""With how many partitions. COPY has what PLAIN has, partition by partition; JAVA is what a Java client writes."""

CALL_TIMEOUT_S = 10
"""For one request of a client that waits for its answer."""

QUIET = {
    "log_level": 0,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "metadata.recovery.strategy": "none",
}
"""librdkafka's settings for a cluster whose nodes come and go. To bootstrap anew when every broker is out of reach
leaves it with a coordinator that it waits for for ever.
"""

READ_AHEAD = {"queued_min_messages": 2_000, "queued_max_messages_kbytes": 2_048}
"""A consumer's settings: by default it holds 100,000 records of each partition, and a reader that begins a long round
makes the process grow by hundreds of megabytes.
"""


def partitions(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, index) for index in range(TOPICS[topic])]


def all_partitions() -> list[TopicPartition]:
    return [each for topic in TOPICS for each in partitions(topic)]


def key_of(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


@dataclass
class Stage:
    """directory: for the files of clients. round_number: the how-manieth round of its run it is, from 1 on.
    beginnings: where each partition's log ended before the round; nobody reads anything in front of it. writing: set as
    long as producers are to go on; reading: readers, groups and copiers. librdkafka_debug: its `debug` setting, such as
    `eos,cgrp`; it writes to the standard error output. values_of: who makes the values, where several processes
    do. whereabouts: the calls that clients in other processes are in, by the clients' names.
    """

    directory: Path
    bootstrap: str
    recorder: Recorder
    seed: int
    librdkafka_debug: str = ""
    round_number: int = 1
    beginnings: Mapping[str, int] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    writing: threading.Event = field(default_factory=threading.Event)
    reading: threading.Event = field(default_factory=threading.Event)
    values_of: str = ""
    whereabouts: dict[str, Callable[[], str]] = field(default_factory=dict)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.writing.set()
        self.reading.set()

    def new_value(self) -> str:
        """Unique in this run."""
        return f"v{self.round_number}.{self.values_of}{next(self._numbers)}"

    def beginning(self, partition: TopicPartition) -> TopicPartition:
        """Return the place where the round begins in a partition."""
        return TopicPartition(partition.topic, partition.partition, self.beginnings.get(key_of(partition), 0))

    def consumer_config(self, **more: Any) -> dict[str, Any]:
        return self.config(enable_auto_commit=False, **READ_AHEAD, **more)

    def config(self, **more: Any) -> dict[str, Any]:
        debug = {"debug": self.librdkafka_debug, "log_level": 7} if self.librdkafka_debug else {}
        return {"bootstrap.servers": self.bootstrap, **QUIET, **debug} | {
            key.replace("_", "."): value for key, value in more.items()
        }


Work = Callable[[Stage, random.Random], None]


def call_thread_of(client: str) -> str:
    """Return the name of the thread in which a client makes a call that may not end."""
    return f"call of {client}"


class Client(threading.Thread):
    """A thread of the workload; what it fails with is raised by `finish`."""

    def __init__(self, stage: Stage, name: str, work: Work) -> None:
        super().__init__(name=name, daemon=True)
        self._stage = stage
        self._work = work
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._work(self._stage, random.Random(f"{self._stage.seed} {self._stage.round_number} {self.name}"))
        except BaseException as failure:
            self._failure = failure

    def finish(self, deadline_s: float) -> None:
        """Raises what ended it, and AssertionError where it does not end."""
        self.join(deadline_s)
        self.assert_not_failed()
        assert not self.is_alive(), f"the client {self.name} does not end; {self.where()}"

    def assert_not_failed(self) -> None:
        if self._failure is not None:
            raise AssertionError(f"the client {self.name} failed: {self._failure!r}") from self._failure

    def where(self) -> str:
        """The calls that it is in, and the threads that work for it: whoever is stuck is stuck somewhere."""
        if not self.is_alive():
            return f"{self.name} has ended"
        frames = sys._current_frames()
        threads = [each for each in threading.enumerate() if each is self or each.name in self._threads_for_it]
        stacks = [(each, frames[each.ident]) for each in threads if each.ident in frames]
        found = [f"{each.name} is in:\n{''.join(traceback.format_stack(frame))}" for each, frame in stacks]
        if elsewhere := self._stage.whereabouts.get(self.name):
            found.append(elsewhere())
        return "\n".join(found)

    def another(self) -> Client:
        """Return one that does the same, and has yet to begin."""
        return Client(self._stage, f"another {self.name}", self._work)

    @property
    def _threads_for_it(self) -> tuple[str, ...]:
        return call_thread_of(self.name), f"{self.name}-network-thread"


def encode(value: Value) -> bytes:
    return json.dumps(value).encode()


def decode(topic: str, value: bytes) -> Value:
    return value.decode() if topic == JAVA else json.loads(value)


def found_in(messages: Iterable[Message]) -> dict[str, list[tuple[int, Value]]]:
    """The records of what a consumer was given, by partition; errors that pass are not records.

    Raises TruncationReported, with the records that came along; AssertionError for what ends a consumer besides.
    """
    found: dict[str, list[tuple[int, Value]]] = {}
    reported = None
    for message in messages:
        error = message.error()
        if report := TruncationReported.of(message):
            reported = report
        elif error is None:
            topic, value, offset = message.topic(), message.value(), message.offset()
            assert topic is not None
            assert value is not None
            assert offset is not None
            found.setdefault(f"{topic}-{message.partition()}", []).append((offset, decode(topic, value)))
        elif error.fatal() or error.name() in ("OFFSET_OUT_OF_RANGE", "_AUTO_OFFSET_RESET"):
            raise AssertionError(f"a consumer was told {error}")
    if reported is not None:
        reported.found = found
        raise reported
    return found


def pause(rng: random.Random, longest_s: float) -> None:
    """The time between two requests of a client that is not in a hurry."""
    time.sleep(rng.random() * longest_s)
