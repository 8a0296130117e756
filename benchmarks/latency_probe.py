"""A producer that writes one record after another at a fixed pace and notes how long each acknowledgement took.

A process of its own, so that what else the benchmark does is not in its times: `python -m benchmarks.latency_probe
HOST PORT TOPIC FILE` runs until its standard input closes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.raw_client import RawClient, produce_request
from compat_tests.brokers import BrokerProcess

INTERVAL_S = 0.005
VALUE = bytes(100)


class LatencyProbe:
    """A context manager; the topic must be there."""

    def __init__(self, broker: BrokerProcess, topic: str) -> None:
        self._file = Path(tempfile.mkstemp(prefix="pykbroker-latency-")[1])
        host, port = broker.address
        command = [sys.executable, "-m", "benchmarks.latency_probe", host, str(port), topic, str(self._file)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE)

    def __enter__(self) -> LatencyProbe:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._file.unlink()

    def p99_ms(self, start_s: float, end_s: float) -> float:
        """Of the records sent between two times of `time.monotonic`."""
        rows = [line.split() for line in self._file.read_text().splitlines() if line.count(" ") == 1]
        latencies = sorted(float(latency_ms) for sent_s, latency_ms in rows if start_s <= float(sent_s) <= end_s)
        assert len(latencies) >= 100, f"{len(latencies)} records in {end_s - start_s:.1f} s are too few for a p99"
        return latencies[len(latencies) * 99 // 100]


def _probe(host: str, port: int, topic: str, file: Path) -> None:
    is_over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()
    request = produce_request(topic, VALUE)
    with RawClient((host, port), timeout_s=60) as client, file.open("w", buffering=1) as out:
        next_s = time.monotonic()
        while not is_over.wait(max(next_s - time.monotonic(), 0)):
            sent_s = time.monotonic()
            client.produce(request)
            done_s = time.monotonic()
            out.write(f"{sent_s} {(done_s - sent_s) * 1000}\n")
            next_s = max(next_s + INTERVAL_S, done_s)


if __name__ == "__main__":
    _probe(sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
