"""Fetches Apache Kafka's jars where they are missing, and prints the directory that holds them.

What makes its JVMs start sooner is written beside them.
"""

import sys
import tempfile
from pathlib import Path

from compat_tests.brokers import BrokerFailed

from .broker import SMALL_HEAP, ApacheKafka
from .class_archive import class_archive, is_class_archive_current
from .jars import JarsMissing, kafka_libs
from .java import JavaMissing


def write_class_archive() -> None:
    """By a broker that starts and stops."""
    class_archive().unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=class_archive().parent) as directory:
        written = Path(directory, "archive.jsa")
        broker = ApacheKafka(Path(directory, "broker"))
        broker.jvm_options = (*SMALL_HEAP, f"-XX:ArchiveClassesAtExit={written}", "-Xlog:disable")
        broker.start()
        broker.stop()
        if written.exists():  # not every Java has what the archive builds on
            written.rename(class_archive())


try:
    print(kafka_libs())  # noqa: T201
    if not is_class_archive_current():
        write_class_archive()
except (JarsMissing, JavaMissing) as reason:
    sys.exit(str(reason))
except BrokerFailed as failure:
    sys.exit(f"Kafka's JVMs will start slowly: {failure}")
