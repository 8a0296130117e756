"""The properties that brokers under test have before a scenario adds its own."""

from __future__ import annotations

from pathlib import Path

TEST_PROPERTIES = {
    # Consumer groups form at once instead of after three seconds.
    "group.initial.rebalance.delay.ms": "0",
}
"""Of every broker, whoever's."""


def apache_kafka_properties(bootstrap: str, controller: str, log_dirs: Path) -> dict[str, str]:
    """Of one Apache Kafka that is broker and controller, as its quick start sets it up."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{controller}",
        "listeners": f"PLAINTEXT://{bootstrap},CONTROLLER://{controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "log.dirs": str(log_dirs),
        # After kill -9 it waits until the session of its predecessor is over: not nine seconds.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
    }
