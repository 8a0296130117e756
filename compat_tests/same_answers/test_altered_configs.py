"""Configurations changed at run time, and what is described then."""

from typing import Any

from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)

from .interview import Interview

A_TOPIC, A_BROKER, A_GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def altering(kind: int, name: str, *changes: tuple[str, int, str | None], times: int = 1) -> Any:
    configs = [
        IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    return IncrementalAlterConfigsRequest(resources=[resource] * times)


def described(interview: Interview, name: str) -> dict[str, str]:
    """The topic's own values."""
    resource = DescribeConfigsResource(resource_type=A_TOPIC, resource_name=name, configuration_keys=None)
    with Wire(interview.broker.address) as wire:
        answer: Any = wire.call(DescribeConfigsRequest(resources=[resource]), 4)
    topic_s_own = 1
    return {each.name: each.value for each in answer.results[0].configs if each.config_source == topic_s_own}


def test_single_keys(interview: Interview) -> None:
    topic, ask = interview.topic, interview.ask
    interview.create(topic, 1, cleanup_policy="compact")

    def change(key: str, operation: int, value: str | None) -> None:
        ask(
            f"{('set', 'delete', 'append', 'subtract')[operation]} {key}={value}",
            altering(A_TOPIC, topic, (key, operation, value)),
        )

    for key, operation, value in [
        ("retention.ms", SET, "1000"),
        ("retention.ms", SET, "x"),
        ("retention.ms", SET, None),
        ("retention.ms", APPEND, "1"),
        ("retention.ms", SET, "-7"),
        ("no.such.key", SET, "1"),
        ("no.such.key", DELETE, None),
        ("cleanup.policy", APPEND, "delete"),
        ("cleanup.policy", APPEND, "delete"),
        ("cleanup.policy", SUBTRACT, "compact"),
        ("cleanup.policy", SUBTRACT, "never.there"),
        ("cleanup.policy", APPEND, "burn"),
        ("max.message.bytes", DELETE, None),
        ("min.insync.replicas", SET, "5"),
        ("segment.bytes", SET, "2000000"),
        ("", SET, "1"),
    ]:
        change(key, operation, value)
    ask("a key twice", altering(A_TOPIC, topic, ("retention.ms", SET, "1"), ("retention.ms", DELETE, None)))
    ask("a topic twice", altering(A_TOPIC, topic, ("retention.ms", SET, "1"), times=2))
    ask("nothing", altering(A_TOPIC, topic))
    ask("an unknown topic", altering(A_TOPIC, f"{topic}-unknown", ("retention.ms", SET, "1")))
    ask("a topic without a name", altering(A_TOPIC, "", ("retention.ms", SET, "1")))
    ask("an unknown kind", altering(99, topic, ("retention.ms", SET, "1")))
    only_tried = altering(A_TOPIC, topic, ("retention.ms", SET, "4242"))
    only_tried.validate_only = True
    ask("only validated", only_tried)
    ask("one good, one bad", altering(A_TOPIC, topic, ("retention.ms", SET, "77"), ("segment.ms", SET, "x")))
    ask("the last", altering(A_TOPIC, topic, ("flush.ms", SET, "5")))
    until(lambda: described(interview, topic).get("flush.ms") == "5", "the last change is shown")
    interview.answers["described"] = described(interview, topic)


def test_brokers(interview: Interview) -> None:
    """Only tried out: the broker is shared with other tests."""

    def trying(name: str, key: str, value: str | None) -> None:
        request = altering(A_BROKER, name, (key, SET, value))
        request.validate_only = True
        interview.ask(f"broker {name!r}: {key}={value}", request)

    trying("1", "log.retention.ms", "1000")
    trying("", "log.retention.ms", "1000")
    trying("1", "log.retention.ms", "x")
    trying("1", "node.id", "5")
    trying("1", "no.such.key", "5")
    trying("7", "log.retention.ms", "1000")
    trying("x", "log.retention.ms", "1000")
    trying("", "message.max.bytes", "2000000")
    trying("", "num.partitions", "3")


def test_keys_of_a_consumer_group(interview: Interview) -> None:
    group, ask = interview.topic, interview.ask
    session, heartbeat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
    for key, operation, value in [
        (session, SET, "46000"),
        (session, SET, "1000"),
        (session, SET, "999999"),
        (session, SET, "x"),
        (session, SET, None),
        (session, APPEND, "46000"),
        (heartbeat, SET, "50000"),
        ("no.such.key", SET, "1"),
        ("no.such.key", DELETE, None),
        (heartbeat, DELETE, None),
    ]:
        ask(f"{operation} {key}={value}", altering(A_GROUP, group, (key, operation, value)))
    ask("no name", altering(A_GROUP, "", (session, SET, "46000")))
    resources = [
        DescribeConfigsResource(resource_type=A_GROUP, resource_name=name, configuration_keys=[session, heartbeat])
        for name in (group, "")
    ]
    request = DescribeConfigsRequest(resources=resources, include_synonyms=True)
    until(lambda: is_told(interview, request, "46000"), "the group's value is told")
    ask("described", request)


def is_told(interview: Interview, request: DescribeConfigsRequest, value: str) -> bool:
    with Wire(interview.broker.address) as wire:
        answer: Any = wire.call(request, 4)
    return any(each.value == value for each in answer.results[0].configs)
