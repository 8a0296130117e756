"""The two nodes that are asked. Their properties are the same, but for what each needs to start."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from compat_tests.apache_kafka.broker import ApacheKafka
from compat_tests.brokers import BrokerProcess, Pykbroker

from .asking import Addresses, Asker

PLAIN, RIGHTS, GROUPS, GROUPS_RIGHTS = "plain", "rights", "groups", "groups, rights"
_COMMON: Final = {
    # A sequence's own times are years ago; nothing may go for its age.
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "3600000",
    "log.cleaner.enable": "false",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "controller.quorum.append.linger.ms": "0",
    "auto.create.topics.enable": "true",
    "delegation.token.secret.key": "a secret of the tests",
}
_RIGHTS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
_GROUPS: Final = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.streams.initial.rebalance.delay.ms": "0",
    # An assignment comes with the heartbeat that is its reason, and not with a later one.
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    # Those who are never heard of again go after the sequence.
    "group.share.session.timeout.ms": "60000",
    "group.streams.session.timeout.ms": "60000",
}
PROPERTIES: Final = {
    PLAIN: _COMMON,
    RIGHTS: _COMMON | _RIGHTS,
    GROUPS: _COMMON | _GROUPS,
    GROUPS_RIGHTS: _COMMON | _GROUPS | _RIGHTS,
}
"""By scene: nodes without an authorizer, and with one; and such as have the topic of share groups' state as well."""

SMALL_JVM: Final = ("-Xmx256m",)


def kafka_node(directory: Path, scene: str) -> BrokerProcess:
    node = ApacheKafka(directory, PROPERTIES[scene])
    node.jvm_options = tuple(each for each in node.jvm_options if not each.startswith("-Xmx")) + SMALL_JVM
    return node


def our_node(directory: Path, scene: str) -> BrokerProcess:
    return Pykbroker(directory, PROPERTIES[scene])


def asker(node: BrokerProcess, scene: str) -> Asker:
    """Of a node that runs."""
    addresses = Addresses(node.address, (node.address[0], node.controller_port))
    made = Asker(addresses, {str(node.data_directory): "<data directory>", str(node.directory): "<directory>"})
    made.prepare(share_groups=has_share_groups(scene))
    return made


def has_share_groups(scene: str) -> bool:
    """Tell whether the scene's nodes have the topic of share groups' state."""
    return scene in (GROUPS, GROUPS_RIGHTS)
