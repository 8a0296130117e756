"""Kafka's classes as the JVM keeps them once they are loaded (AppCDS, JEP 350): tests start many short-lived JVMs.

A broker takes half the processor time to start with it. A JVM that is not the one that wrote the archive, or finds
other jars, leaves it aside by itself. `python -m compat_tests.apache_kafka` writes it.
"""

from pathlib import Path

from .jars import KAFKA_VERSION, cache_directory
from .java import find_java


def class_archive() -> Path:
    return cache_directory() / f"kafka-{KAFKA_VERSION}.jsa"


def class_archive_options() -> tuple[str, ...]:
    """For a `java` command; nothing where there is no archive. The JVM warns on standard output unless it is told."""
    return (f"-XX:SharedArchiveFile={class_archive()}", "-Xlog:disable") if class_archive().exists() else ()


def is_class_archive_current() -> bool:
    """Whether it was written after this Java was installed."""
    archive = class_archive()
    return archive.exists() and archive.stat().st_mtime > Path(find_java()).resolve().stat().st_ctime
