"""Java's producer, in a process of its own: Apache Kafka's VerifiableProducer, which tells of each acknowledgement."""

from __future__ import annotations

import json
import queue
import random
import subprocess
import time
from pathlib import Path
from threading import Thread
from typing import Any

from compat_tests.apache_kafka.tools import Tool, tool_command
from tests.history.recorder import Recording

from .stage import JAVA, Stage

RECORDS_A_SECOND = 20
_KEY = f"{JAVA}-0"
_EARLY_S = 10.0
"""How long before it may go out a record is declared: more than this process may have to wait for its turn."""
_LAST_WORDS_S = 90.0
"""Of a producer that is to end: it waits for what it has sent, up to `delivery.timeout.ms`."""

_PROPERTIES = {
    # The tool's own setting is no retries at all, and without them no idempotence.
    "enable.idempotence": "true",
    "retries": "2147483647",
    "delivery.timeout.ms": "20000",
    "request.timeout.ms": "5000",
    "max.block.ms": "10000",
    "reconnect.backoff.max.ms": "500",
    "linger.ms": "0",
}


def produce_with_java(stage: Stage, _: random.Random) -> None:
    """Idempotent, acks=all, several requests under way at a time."""
    properties = stage.directory / "java-producer.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in _PROPERTIES.items()))
    _JavaProducer(stage, properties).produce()


class _JavaProducer:
    """Each record is an operation of the history, because each is acknowledged for itself."""

    def __init__(self, stage: Stage, properties: Path) -> None:
        self._stage = stage
        self._declared = 0
        self._under_way: dict[str, Recording] = {}
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._began_s: float | None = None
        """When it said that it begins: its pace counts from then."""
        command = tool_command(
            Tool.VERIFIABLE_PRODUCER,
            *("--bootstrap-server", stage.bootstrap, "--topic", JAVA, "--command-config", str(properties)),
            *("--throughput", str(RECORDS_A_SECOND), "--value-prefix", str(stage.round_number)),
        )
        with (stage.directory / "java-producer.log").open("ab") as log:
            # It ends with the thread that started it, whatever that one dies of.
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command], stdout=subprocess.PIPE, stderr=log, text=True
            )

    def produce(self) -> None:
        """Raises AssertionError where it ends before it is told to."""
        Thread(target=self._read, name="reader of what the Java producer tells", daemon=True).start()
        while self._stage.writing.is_set():
            self._declare()
            try:
                line = self._lines.get(timeout=0.2)
            except queue.Empty:
                continue
            assert line is not None, f"the Java producer ended with exit code {self._process.wait(_LAST_WORDS_S)}"
            self._note(line)
        self._process.terminate()
        until_s = time.monotonic() + _LAST_WORDS_S
        while (line := self._lines.get(timeout=max(until_s - time.monotonic(), 0))) is not None:
            self._note(line)
        self._process.wait(_LAST_WORDS_S)

    def _declare(self) -> None:
        """Those that may go out soon: by its pace it has sent no more than that."""
        since_s = 0.0 if self._began_s is None else time.monotonic() - self._began_s
        due = int((since_s + _EARLY_S) * RECORDS_A_SECOND)
        while self._declared < due:
            value = f"{self._stage.round_number}.{self._declared}"
            recording = self._stage.recorder.invoke(self._stage.recorder.new_process(), "send")
            recording.sending(_KEY, value)
            self._under_way[value] = recording
            self._declared += 1

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _note(self, line: str) -> None:
        """What never gets here is of unknown fate, like what it calls an error."""
        told: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
        if told.get("name") == "startup_complete":
            self._began_s = time.monotonic()
        elif told.get("name") == "producer_send_success":
            recording = self._under_way.pop(told["value"])
            recording.sent(0, told["offset"])
            recording.ok()
            self._stage.progress.note()
        elif told.get("name") == "producer_send_error":
            self._under_way.pop(told["value"]).info()
