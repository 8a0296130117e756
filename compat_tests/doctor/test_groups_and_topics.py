"""Groups that fall behind or do not come to rest, and topics whose settings say more than they do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from compat_tests.answers import TestAnswers
from compat_tests.brokers import Broker
from compat_tests.clients import WRITERS, Message
from compat_tests.topics import create_topic, fill_topic
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.messages.groups import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)

from .examined import examine

FreshBroker = Callable[..., Broker]
LAGGING, REBALANCING = "lagging", "rebalancing"
TOPIC = "records"


def test_a_group_that_falls_behind_and_one_that_nobody_reads_for(
    fresh_broker: FreshBroker, answers: TestAnswers, tmp_path: Path
) -> None:
    broker = fresh_broker()
    fill_topic(broker, TOPIC, 1, 10)
    member = KafkaConsumer(
        TOPIC,
        bootstrap_servers=broker.bootstrap,
        group_id=LAGGING,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    try:
        until(lambda: member.poll(1000), "the member reads")
        member.commit()
        with _Writing(broker):
            growing = examine(broker.bootstrap, tmp_path)
    finally:
        member.close()
    answers.same("growing", [growing.code, growing.ids])
    assert (growing.code, growing.ids) == (2, ["group-lag-growing"])
    assert f"{LAGGING} (" in growing.finding("group-lag-growing")["seen"]
    abandoned = examine(broker.bootstrap, tmp_path)
    answers.same("abandoned", [abandoned.code, abandoned.ids])
    assert (abandoned.code, abandoned.ids) == (2, ["group-without-members"])


class _Writing:
    """A producer beside the body."""

    def __init__(self, broker: Broker) -> None:
        self._producer = KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=10)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        while not self._stop.wait(0.01):
            self._producer.send(TOPIC, b"more")
        self._producer.close()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def test_a_group_whose_rebalance_does_not_end(fresh_broker: FreshBroker, answers: TestAnswers, tmp_path: Path) -> None:
    """Its leader joins, and never hands out an assignment."""
    broker = fresh_broker()
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=[REBALANCING])
    join = JoinGroupRequest(
        group_id=REBALANCING,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )

    def is_found() -> bool:
        with Wire(broker.address) as wire:
            found = wire.call(find, 4)
        assert isinstance(found, FindCoordinatorResponse)
        return found.coordinators[0].error_code == 0

    with Wire(broker.address) as wire:
        until(is_found, "the group has a coordinator")

        def joins() -> bool:
            answer = wire.call(join, 3)
            assert isinstance(answer, JoinGroupResponse)
            return answer.error_code == 0

        until(joins, "the member joins")
        found = examine(broker.bootstrap, tmp_path)
    answers.same("finding", [found.code, found.ids])
    assert (found.code, found.ids) == (2, ["group-rebalancing"])
    assert found.finding("group-rebalancing")["seen"].endswith(f"{REBALANCING} (CompletingRebalance)")


def test_a_group_that_reads_and_one_that_is_done_are_fine(
    fresh_broker: FreshBroker, answers: TestAnswers, tmp_path: Path
) -> None:
    broker = fresh_broker()
    fill_topic(broker, TOPIC, 1, 10)
    member = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=LAGGING, enable_auto_commit=False)
    only = TopicPartition(TOPIC, 0)
    member.assign([only])
    member.seek_to_end(only)
    assert member.position(only) == 10
    member.commit()
    member.close()
    found = examine(broker.bootstrap, tmp_path)
    answers.same("findings", [found.code, found.ids, found.document["looked_at"]["groups"]])
    assert (found.code, found.ids, found.document["looked_at"]["groups"]) == (0, [], 1)


def test_settings_that_do_not_do_what_they_say(fresh_broker: FreshBroker, answers: TestAnswers, tmp_path: Path) -> None:
    broker = fresh_broker()
    create_topic(broker, "careful", configs={"min.insync.replicas": "2"})
    create_topic(broker, "careless", configs={"unclean.leader.election.enable": "true"})
    found = examine(broker.bootstrap, tmp_path)
    answers.same("findings", [found.code, found.document["findings"]])
    assert (found.code, found.ids) == (2, ["min-isr-above-replicas", "unclean-elections"])
    assert found.finding("min-isr-above-replicas")["seen"].endswith("careful (2 of 1)")
    # One replica is enough for acks=all all the same, as the advice says.
    assert [each.offset for each in WRITERS["confluent-kafka"](broker.bootstrap, "careful", [Message(b"one")])] == [0]
