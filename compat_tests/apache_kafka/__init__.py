"""Apache Kafka 4.3.1 as the referee: its pinned jars, the Java that runs them, its tools and its broker."""

from .jars import JarsMissing, class_path, kafka_libs
from .java import JavaMissing, find_java

__all__ = ["JarsMissing", "JavaMissing", "class_path", "find_java", "kafka_libs", "why_there_is_no_kafka"]


def why_there_is_no_kafka() -> str | None:
    """None where it can be run."""
    try:
        find_java()
        kafka_libs()
    except (JavaMissing, JarsMissing) as reason:
        return str(reason)
    return None
