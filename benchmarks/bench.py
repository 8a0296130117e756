"""What every measure works with: the broker under measurement, Kafka's tools, and how much work to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from benchmarks.brokers import cpu_seconds
from benchmarks.java_tools import JavaTools
from compat_tests.brokers import BrokerProcess

Figures = dict[str, float]
"""What was measured, with its unit: `{"MB/s": 120.0}`. The page draws some names as curves: `benchmarks/curves.py`."""
PARTITIONS = 6


@dataclass(frozen=True, slots=True)
class Bench:
    """scale: 1.0 is the full amount of work."""

    broker: BrokerProcess
    tools: JavaTools
    scale: float

    def count(self, full: int) -> int:
        return max(int(full * self.scale), 1000)

    def create_topic(self, topic: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap, "log_level": 3})
        for future in admin.create_topics([NewTopic(topic, partitions, 1, config=dict(config or {}))]).values():
            future.result(30)

    def delete_topic(self, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap, "log_level": 3})
        for future in admin.delete_topics([topic]).values():
            future.result(30)

    def add_partitions(self, topic: str, total: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap, "log_level": 3})
        for future in admin.create_partitions([NewPartitions(topic, total)]).values():
            future.result(60)

    def configure_topic(self, topic: str, config: Mapping[str, str]) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap, "log_level": 3})
        resource = ConfigResource(ResourceType.TOPIC, topic)
        for name, value in config.items():
            resource.add_incremental_config(ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET))
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(30)

    def with_cpu(self, work: Callable[[], Figures]) -> Figures:
        before = cpu_seconds(self.broker)
        figures = work()
        return {**figures, "broker CPU s": cpu_seconds(self.broker) - before}


Measure = Callable[[Bench], Figures]


@dataclass(frozen=True, slots=True)
class Scene:
    """Measures that run one after another on one broker, with properties of its own.

    is_started: whether the broker runs already when the first measure begins.
    """

    measures: Mapping[str, Measure]
    properties: Mapping[str, str] = field(default_factory=dict)
    is_started: bool = True
