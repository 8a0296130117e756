"""Every entry of DescribeConfigs is as Apache Kafka has it, before and after configurations are altered at run time.

Of each entry: value, source, synonyms, type, whether it is read-only or sensitive, and whether there is a text. The
texts are each broker's own.
"""

from __future__ import annotations

from typing import Any, Final

from pykbroker.config.broker_keys import DYNAMIC_ALONE
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)

from .answers import TestAnswers
from .broker_configs import APPEND, DELETE, SET, Change, plain
from .brokers import Broker
from .cases import code
from .conftest import FreshBroker
from .topics import create_topic
from .waiting import until
from .wire import Wire

A_TOPIC, A_BROKER, LOGGERS, CLIENT_METRICS, A_GROUP = 2, 4, 8, 16, 32
UNKNOWN: Final = 0
"""The type of a key that nobody knows."""
TOPIC, GROUP, SUBSCRIPTION = "described", "described", "described"

RESOURCES: Final = {
    "topic": (A_TOPIC, TOPIC),
    "broker": (A_BROKER, "1"),
    "all brokers": (A_BROKER, ""),
    "group": (A_GROUP, GROUP),
    "client metrics": (CLIENT_METRICS, SUBSCRIPTION),
}
OF_A_PLACE: Final = {"advertised.listeners", "listeners", "log.dirs"}
"""Keys whose values are this machine's: addresses and directories."""

NOT_COMPARED: Final = {"controller.quorum.voters"}
"""pykbroker on its own needs none."""

STATIC: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "inter.broker.listener.name": "PLAINTEXT",
    "log.retention.hours": "24",
    "log.roll.hours": "2",
    "log.flush.interval.messages": "0900",
    "log.message.timestamp.type": " CreateTime",
    "min.insync.replicas": " 1 ",
    "ssl.keystore.password": "hush",
    "group.share.session.timeout.ms": "50000",
    "group.streams.num.standby.replicas": "1",
    "group.consumer.assignment.interval.ms": "2000",
    "my.own.key": "hush",
}
ALTERATIONS: Final[tuple[tuple[str, tuple[Change, ...]], ...]] = (
    ("topic", (("retention.ms", SET, "5000"), ("cleanup.policy", APPEND, "compact"), ("flush.ms", SET, " 7 "))),
    ("topic", (("min.insync.replicas", SET, "1"), ("segment.bytes", SET, "02000000"), ("flush.ms", DELETE, None))),
    (
        "broker",
        (
            ("log.retention.ms", SET, "70000"),
            ("log.cleaner.threads", SET, "2"),
            ("background.threads", SET, "9"),
            ("log.flush.interval.messages", DELETE, None),
        ),
    ),
    (
        "all brokers",
        (
            ("message.max.bytes", SET, "2000000"),
            ("log.retention.ms", SET, "80000"),
            ("log.cleaner.threads", SET, "1"),
            ("group.consumer.assignment.interval.ms", SET, "3000"),
            ("group.share.assignment.interval.ms", SET, "4000"),
            ("follower.replication.throttled.rate", SET, "1000"),
        ),
    ),
    (
        "group",
        (
            ("consumer.session.timeout.ms", SET, "46000"),
            ("share.auto.offset.reset", SET, "by_duration:PT1H"),
            ("share.isolation.level", SET, "read_committed"),
            ("share.renew.acknowledge.enable", SET, "FALSE"),
            ("share.delivery.count.limit", SET, " 7"),
            ("streams.num.standby.replicas", SET, "2"),
            ("streams.initial.rebalance.delay.ms", SET, "0"),
        ),
    ),
    (
        "client metrics",
        (
            ("interval.ms", SET, "1000"),
            ("metrics", SET, "org.apache,*"),
            ("match", SET, "client_id=a.*,client_software_name=b"),
        ),
    ),
)
REFUSED: Final[tuple[tuple[str, Change], ...]] = (
    ("group", ("share.session.timeout.ms", SET, "1000")),
    ("group", ("share.session.timeout.ms", SET, "60001")),
    ("group", ("share.heartbeat.interval.ms", SET, "16000")),
    ("group", ("share.record.lock.duration.ms", SET, "999")),
    ("group", ("share.record.lock.duration.ms", SET, "14999")),
    ("group", ("share.record.lock.duration.ms", SET, "60001")),
    ("group", ("share.delivery.count.limit", SET, "1")),
    ("group", ("share.delivery.count.limit", SET, "11")),
    ("group", ("share.partition.max.record.locks", SET, "99")),
    ("group", ("share.partition.max.record.locks", SET, "4001")),
    ("group", ("share.assignment.interval.ms", SET, "15001")),
    ("group", ("share.auto.offset.reset", SET, "none")),
    ("group", ("share.auto.offset.reset", SET, "by_duration:-PT1S")),
    ("group", ("share.auto.offset.reset", SET, "by_duration:P1Y")),
    ("group", ("share.isolation.level", SET, "READ_COMMITTED")),
    ("group", ("share.renew.acknowledge.enable", SET, "yes")),
    ("group", ("share.assignor.offload.enable", SET, "true")),
    ("group", ("share.auto.offset.reset", APPEND, "latest")),
    ("group", ("streams.session.timeout.ms", SET, "1000")),
    ("group", ("streams.heartbeat.interval.ms", SET, "1")),
    ("group", ("streams.num.standby.replicas", SET, "3")),
    ("group", ("streams.num.standby.replicas", SET, "-1")),
    ("group", ("streams.assignment.interval.ms", SET, "x")),
    ("group", ("streams.initial.rebalance.delay.ms", SET, "-1")),
    *(
        (where, (key, SET, value))
        for where in ("broker", "all brokers")
        for key, value in (
            ("num.io.threads", "17"),
            ("num.io.threads", "3"),
            ("num.io.threads", "0"),
            ("num.replica.fetchers", "3"),
            ("num.recovery.threads.per.data.dir", "5"),
            ("background.threads", "4"),
            ("background.threads", "21"),
            ("log.cleaner.threads", "3"),
            ("producer.id.expiration.ms", "0"),
            ("log.cleaner.backoff.ms", "-1"),
            ("log.cleaner.dedupe.buffer.size", "x"),
            ("log.cleaner.dedupe.buffer.size", "1048576"),
            ("remote.log.reader.threads", "21"),
            ("remote.log.manager.copier.thread.pool.size", "4"),
            ("num.network.threads", "7"),
        )
    ),
    ("broker", ("listener.name.plaintext.num.network.threads", SET, "7")),
)


def entries(broker: Broker, kind: int, name: str) -> dict[str, Any]:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
    with Wire(broker.address) as wire:
        answer: Any = wire.call(request, 4)
    (result,) = answer.results
    assert result.error_code == 0, result.error_message
    return {each.name: _shown(each) for each in result.configs if each.name not in NOT_COMPARED}


def _shown(config: Any) -> dict[str, Any]:
    shown = plain(config) | {"documented": config.documentation is not None}
    if config.config_type == UNKNOWN or config.name in DYNAMIC_ALONE:
        del shown["documented"]  # pykbroker says what it knows: in which line such a key stands, or what it means
    if config.name in OF_A_PLACE:
        shown["value"] = shown["value"] is not None
        shown["synonyms"] = [[name, source] for name, _, source in shown["synonyms"]]
    return shown


def altered(broker: Broker, where: str, *changes: Change) -> tuple[str, str | None]:
    kind, name = RESOURCES[where]
    configs = [
        IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    with Wire(broker.address) as wire:
        answer: Any = wire.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    (row,) = answer.responses
    return code(row.error_code), row.error_message


def every_entry(broker: Broker) -> dict[str, Any]:
    return {where: entries(broker, *resource) for where, resource in RESOURCES.items()}


def test_every_entry_before_and_after_alterations(fresh_broker: FreshBroker, answers: TestAnswers) -> None:
    broker = fresh_broker(STATIC)
    create_topic(broker, TOPIC, 1, {"max.message.bytes": "5000"})
    found = every_entry(broker)
    answers.all_same({f"{where}, before": each for where, each in found.items()})
    for where, changes in ALTERATIONS:
        assert altered(broker, where, *changes)[0] == "NONE", (where, changes)
    until(lambda: "match" in str(entries(broker, CLIENT_METRICS, SUBSCRIPTION)["match"]["synonyms"]), "all is applied")
    found = every_entry(broker)
    answers.all_same({f"{where}, after": each for where, each in found.items()})


def test_values_that_are_not_allowed_are_refused_in_the_same_words(broker: Broker, answers: TestAnswers) -> None:
    for where, change in REFUSED:
        key, _, value = change
        answers.same(f"{where}: {key}={value}", altered(broker, where, change))
