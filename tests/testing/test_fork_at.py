"""Forks of a moment that is over: a broker as it was when an entry of its journal had ended."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compat_tests.waiting import until
from pykbroker.client.errors import TimedOut
from pykbroker.control.journal.recorded_request import RecordedRequest
from pykbroker.control.savepoints import node_copy
from pykbroker.protocol.errors import ErrorCode
from pykbroker.server.node.composition.parts import NodeParts
from pykbroker.server.replicas.replica_manager import ReplicaManager
from pykbroker.testing import Broker, SavepointRefused, operations

from .test_fork import produce_raw


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def partitions_of(broker: Broker) -> ReplicaManager:
    node = broker.nodes[0].node
    assert node is not None
    assert node.parts is not None
    assert node.parts.broker_role is not None
    return node.parts.broker_role.broker.partitions


def ended(request: RecordedRequest) -> float:
    assert request.took_ms is not None
    return request.as_json["received_ms"] + request.took_ms


def last(broker: Broker, api: str) -> int:
    return broker.requests(api)[-1].number


def test_records_offsets_and_topics_are_those_of_then(broker: Broker) -> None:
    topic = broker.create_topic("t", partitions=2, configs={"retention.ms": 12345678})
    created = broker.requests("CreateTopics")[-1]
    topic.produce("one", partition=0)
    topic.produce("two", partition=1)
    produced = broker.requests("Produce")[-1]
    broker.group("g").commit({("t", 0): 1})
    committed = last(broker, "OffsetCommit")
    topic.alter_configs({"retention.ms": 1_000_000})
    altered = last(broker, "IncrementalAlterConfigs")
    topic.produce("three", partition=0)
    broker.group("g").commit({("t", 0): 2})
    broker.create_topic("later").produce("four")
    with broker.fork(at=created) as fork:
        assert fork.topics() == ["t"]
        assert fork.topic("t").values() == []
        assert fork.topic("t").partition_count() == 2
    with broker.fork(at=produced) as fork:
        assert set(fork.topic("t").values()) == {b"one", b"two"}
        assert fork.topic("t").configs()["retention.ms"] == "12345678"
        fork.topic("t").produce("another", partition=0)
        assert fork.topic("t").values(partition=0) == [b"one", b"another"]
    with broker.fork(at=committed) as fork:
        assert set(fork.group("g").offsets().values()) == {1}
        assert fork.topic("t").configs()["retention.ms"] == "12345678"
        with fork.fork() as grandchild:
            assert set(grandchild.topic("t").values()) == {b"one", b"two"}
    with broker.fork(at=altered) as fork:
        assert fork.topic("t").configs()["retention.ms"] == "1000000"
        fork.restart()
        assert set(fork.topic("t").values()) == {b"one", b"two"}
    assert topic.values(partition=0) == [b"one", b"three"]
    assert broker.topics() == ["later", "t"]


def test_a_transaction_that_was_open_then_is_open(broker: Broker) -> None:
    broker.create_topic("t")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("t", b"one")
    producer.flush()
    is_open = last(broker, "Produce")
    producer.commit_transaction()
    ended = last(broker, "EndTxn")
    assert broker.topic("t").values() == [b"one"]
    with broker.fork(at=is_open) as fork:
        assert fork.topic("t").values() == []
        until(
            lambda: [each.transactional_id for each in fork.why.lso("t", 0).transactions] == ["x"],
            "the fork's coordinator knows the transaction",
        )
        again = Producer({"bootstrap.servers": fork.bootstrap_servers, "transactional.id": "x"})
        again.init_transactions()
        again.begin_transaction()
        again.produce("t", b"two")
        again.commit_transaction()
        assert fork.topic("t").values() == [b"two"]
    with broker.fork(at=ended) as fork:
        until(lambda: fork.topic("t").values() == [b"one"], "the transaction is committed")


def test_a_producer_goes_on_behind_its_sequence_of_then(broker: Broker) -> None:
    broker.create_topic("t")
    assert produce_raw(broker, "t", 0) == (ErrorCode.NONE, 0)
    first = last(broker, "Produce")
    assert produce_raw(broker, "t", 1) == (ErrorCode.NONE, 1)
    with broker.fork(at=first) as fork:
        assert produce_raw(fork, "t", 0) == (ErrorCode.NONE, 0), "a duplicate"
        assert produce_raw(fork, "t", 2)[0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert produce_raw(fork, "t", 1) == (ErrorCode.NONE, 1)


def test_a_topic_that_was_deleted(broker: Broker) -> None:
    broker.create_topic("t").produce("one")
    produced = last(broker, "Produce")
    broker.topic("t").delete()
    deleted = last(broker, "DeleteTopics")
    broker.create_topic("t").produce("another", "and another")
    with pytest.raises(SavepointRefused, match=f"topic t was deleted after #{produced}, and its records with it"):
        broker.fork(at=produced)
    with broker.fork(at=deleted) as fork:
        assert fork.topics() == []
        assert fork.create_topic("t").values() == []
    with broker.fork(at=last(broker, "Produce")) as fork:
        assert fork.topic("t").values() == [b"another", b"and another"]


def test_records_that_were_deleted(broker: Broker) -> None:
    topic = broker.create_topic("t")
    topic.produce("one", "two", "three")
    produced = last(broker, "Produce")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (done,) = admin.delete_records([TopicPartition("t", 0, 2)]).values()
    done.result()
    deleted = last(broker, "DeleteRecords")
    topic.produce("four")
    with pytest.raises(SavepointRefused, match=rf"t-0 has lost the records 0 to 1 after #{produced}, by retention or"):
        broker.fork(at=produced)
    with broker.fork(at=deleted) as fork:
        assert fork.topic("t").values() == [b"three"]


def test_records_that_were_compacted(broker: Broker) -> None:
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001", "segment.bytes": "1048576"}
    topic = broker.create_topic("t", configs=configs)
    for value in ("one", "two"):
        topic.produce(value, key="k")
    produced = last(broker, "Produce")
    for _ in range(8):
        topic.produce("x" * 300_000, key="k")
    partitions = partitions_of(broker)
    (partition,) = partitions.partitions()
    directory = partitions.logs.directory_of(partition.log)
    assert directory is not None
    until(lambda: directory.cleaned_offset(next(iter(directory.logs))) is not None, "compaction", 40)
    with pytest.raises(SavepointRefused, match=f"t-0 was compacted after #{produced}: records that it had"):
        broker.fork(at=produced)


def test_records_that_are_compacted_while_they_are_copied(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001", "segment.bytes": "1048576"}
    topic = broker.create_topic("t", configs=configs)
    for value in ("one", "two"):
        topic.produce(value, key="k")
    produced = last(broker, "Produce")
    for _ in range(8):
        topic.produce("x" * 300_000, key="k")
    write_logs = node_copy._write_logs

    def write_behind_a_compaction(copy: node_copy._Copy) -> None:
        monkeypatch.setattr(node_copy, "_write_logs", write_logs)
        broker.clock.advance("1h", scope="tombstones")
        write_logs(copy)

    monkeypatch.setattr(node_copy, "_write_logs", write_behind_a_compaction)
    with pytest.raises(SavepointRefused, match=f"t-0 was compacted after #{produced}: records that it had"):
        broker.fork(at=produced)


def test_records_that_are_compacted_while_the_copy_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001", "segment.bytes": "1048576"}
    with Broker({"log.cleaner.backoff.ms": 2_000_000_000}) as broker:
        topic = broker.create_topic("t", configs=configs)
        topic.produce("one", key="k")
        produced = last(broker, "Produce")
        topic.produce("two", key="k")
        topic.produce(*["x" * 600_000] * 2, key="filler")
        real, cleaner = node_copy._renew, partitions_of(broker).cleaner

        async def clean_first(copy: node_copy._Copy, parts: NodeParts) -> bool:
            await cleaner.clean_all()
            return await real(copy, parts)

        monkeypatch.setattr(node_copy, "_renew", clean_first)
        with pytest.raises(SavepointRefused, match=f"t-0 was compacted after #{produced}: records that it had"):
            broker.fork(at=produced)


def test_what_a_crash_took(broker: Broker) -> None:
    topic = broker.create_topic("t")
    topic.produce("flushed")
    first = last(broker, "Produce")
    (partition,) = partitions_of(broker).partitions()
    until(lambda: partition.log.unflushed_messages == 0, "the first flush, which comes at once")
    topic.produce("lost")
    produced = last(broker, "Produce")
    broker.crash(lose_unflushed=True)
    broker.start()
    broker.topic("t").produce("in its place")
    with pytest.raises(SavepointRefused, match=f"t-0 ended at 2 at #{produced}, and at 1 later: what was not flushed"):
        broker.fork(at=produced)
    with broker.fork(at=first) as fork:
        assert fork.topic("t").values() == [b"flushed"]


def test_what_a_crash_took_of_a_log_that_may_have_holes(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    configs = {"cleanup.policy": "compact", "segment.bytes": 1 << 20, "min.compaction.lag.ms": 86_400_000}
    topic = broker.create_topic("t", configs=configs)
    topic.produce("flushed", key="k")
    first = last(broker, "Produce")
    (partition,) = partitions_of(broker).partitions()
    until(lambda: partition.log.unflushed_messages == 0, "the first flush, which comes at once")
    lost = []
    for _ in range(8):
        topic.produce("x" * 300_000, key="k")
        lost.append(last(broker, "Produce"))
    broker.crash(lose_unflushed=True)
    broker.start()
    assert broker.topic("t").end_offsets() == {0: 7}, "the name of the last segment is there"
    monkeypatch.setattr(operations, "STANDSTILL_S", 1.0)
    with pytest.raises(TimedOut, match="t-0 ends at 7, and has no record from 1 on"):
        broker.topic("t").values()
    for number in lost:
        with pytest.raises(SavepointRefused, match=f"at #{number}, and .*: what was not flushed was lost"):
            broker.fork(at=number)
    with broker.fork(at=first) as fork:
        assert fork.topic("t").values() == [b"flushed"]


def test_a_point_in_front_of_a_restart(broker: Broker) -> None:
    topic = broker.create_topic("t")
    topic.produce("one")
    produced = last(broker, "Produce")
    broker.restart()
    broker.topic("t").produce("two")
    broker.kill()
    broker.start()
    broker.topic("t").produce("three")
    with broker.fork(at=produced) as fork:
        assert fork.topic("t").values() == [b"one"]
    assert broker.topic("t").values() == [b"one", b"two", b"three"]


def test_entries_that_are_none(broker: Broker) -> None:
    broker.create_topic("t")
    with pytest.raises(SavepointRefused, match=r"the journal has no #1000000: it has #1 to #\d+"):
        broker.fork(at=1_000_000)
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "fetch.wait.max.ms": 20_000, "client.id": "w"}
    )
    consumer.assign([TopicPartition("t", 0, 0)])
    assert consumer.poll(0.1) is None
    until(lambda: any(each.outcome == "waiting" for each in broker.requests("Fetch", client_id="w")), "a fetch waits")
    waiting = broker.requests("Fetch", client_id="w")[-1]
    with pytest.raises(SavepointRefused, match=f"#{waiting.number} had not ended yet"):
        broker.fork(at=waiting)
    consumer.close()
    broker.journal.clear()
    with pytest.raises(SavepointRefused, match="the journal has forgotten #1: it"):
        broker.fork(at=1)
    with Broker(journal=False) as other, pytest.raises(SavepointRefused, match="there is no journal"):
        other.fork(at=1)


def test_a_savepoint_of_then(broker: Broker, tmp_path) -> None:  # type: ignore[no-untyped-def]
    topic = broker.create_topic("t")
    topic.produce("one")
    produced = last(broker, "Produce")
    topic.produce("two")
    broker.save(tmp_path / "then", at=produced)
    with Broker(savepoint=tmp_path / "then") as other:
        assert other.topic("t").values() == [b"one"]


# Any point of any history


class Model:
    """The state that a broker should have. topics: records and one configuration; offsets: committed, by group."""

    def __init__(self) -> None:
        self.topics: dict[str, tuple[list[bytes | None], str | None]] = {}
        self.offsets: dict[str, int] = {}
        self.lives: dict[str, int] = {}

    def copy(self) -> Model:
        copy = Model()
        copy.topics = {name: (list(values), config) for name, (values, config) in self.topics.items()}
        copy.offsets, copy.lives = dict(self.offsets), dict(self.lives)
        return copy

    @classmethod
    def of(cls, broker: Broker, groups: Iterable[str]) -> Model:
        found = cls()
        for name in broker.topics():
            topic = broker.topic(name)
            found.topics[name] = (topic.values(), topic.configs()["retention.ms"])
        for group in groups:
            (found.offsets[group],) = broker.group(group).offsets().values()
        return found


NAMES = st.sampled_from(["a", "b"])
OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["create", "produce", "produce", "delete", "commit", "configure", "restart"]), NAMES),
    min_size=3,
    max_size=9,
)


def carry_out(broker: Broker, model: Model, operation: str, name: str, number: int) -> None:
    match operation:
        case "create" if name not in model.topics:
            broker.create_topic(name, configs={"retention.ms": "1000000000"})
            model.topics[name] = [], "1000000000"
            model.lives[name] = number
        case "produce" if name in model.topics:
            broker.topic(name).produce(f"{number}")
            model.topics[name][0].append(b"%d" % number)
        case "delete" if name in model.topics:
            broker.topic(name).delete()
            del model.topics[name], model.lives[name]
            if name == "a":  # its offsets go too, a moment later
                until(lambda: not any(broker.group(each).offsets() for each in model.offsets), "the offsets are gone")
                model.offsets.clear()
        case "commit" if "a" in model.topics:
            broker.group(name).commit({("a", 0): number})
            model.offsets[name] = number
        case "configure" if name in model.topics:
            config = str(2_000_000_000 + number)
            broker.topic(name).alter_configs({"retention.ms": config})
            model.topics[name] = model.topics[name][0], config
        case "restart":
            (broker.restart if name == "a" else lambda: (broker.kill(), broker.start()))()


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(OPERATIONS)
def test_a_fork_at_each_entry_is_what_was_there(operations: list[tuple[str, str]]) -> None:
    model = Model()
    with Broker() as broker:
        then: dict[int, Model] = {}
        for number, (operation, name) in enumerate([("create", "a"), *operations], 1):
            carry_out(broker, model, operation, name, number)
            then[broker.journal.position] = model.copy()
        for position, expected in then.items():
            deleted = {topic for topic, life in expected.lives.items() if model.lives.get(topic) != life}
            if deleted:
                with pytest.raises(SavepointRefused, match=r"topic [ab] was deleted after"):
                    broker.fork(at=position)
                continue
            with broker.fork(at=position) as fork:
                found = Model.of(fork, expected.offsets)
                assert (found.topics, found.offsets) == (expected.topics, expected.offsets)


def test_under_load_all_logs_are_of_one_moment(broker: Broker) -> None:
    """Who commits an offset behind its record never finds it ahead of the records, at whatever entry."""
    broker.create_topic("t")
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})
    is_over = threading.Event()

    def fill() -> None:
        while not is_over.is_set():
            producer.produce("t", b"x")
            producer.flush()

    thread = threading.Thread(target=fill)
    thread.start()
    try:
        for _ in range(40):
            until(lambda: consumer.get_watermark_offsets(TopicPartition("t", 0), 10)[1] > 0, "there are records")
            end = consumer.get_watermark_offsets(TopicPartition("t", 0), 10)[1]
            consumer.commit(offsets=[TopicPartition("t", 0, end)], asynchronous=False)
    finally:
        is_over.set()
        thread.join()
        consumer.close()
    commits = broker.requests("OffsetCommit")
    for commit in commits[:: len(commits) // 4]:
        before = [each for each in broker.requests("Produce") if ended(each) <= ended(commit)]
        with broker.fork(at=commit) as fork:
            end = fork.topic("t").end_offsets()[0]
            (offset,) = fork.group("g").offsets().values()
            (asked,) = commit.request["topics"][0]["partitions"]
            assert asked["committed_offset"] == offset <= end
            assert len(before) <= end <= len(before) + 1, "one may be appended, and not answered yet"
