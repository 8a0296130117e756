"""A broker under measurement: the processes that the compatibility tests start, with their CPU time and memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
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

    def command(self) -> list[str]:
        java, *arguments = [part for part in super().command() if not part.startswith("-Xmx")]
        return [java, *PRODUCTION_JVM_OPTIONS, *arguments]


def compile_bytecode() -> None:
    """What installing a package does; an editable install leaves it to the first start, which is not the usual one."""
    folder = Path(pykbroker.__file__).parent
    layers = [str((folder / layer).resolve()) for layer in ("protocol", "storage", "raft")]
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(folder), *layers], check=True)


def new_broker(kind: type[BrokerProcess], directory: Path) -> BrokerProcess:
    """One that was prepared but not started, with a directory of its own below `directory`."""
    broker = kind(Path(tempfile.mkdtemp(dir=directory)))
    broker.write_properties()
    broker.prepare()
    return broker


def spawn(broker: BrokerProcess) -> None:
    """Starts the process and returns at once."""
    with broker.log_file.open("ab") as log:
        broker.process = subprocess.Popen(broker.command(), stdout=log, stderr=log, cwd=broker.directory)


def cpu_seconds(broker: BrokerProcess) -> float:
    times = psutil.Process(broker.pid).cpu_times()
    return float(times.user + times.system)


def rss_bytes(broker: BrokerProcess) -> int:
    return int(psutil.Process(broker.pid).memory_info().rss)


KINDS: tuple[type[BrokerProcess], ...] = (Pykbroker, ProductionKafka)
