"""Apache Kafka's broker: a single node from the jars, or Docker's image of the same version."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from compat_tests.broker_properties import apache_kafka_properties
from compat_tests.brokers import Broker, BrokerProcess
from compat_tests.ports import take_ports

from .class_archive import class_archive_options
from .jars import class_path
from .java import find_java
from .tools import Tool, run_tool

COMPOSE_FILE = Path(__file__).parents[2] / "docker" / "compose-kafka.yaml"
LOGGING = f"-Dlog4j2.configurationFile={Path(__file__).with_name('broker-log4j2.properties')}"
SMALL_HEAP = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
SMALL_JVM = (*SMALL_HEAP, *class_archive_options())
"""For tests, where no broker lives for long: a quarter of the processor time of a usual start."""
CLUSTER_ID = "rGKhQ5uFQ7WqXg2Vd1mY0A"


class ApacheKafka(BrokerProcess):
    """One node that is broker and controller, as its quick start sets it up."""

    kind = "apache-kafka"
    jvm_options: tuple[str, ...] = SMALL_JVM

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        *,
        is_formatted: bool = False,
        is_standalone: bool = False,
    ) -> None:
        """is_standalone: its voters stand in the metadata log (KIP-853), not in its properties."""
        super().__init__(directory, properties)
        self._is_formatted = is_formatted
        self._is_standalone = is_standalone
        if is_standalone:
            del self.properties["controller.quorum.voters"]
            self.properties["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{self.controller_port}"

    def base_properties(self) -> dict[str, str]:
        return apache_kafka_properties(self.bootstrap, f"127.0.0.1:{self.controller_port}", self.data_directory)

    def prepare(self) -> None:
        if not self._is_formatted:
            standalone = ["--standalone"] if self._is_standalone else []
            run_tool(Tool.STORAGE, "format", *standalone, "-t", CLUSTER_ID, "-c", str(self.properties_file))

    def command(self) -> list[str]:
        return kafka_command(self.properties_file, *self.jvm_options)


def kafka_command(properties_file: Path, *jvm_options: str) -> list[str]:
    return [find_java(), *jvm_options, LOGGING, "-cp", class_path(), "kafka.Kafka", str(properties_file)]


class DockerKafka(Broker):
    """The image `apache/kafka`, through `docker compose`; properties go in as its KAFKA_ variables."""

    kind = "apache-kafka"

    def __init__(self, directory: Path, properties: Mapping[str, str] | None = None) -> None:
        (port,) = take_ports(1)
        self.bootstrap = f"127.0.0.1:{port}"
        self._project = f"pykbroker-referee-{port}"
        self._override = directory / "override.env"
        self._properties = dict(properties or {})
        self._environment = os.environ | {"KAFKA_PORT": str(port), "KAFKA_OVERRIDES": str(self._override)}

    def start(self) -> None:
        self._override.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"KAFKA_{key.replace('.', '_').upper()}={value}\n" for key, value in self._properties.items()]
        self._override.write_text("".join(lines))
        self._compose("up", "--detach", "--wait")

    def stop(self) -> None:
        self._compose("stop")

    def kill(self) -> None:
        self._compose("kill")

    def close(self) -> None:
        self._compose("down", "--volumes")

    def log_text(self) -> str:
        return self._compose("logs", "--no-color")

    def _compose(self, *arguments: str) -> str:
        command = ["docker", "compose", "-f", str(COMPOSE_FILE), "-p", self._project, *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
        return done.stdout
