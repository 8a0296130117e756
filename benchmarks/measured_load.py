"""The load generator (`benchmarks/load`) on a broker, with the broker's CPU time in the measured seconds."""

from __future__ import annotations

import bisect
import hashlib
import json
import os
import shutil
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchmarks.bench import Bench
from benchmarks.brokers import cpu_seconds
from compat_tests.brokers import BrokerProcess

SAMPLE_S = 0.25
BUILD_TIMEOUT_S = 300
PATIENCE_S = 240.0
"""For all that comes before and after the measured seconds: connections, leaders, the last answers."""
_SOURCE = Path(__file__).parent / "load"
_BUILT = Path(__file__).parents[1] / "build" / "load-generator"
_BUILD_ENVIRONMENT = {"GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}


class LoadFailed(AssertionError):
    """The generator could not be built, or the broker did not take the load; the text is the generator's."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a broker was given in the measured seconds. seconds: how many those were, fewer than were asked for where
    the run ended at its most bytes. cpu_s: what it took of its processors meanwhile. latency_ms, end_to_end_ms: by
    `p50`, `p99`, `p99.9` and `max`; empty where nothing was answered (`acks=0`).
    """

    seconds: float
    requests: int
    batches: int
    records: int
    bytes: int
    cpu_s: float
    latency_ms: dict[str, float]
    end_to_end_ms: dict[str, float]


class CpuSamples:
    """The CPU time of a broker at moments of a run: whoever loads it says afterwards which seconds were measured."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._times: list[float] = []
        self._cpu: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> Self:
        self._take()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._take()

    def between(self, from_s: float, until_s: float) -> float:
        """Seconds, of a time span in seconds since 1970 within the samples."""
        return self._at(until_s) - self._at(from_s)

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_S):
            self._take()

    def _take(self) -> None:
        self._times.append(time.time())
        self._cpu.append(cpu_seconds(self._broker))

    def _at(self, moment_s: float) -> float:
        after = bisect.bisect_left(self._times, moment_s)
        assert 0 < after < len(self._times), "a moment at which nothing was sampled"
        (t0, t1), (c0, c1) = self._times[after - 1 : after + 1], self._cpu[after - 1 : after + 1]
        return c0 + (c1 - c0) * (moment_s - t0) / (t1 - t0)


def load(
    bench: Bench, mode: str, topic: str, *, seconds: float, warm_s: float, options: dict[str, int | str] | None = None
) -> Given:
    """mode: produce, fetch or steady, with `options` as the generator's flags. Raises LoadFailed."""
    flags = {"bootstrap": bench.broker.bootstrap, "topic": topic, "warm": f"{warm_s:g}s", "for": f"{seconds:g}s"}
    command = [str(built()), mode, *(f"--{name}={value}" for name, value in (flags | (options or {})).items())]
    with CpuSamples(bench.broker) as cpu:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=warm_s + seconds + PATIENCE_S, check=False
        )
    if run.returncode:
        raise LoadFailed(run.stderr.strip() or f"the generator ended with exit code {run.returncode}")
    given = json.loads(run.stdout)
    if not given["requests"]:
        raise LoadFailed(f"{bench.broker.kind} answered no request in the {seconds:g} s that are measured")
    cpu_s = cpu.between(given["from"], given["from"] + given["seconds"])
    return Given(
        seconds=given["seconds"],
        requests=given["requests"],
        batches=given["batches"],
        records=given["records"],
        bytes=given["bytes"],
        cpu_s=cpu_s,
        latency_ms=given.get("latency ms", {}),
        end_to_end_ms=given.get("end to end ms", {}),
    )


def built() -> Path:
    """The generator's program, built where its source has changed. Raises LoadFailed."""
    key = hashlib.sha256()
    for path in sorted([*_SOURCE.glob("*.go"), *_SOURCE.glob("go.*")]):
        key.update(path.name.encode() + b"\0" + path.read_bytes())
    program = _BUILT / key.hexdigest()[:16] / "load"
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        raise LoadFailed("the load generator is built with Go, and there is no `go` on the path")
    program.parent.mkdir(parents=True, exist_ok=True)
    aside = program.with_suffix(f".{os.getpid()}")
    run = subprocess.run(
        [go, "build", "-o", str(aside), "."],
        cwd=_SOURCE,
        env=os.environ | _BUILD_ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    if run.returncode:
        raise LoadFailed(f"the load generator cannot be built:\n{run.stderr.strip()}")
    aside.replace(program)
    return program
