"""A broker under measurement: the processes that the compatibility tests start, with their CPU time and memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
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
    """With what the processes that it started take, and have taken."""
    process = psutil.Process(broker.pid)
    times = process.cpu_times()
    total = times.user + times.system + times.children_user + times.children_system
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            times = child.cpu_times()
            total += times.user + times.system
    return float(total)


def rss_bytes(broker: BrokerProcess) -> int:
    return int(psutil.Process(broker.pid).memory_info().rss)


KINDS: tuple[type[BrokerProcess], ...] = (Pykbroker, ProductionKafka)
