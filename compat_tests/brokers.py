"""A broker under test: a process with its own port, directory and properties, which a test may stop, kill and restart.

`Pykbroker` is this project's, Apache Kafka's is in `apache_kafka.broker`, `ExternalBroker` is one that others run.
"""

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .broker_properties import TEST_PROPERTIES
from .ports import take_ports

START_DEADLINE_S = 180.0
STOP_DEADLINE_S = 120.0
POLL_INTERVAL_S = 0.02


class BrokerFailed(AssertionError):
    """The broker did not start, or did not stop; the text holds the end of its log."""


class Bootstrap(Protocol):
    """A broker or a cluster: whatever clients connect to."""

    @property
    def bootstrap(self) -> str: ...


class Broker(ABC):
    """What a scenario may do with a broker, whoever runs it."""

    kind: str
    bootstrap: str

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.bootstrap.rsplit(":", 1)
        return host, int(port)

    @abstractmethod
    def start(self) -> None:
        """Returns when the broker answers requests. Raises BrokerFailed."""

    @abstractmethod
    def stop(self) -> None:
        """Stops it cleanly (SIGTERM); what it stored stays."""

    @abstractmethod
    def kill(self) -> None:
        """kill -9; what it stored stays."""

    @abstractmethod
    def log_text(self) -> str:
        """What the broker logged since it was first started."""

    def close(self) -> None:
        """At the end of its life."""
        self.stop()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process runs. enter: the command that others are appended to so that they run there."""

    host: str
    port: int
    controller_port: int
    enter: tuple[str, ...] = ()


def loopback_place() -> Place:
    port, controller_port = take_ports(2)
    return Place("127.0.0.1", port, controller_port)


class BrokerProcess(Broker):
    """A broker that runs as a child process; subclasses say with which command and properties."""

    def __init__(
        self, directory: Path, properties: Mapping[str, str] | None = None, *, place: Place | None = None
    ) -> None:
        self.directory = directory
        self.data_directory = directory / "data"
        self.properties_file = directory / "server.properties"
        self.place = place or loopback_place()
        self.port, self.controller_port = self.place.port, self.place.controller_port
        self.bootstrap = f"{self.place.host}:{self.port}"
        self.properties = self.base_properties() | TEST_PROPERTIES | dict(properties or {})
        self.process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def base_properties(self) -> dict[str, str]: ...

    @abstractmethod
    def command(self) -> list[str]: ...

    def prepare(self) -> None:
        """What has to be done once, before the first start."""

    @property
    def log_file(self) -> Path:
        return self.directory / "broker.log"

    @property
    def pid(self) -> int:
        assert self.process is not None, "the broker does not run"
        return self.process.pid

    def start(self) -> None:
        self.launch()
        self.wait_until_it_answers()

    def launch(self) -> None:
        """Starts the process, and returns before it serves."""
        assert self.process is None, "the broker runs already"
        self.set_up()
        command = [*self.place.enter, *self.command()]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.directory)

    def set_up(self) -> None:
        """All that comes before the first start, if nobody did it yet."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if not self.properties_file.exists():
            self.write_properties()
            self.prepare()

    def write_properties(self) -> None:
        lines = [f"{key}={value}\n" for key, value in self.properties.items()]
        self.properties_file.write_text("".join(lines))

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerFailed(f"{self.kind} did not stop within {STOP_DEADLINE_S} s\n{self.log_tail()}") from None
        self.process = None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def pause(self) -> None:
        """SIGSTOP: its connections stay, and nothing answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def log_text(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def log_tail(self) -> str:
        return self.log_text()[-6000:]

    def wait_until_it_answers(self) -> None:
        """Raises BrokerFailed."""
        deadline = time.monotonic() + START_DEADLINE_S
        assert self.process is not None
        while not answers_api_versions(self.address):
            if self.process.poll() is not None:
                code = self.process.returncode
                self.process = None
                raise BrokerFailed(f"{self.kind} ended with exit code {code}\n{self.log_tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise BrokerFailed(f"{self.kind} did not start within {START_DEADLINE_S} s\n{self.log_tail()}")
            time.sleep(POLL_INTERVAL_S)


class Pykbroker(BrokerProcess):
    kind = "pykbroker"

    def base_properties(self) -> dict[str, str]:
        return {
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{self.controller_port}",
            "log.dirs": str(self.data_directory),
        }

    def command(self) -> list[str]:
        return pykbroker_command("start", str(self.properties_file))


class ExternalBroker(Broker):
    """A broker that was running before the tests, named by PYKBROKER_TEST_BOOTSTRAP."""

    kind = "external"

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def start(self) -> None:
        if not answers_api_versions(self.address):
            raise BrokerFailed(f"no broker answers at {self.bootstrap}")

    def stop(self) -> None:
        """It is not ours to stop."""

    def kill(self) -> None:
        raise AssertionError("a broker that somebody else runs is not killed")

    def log_text(self) -> str:
        return ""


def pykbroker_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pykbroker", *arguments]


def answers_api_versions(address: tuple[str, int]) -> bool:
    """An ApiVersions request of version 0 and a header without client id: the least that every broker serves."""
    try:
        with socket.create_connection(address, timeout=5) as connection:
            connection.sendall(struct.pack(">ihhih", 10, 18, 0, 7, -1))
            return len(connection.recv(8)) == 8
    except OSError:
        return False
