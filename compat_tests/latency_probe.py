"""A producer that writes one record after another at a fixed pace and notes how long each acknowledgement took.

The probe is a process of its own, so that what else its caller does is not in its times:
`python -m compat_tests.latency_probe HOST PORT TOPIC FILE` runs until its standard input closes. After a refused or
broken request it connects anew, and notes the error.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TextIO

from compat_tests.brokers import BrokerProcess
from compat_tests.raw_client import RawClient, Refused, produce_request

INTERVAL_S = 0.005
VALUE = bytes(100)
LEAST_RECORDS = 100
PATIENCE_S = 60


class LatencyProbe:
    """A context manager; the topic must be there."""

    def __init__(self, broker: BrokerProcess, topic: str) -> None:
        self._file = Path(tempfile.mkstemp(prefix="pykbroker-latency-")[1])
        host, port = broker.address
        command = [sys.executable, "-m", "compat_tests.latency_probe", host, str(port), topic, str(self._file)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE)

    def __enter__(self) -> LatencyProbe:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_S + 30)
        self._file.unlink()

    def p99_ms(self, start_s: float, end_s: float) -> float:
        """Of the records sent between two times of `time.monotonic`."""
        latencies = self.latencies_ms(start_s, end_s)
        assert len(latencies) >= LEAST_RECORDS, f"{len(latencies)} records in {end_s - start_s:.1f} s: no p99 of these"
        return latencies[len(latencies) * 99 // 100]

    def latencies_ms(self, start_s: float, end_s: float) -> list[float]:
        """The acknowledged records sent between these times, the slowest one last."""
        return sorted(float(what) for what in self._between(start_s, end_s) if what[0].isdigit())

    def errors(self, start_s: float, end_s: float) -> list[str]:
        return [what for what in self._between(start_s, end_s) if not what[0].isdigit()]

    def _between(self, start_s: float, end_s: float) -> list[str]:
        lines = self._file.read_text().splitlines(keepends=True)
        rows = [line.rstrip("\n").split(" ", 1) for line in lines if line.endswith("\n")]
        return [what for sent_s, what in rows if start_s <= float(sent_s) <= end_s]


def _probe(address: tuple[str, int], topic: str, out: TextIO) -> None:
    is_over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()
    request = produce_request(topic, VALUE)
    while not is_over.is_set():
        sent_s = time.monotonic()
        try:
            with RawClient(address, timeout_s=PATIENCE_S) as client:
                next_s = time.monotonic()
                while not is_over.wait(max(next_s - time.monotonic(), 0)):
                    sent_s = time.monotonic()
                    client.produce(request)
                    done_s = time.monotonic()
                    out.write(f"{sent_s} {(done_s - sent_s) * 1000}\n")
                    next_s = max(next_s + INTERVAL_S, done_s)
        except (OSError, Refused) as error:
            out.write(f"{sent_s} {type(error).__name__}: {error}\n")
            is_over.wait(INTERVAL_S)


if __name__ == "__main__":
    with Path(sys.argv[4]).open("w", buffering=1) as file:
        _probe((sys.argv[1], int(sys.argv[2])), sys.argv[3], file)
