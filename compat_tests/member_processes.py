"""Consumers of every client in processes of their own, and what they say of themselves as one history."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .apache_kafka.tools import Tool, tool_command
from .brokers import Broker
from .waiting import DEADLINE_S

CLOCK_TOLERANCE_MS = 2
"""Clients round the wall clock to milliseconds, each in its own way."""


@dataclass
class Span:
    """A partition was a member's from then until then."""

    member: str
    partition: int
    from_ms: int
    until_ms: float = float("inf")


@dataclass
class MemberProcess:
    """client: one of `member_program.CLIENTS`, or java-classic, java-consumer."""

    client: str
    broker: Broker
    group: str
    topic: str
    spans: list[Span] = field(default_factory=list)
    read: set[tuple[int, int]] = field(default_factory=set)
    """Partition and offset."""

    def __post_init__(self) -> None:
        self._process = subprocess.Popen(self._command(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _command(self) -> list[str]:
        if not self.client.startswith("java-"):
            program = [sys.executable, "-m", "compat_tests.member_program"]
            return [*program, self.client, self.broker.bootstrap, self.group, self.topic]
        protocol = self.client.removeprefix("java-")
        options = ["--bootstrap-server", self.broker.bootstrap, "--group-id", self.group, "--topic", self.topic]
        session = ["--session-timeout", "6000"] if protocol == "classic" else []
        return tool_command(Tool.VERIFIABLE_CONSUMER, *options, "--group-protocol", protocol, *session)

    @property
    def partitions(self) -> set[int]:
        return {span.partition for span in self.spans if span.until_ms == float("inf")}

    def leave(self) -> None:
        """It says goodbye to its group."""
        self._process.send_signal(signal.SIGTERM)
        self._end(DEADLINE_S)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._end(DEADLINE_S)

    def _end(self, timeout_s: float) -> None:
        self._process.wait(timeout_s)
        self._thread.join(timeout_s)
        self._close({span.partition for span in self.spans}, time.time() * 1000)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.startswith("{"):
                    self._note(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        """A Java member's events have other names, and its records come in ranges."""
        name = event.get("event") or event.get("name")
        at_ms = event.get("at_ms") or event.get("timestamp")
        assert at_ms is not None
        partitions = event.get("partitions", [])
        match name:
            case "assigned" | "partitions_assigned":
                held = self.partitions
                self.spans += [Span(self.client, each, at_ms) for each in _indexes(partitions) if each not in held]
            case "revoked" | "partitions_revoked" | "partitions_lost":
                self._close(_indexes(partitions), at_ms)
            case "read":
                self.read.add((partitions[0], event["offset"]))
            case "records_consumed":
                for each in partitions:
                    offsets = range(each["minOffset"], each["maxOffset"] + 1)
                    self.read |= {(each["partition"], offset) for offset in offsets}

    def _close(self, partitions: Iterable[int], at_ms: float) -> None:
        for span in self.spans:
            if span.partition in partitions and span.until_ms == float("inf"):
                span.until_ms = at_ms


def _indexes(partitions: list[Any]) -> set[int]:
    return {each["partition"] if isinstance(each, dict) else each for each in partitions}


def overlaps(members: Iterable[MemberProcess]) -> list[tuple[Span, Span]]:
    """Where a partition was two members' at a time."""
    spans = sorted((span for member in members for span in member.spans), key=lambda span: span.from_ms)
    return [
        (span, later)
        for number, span in enumerate(spans)
        for later in spans[number + 1 :]
        if later.partition == span.partition and later.from_ms + CLOCK_TOLERANCE_MS < span.until_ms
    ]
