"""Apache Kafka with a reporter that takes clients' metrics: without one it does not offer KIP-714."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from compat_tests.apache_kafka.broker import LOGGING, ApacheKafka
from compat_tests.apache_kafka.jars import class_path
from compat_tests.apache_kafka.java import find_java

SOURCES = Path(__file__).with_name("java")
BUILD_TIMEOUT_S = 300


class KafkaWithReceiver(ApacheKafka):
    """The reporter is compiled at the first start, which needs javac."""

    def __init__(self, directory: Path, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(directory, {"metric.reporters": "telemetry.TelemetryReceiver", **(properties or {})})
        self._classes = directory / "classes"

    def prepare(self) -> None:
        super().prepare()
        self._classes.mkdir()
        compiler = shutil.which("javac", path=Path(find_java()).resolve().parent) or shutil.which("javac")
        assert compiler is not None, "Apache Kafka's receiver of client telemetry needs javac (a JDK)"
        sources = sorted(map(str, SOURCES.glob("*.java")))
        command = [compiler, "-nowarn", "-proc:none", "-d", str(self._classes), "-cp", class_path(), *sources]
        subprocess.run(command, check=True, timeout=BUILD_TIMEOUT_S)

    def command(self) -> list[str]:
        path = f"{class_path()}:{self._classes}"
        return [find_java(), *self.jvm_options, LOGGING, "-cp", path, "kafka.Kafka", str(self.properties_file)]
