"""What is handed from broker to broker: topics of every kind, producers in the middle of their sequences, groups.

`found` writes it on the first broker, `go_on` goes on with it on each that takes over.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compat_tests.brokers import Broker
from compat_tests.clients import READERS, Message, Stored, write_with_confluent
from compat_tests.hostile.scene import Scene, code
from compat_tests.quota_requests import set_quotas
from compat_tests.same_files.history import NOW, SEGMENT_MS, History, batches
from compat_tests.topics import create_topic
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.client.consumer_protocol import encode_subscription
from pykbroker.protocol.messages.configs import IncrementalAlterConfigsRequest
from pykbroker.protocol.messages.configs import IncrementalAlterConfigsRequestAlterableConfig as AlterableConfig
from pykbroker.protocol.messages.configs import IncrementalAlterConfigsRequestAlterConfigsResource as ConfigsResource
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykbroker.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from pykbroker.protocol.messages.metadata import MetadataRequest
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.compression import Compression

from .inventory import wait_for_coordinator

SMALL = {"segment_ms": str(SEGMENT_MS), "index_interval_bytes": "300"}
LONG_NAME = "a.topic_of-" + "x" * 200
SESSION_MS = 300_000
MEASURED = "measured"
"""A client that has next to no time."""
SPREAD = 4
GROUPS = ("simple", "members", "emptied")
TIMES = (NOW, NOW + 100, NOW + 250, NOW + 2 * SEGMENT_MS + 300)
"""Of records of the topic `times`, with others around them."""


@dataclass
class IdempotentProducer:
    """By raw requests: what it sends again is the same to the last bit."""

    producer_id: int
    topic: str
    epoch: int = 0
    sequence: int = 0
    last: tuple[bytes, int] | None = None
    """The batch and its base offset."""

    def batch(self, number: int, sequence: int, epoch: int) -> bytes:
        rows = [Record(b"key", b"%d.%d" % (number, index), (), NOW + number) for index in range(3)]
        codec = list(Compression)[number % 5]
        return encode_batch(
            rows, compression=codec, producer_id=self.producer_id, producer_epoch=epoch, base_sequence=sequence
        )


@dataclass
class Member:
    group: str
    member_id: str
    generation: int


@dataclass
class Estate:
    directories: tuple[Path, ...]
    producers: list[IdempotentProducer] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    in_spread: int = 0
    """How many records."""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def found(self, broker: Broker) -> None:
        history = History(broker)
        self._write_topics(history)
        self._delete_topics(history)
        self._set_configs(broker)
        self._set_quotas(broker, 0)
        self._commit(broker, 0)
        self._join(broker)
        for topic in ("producers", "cut", "stamped"):
            self.producers += [IdempotentProducer(Scene(broker).producer_id(), topic) for _ in range(2)]
        assert len({each.producer_id for each in self.producers}) == len(self.producers)
        self._produce(broker)

    def go_on(self, broker: Broker, turn: int) -> None:
        """What a broker that took over is asked to do."""
        history = History(broker)
        for topic in ("codecs", "producers", "stamped", "to-zstd", "cut", "sized", "compacted", "times"):
            history.append(topic, batches(4, first=1000 + 10 * turn, keys=20))
        create_topic(broker, f"of-turn-{turn}", 2)
        history.append(f"of-turn-{turn}", batches(3))
        self._delete_records(history, "codecs", 40 * turn)
        self._use_stock_clients(broker, turn)
        self._set_quotas(broker, turn)
        self._commit(broker, turn)
        self._keep_alive(broker)
        self._send_again(broker)
        producer_id = Scene(broker).producer_id()
        assert producer_id > max(each.producer_id for each in self.producers), "a producer id is given once"
        self.producers.append(IdempotentProducer(producer_id, "producers"))
        self._produce(broker)

    # Topics

    def _write_topics(self, history: History) -> None:
        history.topic("codecs", **SMALL)
        history.append("codecs", batches(60))
        history.topic("producers", **SMALL)
        history.topic("stamped", message_timestamp_type="LogAppendTime", index_interval_bytes="300")
        history.append("stamped", batches(20))
        history.topic("to-zstd", compression_type="zstd", **SMALL)
        history.append("to-zstd", batches(20))
        history.topic("cut", **SMALL)
        history.append("cut", batches(40))
        self._delete_records(history, "cut", 90)
        history.topic("sized", retention_bytes="8000", **SMALL)
        history.append("sized", batches(40))
        history.topic("times", **SMALL)
        history.append("times", [encode_batch([Record(None, b"x", (), time)]) for time in (*TIMES, *reversed(TIMES))])
        history.topic("empty")
        history.topic(LONG_NAME)
        history.append(LONG_NAME, batches(3))
        create_topic(history.broker, "spread", SPREAD)
        for index in range(SPREAD):
            history.append("spread", batches(3), partition=index)
            self.in_spread += sum(1 + number % 7 for number in range(3))
        self._compact(history)

    def _compact(self, history: History) -> None:
        """Tombstones among it, and batches that compaction left empty."""
        history.topic("compacted", cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", **SMALL)
        history.append("compacted", batches(40, keys=10, producer_ids=(100_005, 100_006)))
        rows = [Record(b"key %d" % key, None, (), NOW + 20 * SEGMENT_MS) for key in range(3)]
        history.append("compacted", [encode_batch(rows)])
        history.append("compacted", batches(1, first=200, keys=10))
        checkpoints = [directory / "cleaner-offset-checkpoint" for directory in self.directories]
        until(lambda: any("compacted 0 " in each.read_text() for each in checkpoints), "compacted is clean")
        history.alter("compacted", min_cleanable_dirty_ratio="1.0")

    def _delete_topics(self, history: History) -> None:
        for name in ("gone", "again"):
            history.topic(name)
            history.append(name, batches(3))
            history.delete_topic(name)
        # Apache Kafka puts the old directory aside a moment after its answer.
        until(lambda: not any((each / "again-0").exists() for each in self.directories), "the old one is put aside")
        history.topic("again")
        history.append("again", batches(1))

    def _delete_records(self, history: History, topic: str, start: int) -> None:
        """Returns when it is on the disk, which Apache Kafka answers before."""
        history.delete_records(topic, start)

        def is_done() -> bool:
            (directory,) = (each for each in self.directories if (each / f"{topic}-0").is_dir())
            bases = sorted(int(path.stem) for path in (directory / f"{topic}-0").glob("*.log"))
            checkpoint = (directory / "log-start-offset-checkpoint").read_text()
            return f"{topic} 0 {start}\n" in checkpoint and bases[1] > start

        until(is_done, f"{topic} begins at {start}")

    def _set_configs(self, broker: Broker) -> None:
        wanted = [
            (2, "codecs", {"retention.ms": "123456789000", "max.message.bytes": "900000"}),
            (4, "", {"message.max.bytes": "1000100"}),
            (4, "1", {"log.cleaner.threads": "2"}),
        ]
        resources = [
            ConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterableConfig(name=key, config_operation=0, value=value) for key, value in values.items()],
            )
            for kind, name, values in wanted
        ]
        with Wire(broker.address) as wire:
            answer: Any = wire.call(IncrementalAlterConfigsRequest(resources=resources), 1)
        assert [code(each.error_code) for each in answer.responses] == ["NONE"] * len(wanted)

    def _set_quotas(self, broker: Broker, turn: int) -> None:
        """Of every kind of entity, some of which come and go. Those that were there before hold on this broker."""
        if turn:
            with Wire(broker.address) as wire:
                throttled: Any = wire.call(MetadataRequest(topics=[]), 9, client_id=MEASURED)
                assert throttled.throttle_time_ms > 0
        set_quotas(broker, {"client-id": MEASURED}, {"request_percentage": 1e-7, "producer_byte_rate": 1e9 + turn})
        set_quotas(broker, {"user": "bob", "client-id": None}, {"consumer_byte_rate": 1e9 + turn})
        set_quotas(broker, {"user": "bob"}, {"controller_mutation_rate": 12.5 if turn % 2 else None})
        set_quotas(broker, {"user": f"of turn {turn}"}, {"producer_byte_rate": 1e9})
        set_quotas(broker, {"ip": "127.0.0.9"}, {"connection_creation_rate": 1000 + turn})
        if turn:
            set_quotas(broker, {"user": f"of turn {turn - 1}"}, {"producer_byte_rate": None})

    def _use_stock_clients(self, broker: Broker, turn: int) -> None:
        messages = [Message(b"%d.%d" % (turn, each), b"key", (), NOW, each % SPREAD) for each in range(4 * SPREAD)]
        written = write_with_confluent(broker.bootstrap, "spread", messages, idempotent=True)
        self.in_spread += len(written)
        for name, read in READERS.items():
            found = read(broker.bootstrap, "spread", SPREAD, self.in_spread)
            assert set(map(at, written)) <= set(map(at, found)), name

    # Producers

    def _produce(self, broker: Broker) -> None:
        """The next batch of each, two of them."""
        for producer in self.producers:
            for _ in range(2):
                batch = producer.batch(next(self._numbers), producer.sequence, producer.epoch)
                answer = Scene(broker).produce_partition(batch, producer.topic)
                assert code(answer.error_code) == "NONE", (producer, answer)
                producer.last = batch, answer.base_offset
                producer.sequence += 3

    def _send_again(self, broker: Broker) -> None:
        """What was sent last is known for what it is; so is what must not come now."""
        for producer in self.producers:
            assert producer.last is not None
            batch, offset = producer.last
            answer = Scene(broker).produce_partition(batch, producer.topic)
            assert (code(answer.error_code), answer.base_offset) == ("NONE", offset), (producer, answer)
            skipped = producer.batch(0, producer.sequence + 7, producer.epoch)
            assert Scene(broker).produce(skipped, producer.topic) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
        producer = self.producers[0]
        producer.epoch += 1
        producer.sequence = 0
        self._produce(broker)
        stale = producer.batch(0, 0, producer.epoch - 1)
        assert Scene(broker).produce(stale, producer.topic) == "INVALID_PRODUCER_EPOCH"

    # Groups

    def _commit(self, broker: Broker, turn: int) -> None:
        for group in ("simple", "emptied"):
            partitions = [
                OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=turn + index,
                    committed_leader_epoch=turn if index else -1,
                    committed_metadata=f"of turn {turn}",
                )
                for index in range(2)
            ]
            topics = [OffsetCommitRequestTopic(name="spread", partitions=partitions)]
            with Wire(broker.address) as wire:
                wait_for_coordinator(wire, group)
                answer: Any = wire.call(OffsetCommitRequest(group_id=group, topics=topics), 8)
            assert {code(each.error_code) for each in answer.topics[0].partitions} == {"NONE"}

    def _join(self, broker: Broker) -> None:
        """A static member, which stays in its group through all changes of the broker."""
        fields: dict[str, Any] = {
            "group_id": "members",
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": SESSION_MS,
            "group_instance_id": "static",
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name="range", metadata=encode_subscription(["spread"]))],
        }
        with Wire(broker.address) as wire:
            wait_for_coordinator(wire, "members")
            joined: Any = wire.call(JoinGroupRequest(**fields, member_id=""), 7)
            assert code(joined.error_code) == "NONE"
            member = Member("members", joined.member_id, joined.generation_id)
            synced: Any = wire.call(
                SyncGroupRequest(
                    group_id=member.group,
                    generation_id=member.generation,
                    member_id=member.member_id,
                    group_instance_id="static",
                    assignments=[SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"assigned")],
                ),
                4,
            )
            assert (code(synced.error_code), synced.assignment) == ("NONE", b"assigned")
        self.members.append(member)
        self._keep_alive(broker)

    def _keep_alive(self, broker: Broker) -> None:
        for member in self.members:
            request = HeartbeatRequest(
                group_id=member.group,
                generation_id=member.generation,
                member_id=member.member_id,
                group_instance_id="static",
            )
            with Wire(broker.address) as wire:
                answer: Any = wire.call(request, 3)
            assert code(answer.error_code) == "NONE"


def at(stored: Stored) -> tuple[int, int, bytes | None]:
    return stored.message.partition, stored.offset, stored.message.value
