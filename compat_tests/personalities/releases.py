"""Apache Kafka in other releases than the referee's: one broker, with a ZooKeeper where the release needs one.

Each release has a lock file of its jars beside this module. ZooKeeper is that of 2.8 for both releases that need it:
the one of 2.1 does not find addresses on Java 17.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient

from compat_tests.apache_kafka.broker import CLUSTER_ID, SMALL_HEAP
from compat_tests.apache_kafka.jars import KAFKA_JARS, KAFKA_VERSION, JarSet
from compat_tests.apache_kafka.java import find_java
from compat_tests.broker_properties import apache_kafka_properties
from compat_tests.brokers import BrokerProcess, Pykbroker
from compat_tests.ports import take_ports
from compat_tests.waiting import until

RELEASES: Final = {"2.1": "2.1.1", "2.8": "2.8.2", "3.9": "3.9.1", "4.0": "4.0.1", "4.3": KAFKA_VERSION, "4.4": "4.4.0"}
WITH_ZOOKEEPER: Final = ("2.1", "2.8")
_OF_KRAFT: Final = ("broker.session.timeout.ms", "broker.heartbeat.interval.ms")
_OF_SHARE_GROUPS: Final = "share."
_FORMAT_TIMEOUT_S: Final = 120


def jars_of(name: str) -> JarSet:
    version = RELEASES[name]
    if version == KAFKA_VERSION:
        return KAFKA_JARS
    lock_file = Path(__file__).with_name(f"kafka-{version}.lock")
    return JarSet(f"kafka-{version}", lock_file, f"PYKBROKER_KAFKA_{version.replace('.', '_')}_LIBS")


class Release(BrokerProcess):
    """One broker of a release, with the release's defaults but for internal topics of one replica."""

    kind = "apache-kafka"

    def __init__(self, directory: Path, name: str, properties: Mapping[str, str] | None = None) -> None:
        self._name = name
        self._zookeeper: subprocess.Popen[bytes] | None = None
        (self._zookeeper_port,) = take_ports(1)
        super().__init__(directory)
        self.properties = self.base_properties() | dict(properties or {})

    def base_properties(self) -> dict[str, str]:
        of_kraft = apache_kafka_properties(self.bootstrap, f"127.0.0.1:{self.controller_port}", self.data_directory)
        if self._name not in WITH_ZOOKEEPER:
            left_out = (*_OF_KRAFT, *(each for each in of_kraft if each.startswith(_OF_SHARE_GROUPS)))
            return {key: value for key, value in of_kraft.items() if key not in left_out}
        return {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "zookeeper.connect": f"127.0.0.1:{self._zookeeper_port}",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "log.dirs": str(self.data_directory),
        }

    def prepare(self) -> None:
        if self._name in WITH_ZOOKEEPER:
            return
        command = self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self.properties_file))
        subprocess.run(command, check=True, capture_output=True, timeout=_FORMAT_TIMEOUT_S)

    def command(self) -> list[str]:
        return self._java("kafka.Kafka", str(self.properties_file))

    def launch(self) -> None:
        if self._name in WITH_ZOOKEEPER and self._zookeeper is None:
            self._zookeeper = self._start_zookeeper()
        super().launch()

    def wait_until_it_answers(self) -> None:
        """A broker of a ZooKeeper cluster answers before there is a controller."""
        super().wait_until_it_answers()
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        until(lambda: admin.list_topics(timeout=30).controller_id >= 0, "there is a controller")

    def close(self) -> None:
        try:
            super().close()
        finally:
            if self._zookeeper is not None:
                self._zookeeper.terminate()
                self._zookeeper.wait()

    def _start_zookeeper(self) -> subprocess.Popen[bytes]:
        self.directory.mkdir(parents=True, exist_ok=True)
        file = self.directory / "zookeeper.cfg"
        file.write_text(
            f"tickTime=2000\ndataDir={self.directory / 'zookeeper'}\nclientPort={self._zookeeper_port}\n"
            "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
        )
        command = self._java("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(file), release="2.8")
        with (self.directory / "zookeeper.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        until(lambda: _listens(self._zookeeper_port), "ZooKeeper listens")
        return process

    def _java(self, *arguments: str, release: str | None = None) -> list[str]:
        return [find_java(), *SMALL_HEAP, "-cp", f"{jars_of(release or self._name).directory()}/*", *arguments]


class PykbrokerAs(Pykbroker):
    """A broker of ours with the personality of a release, and with its defaults."""

    def __init__(self, directory: Path, name: str, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(directory)
        self.properties = self.base_properties() | dict(properties or {})
        self._name = name

    def command(self) -> list[str]:
        return [*super().command(), "--as", self._name]


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
