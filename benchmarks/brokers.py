"""A broker under measurement: the processes that the compatibility tests start, with their CPU time and memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

import pykbroker
from compat_tests.apache_kafka.broker import ApacheKafka
from compat_tests.brokers import BrokerProcess, Pykbroker

PRODUCTION_JVM_OPTIONS = (
    *("-Xms1G", "-Xmx1G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"),
    *("-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"),
)
"""The heap and the collector that `kafka-server-start.sh` gives a broker."""

_CPU_CLOCK = 2
"""Linux: what the threads of a process had of the processors, by the scheduler's count."""


class ProductionKafka(ApacheKafka):
    """Apache Kafka as it is started in production, not with the small heap of the tests."""

    jvm_options = PRODUCTION_JVM_OPTIONS


def compile_bytecode() -> None:
    """What installing a package does; an editable install leaves it to the first start, which is not the usual one."""
    folder = Path(pykbroker.__file__).parent
    layers = [str((folder / layer).resolve()) for layer in ("protocol", "storage", "raft")]
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(folder), *layers], check=True)


def new_broker(kind: type[BrokerProcess], directory: Path, properties: Mapping[str, str]) -> BrokerProcess:
    """One that was prepared but not started, with a directory of its own below `directory`."""
    broker = kind(Path(tempfile.mkdtemp(dir=directory)), properties)
    broker.write_properties()
    broker.prepare()
    return broker


def spawn(broker: BrokerProcess) -> None:
    """Starts the process and returns at once."""
    broker.launch()


def cpu_seconds(broker: BrokerProcess) -> float:
    """With what the processes that it started take, and have taken; to the nanosecond for those that run."""
    process = psutil.Process(broker.pid)
    times = process.cpu_times()
    total = times.children_user + times.children_system + _process_cpu_seconds(broker.pid)
    for child in process.children(recursive=True):
        with suppress(OSError):
            total += _process_cpu_seconds(child.pid)
    return float(total)


def _process_cpu_seconds(pid: int) -> float:
    """By the process's own clock, as `clock_getcpuclockid` names it: `/proc` counts in steps of 10 ms. Raises OSError
    where there is no such process.
    """
    return time.clock_gettime(~pid << 3 | _CPU_CLOCK)


def rss_bytes(broker: BrokerProcess) -> int:
    return int(psutil.Process(broker.pid).memory_info().rss)


KINDS: tuple[type[BrokerProcess], ...] = (Pykbroker, ProductionKafka)
