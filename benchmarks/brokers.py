"""A broker under measurement: a process with a fresh data directory, its CPU time and its resident memory."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

START_DEADLINE_S = 60.0
STOP_DEADLINE_S = 30.0


class BrokerFailed(RuntimeError):
    """The broker did not start; the text holds the end of its log."""


class BrokerProcess:
    """One broker process on a port of its own; subclasses say how it is prepared and started."""

    name: str

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="pykbroker-bench-"))
        self.port, self.controller_port = _free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def prepare(self) -> None:
        """What a user does once before the first start, outside of what is timed."""

    def command(self) -> Sequence[str]:
        raise NotImplementedError

    def spawn(self) -> None:
        """Starts the process and returns at once."""
        log = (self.directory / "broker.log").open("ab")
        with log:
            self._process = subprocess.Popen(self.command(), stdout=log, stderr=log, cwd=self.directory)

    def start(self) -> None:
        """Starts the process and returns when its port takes connections. Raises BrokerFailed."""
        self.spawn()
        deadline = time.monotonic() + START_DEADLINE_S
        while not self.accepts():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise BrokerFailed(f"{self.name} did not start:\n{self.log_tail()}")
            time.sleep(0.002)

    def accepts(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def log_tail(self) -> str:
        return (self.directory / "broker.log").read_text(errors="replace")[-4000:]

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the broker was not started"
        return self._process

    def cpu_seconds(self) -> float:
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    def rss_bytes(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def stop(self) -> None:
        """Ends the process and removes its data."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_DEADLINE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


class PykbrokerProcess(BrokerProcess):
    name = "pykbroker"

    def command(self) -> Sequence[str]:
        return [
            sys.executable,
            "-m",
            "pykbroker",
            "start",
            "--data-dir",
            str(self.directory / "data"),
            "--override",
            f"listeners=PLAINTEXT://127.0.0.1:{self.port}",
            "--override",
            "group.initial.rebalance.delay.ms=0",
        ]


class ApacheKafkaProcess(BrokerProcess):
    """Apache Kafka from its Maven artifacts, with the heap and collector that `kafka-server-start.sh` gives it."""

    name = "Apache Kafka"
    JVM_OPTIONS = (
        "-Xms1G",
        "-Xmx1G",
        "-XX:+UseG1GC",
        "-XX:MaxGCPauseMillis=20",
        "-XX:InitiatingHeapOccupancyPercent=35",
    )

    def __init__(self, java: str, class_path: str) -> None:
        super().__init__()
        self._java = java
        self._class_path = class_path

    def _jvm(self, main_class: str, *arguments: str) -> Sequence[str]:
        return [self._java, *self.JVM_OPTIONS, "-cp", self._class_path, main_class, *arguments]

    def prepare(self) -> None:
        properties = self.directory / "server.properties"
        properties.write_text(
            "process.roles=broker,controller\n"
            "node.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{self.controller_port}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}\n"
            "controller.listener.names=CONTROLLER\n"
            "inter.broker.listener.name=PLAINTEXT\n"
            "offsets.topic.replication.factor=1\n"
            "transaction.state.log.replication.factor=1\n"
            "transaction.state.log.min.isr=1\n"
            "group.initial.rebalance.delay.ms=0\n"
            f"log.dirs={self.directory / 'data'}\n"
        )
        format_command = self._jvm(
            "kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", str(properties)
        )
        subprocess.run(format_command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def command(self) -> Sequence[str]:
        return self._jvm("kafka.Kafka", str(self.directory / "server.properties"))


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports
