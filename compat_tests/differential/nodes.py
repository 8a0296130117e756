"""The two nodes that are asked. Their properties are the same, but for what each needs to start."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from compat_tests.apache_kafka.broker import ApacheKafka
from compat_tests.brokers import BrokerProcess, Pykbroker

from .asking import Addresses, Asker

PLAIN, RIGHTS = "plain", "rights"
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
PROPERTIES: Final = {
    PLAIN: _COMMON,
    RIGHTS: _COMMON
    | {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    },
}
"""By scene: nodes without an authorizer, and with one."""

SMALL_JVM: Final = ("-Xmx256m",)


def kafka_node(directory: Path, scene: str) -> BrokerProcess:
    node = ApacheKafka(directory, PROPERTIES[scene])
    node.jvm_options = tuple(each for each in node.jvm_options if not each.startswith("-Xmx")) + SMALL_JVM
    return node


def our_node(directory: Path, scene: str) -> BrokerProcess:
    return Pykbroker(directory, PROPERTIES[scene])


def asker(node: BrokerProcess) -> Asker:
    """Of a node that runs."""
    addresses = Addresses(node.address, (node.address[0], node.controller_port))
    made = Asker(addresses, {str(node.data_directory): "<data directory>", str(node.directory): "<directory>"})
    made.prepare()
    return made
