"""What clients do to both brokers, in the same order and with the same bytes: raw requests of one connection each."""

import random
import time
from collections.abc import Iterable, Sequence
from typing import Any

from compat_tests.brokers import Broker
from compat_tests.hostile.scene import Scene, code
from compat_tests.topics import create_topic
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
)
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequestAlterableConfig as AlterableConfig,
)
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequestAlterConfigsResource as AlterConfigsResource,
)
from pykbroker.protocol.messages.offsets import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from pykbroker.protocol.messages.topics import DeleteTopicsRequest
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.compression import Compression
from pykbroker.protocol.schema import Message

TOPIC, SET = 2, 0
NOW = int(time.time() * 1000)
"""One moment for all brokers: producers whose last record is a day old are forgotten."""
SEGMENT_MS = 1000

CODECS = tuple(Compression)


class History:
    """One broker's share of it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._scene = Scene(broker)

    def topic(self, name: str, **configs: str) -> None:
        """`segment_ms="1000"` sets segment.ms."""
        create_topic(self.broker, name, 1, {key.replace("_", "."): value for key, value in configs.items()})

    def alter(self, topic: str, **configs: str) -> None:
        entries = [
            AlterableConfig(name=key.replace("_", "."), config_operation=SET, value=value)
            for key, value in configs.items()
        ]
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=entries)
        answer = self._call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert [code(each.error_code) for each in answer.responses] == ["NONE"]

    def delete_topic(self, name: str) -> None:
        answer = self._call(DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), 5)
        assert [code(each.error_code) for each in answer.responses] == ["NONE"]

    def delete_records(self, topic: str, offset: int) -> None:
        partitions = [DeleteRecordsPartition(partition_index=0, offset=offset)]
        topics = [DeleteRecordsTopic(name=topic, partitions=partitions)]
        answer = self._call(DeleteRecordsRequest(topics=topics, timeout_ms=10_000), 2)
        assert [code(each.error_code) for each in answer.topics[0].partitions] == ["NONE"]

    def _call(self, request: Message, version: int) -> Any:
        with self._scene.wire() as wire:
            return wire.call(request, version)

    def append(self, topic: str, batches: Iterable[bytes], *, partition: int = 0) -> None:
        answers = [self._scene.produce_partition(batch, topic, partition=partition) for batch in batches]
        assert {code(answer.error_code) for answer in answers} <= {"NONE"}, answers


def records(seed: int, count: int, start_ms: int, *, keys: int | None = None) -> list[Record]:
    """Headers, empty values, and timestamps that go back and forth. Without `keys`, null keys and values as well."""
    rng = random.Random(seed)
    made: list[Record] = []
    for index in range(count):
        value: bytes | None = rng.choice((b"", rng.randbytes(rng.randrange(1, 300)), b"value " * rng.randrange(1, 50)))
        headers: tuple[tuple[str, bytes | None], ...] = (("h", b"x"), ("", None))[: rng.randrange(3)]
        key: bytes | None = b"key %d" % rng.randrange(keys or 1000)
        if keys is None:
            key, value = rng.choice(((key, value), (key, None), (None, value)))
        made.append(Record(key, value, headers, start_ms + rng.randrange(SEGMENT_MS // 2) + index % 3))
    return made


def batches(
    count: int,
    *,
    first: int = 0,
    keys: int | None = None,
    codecs: Sequence[Compression] = CODECS,
    producer_ids: Sequence[int] = (),
    producer_epoch: int = 0,
) -> list[bytes]:
    """Every tenth begins a segment by its timestamp where segment.ms is SEGMENT_MS. Producers take turns."""
    made = []
    sequences = dict.fromkeys(producer_ids, 0)
    for number in range(first, first + count):
        rows = records(number, 1 + number % 7, NOW + number // 10 * 2 * SEGMENT_MS, keys=keys)
        codec = codecs[number % len(codecs)]
        if not producer_ids:
            made.append(encode_batch(rows, compression=codec))
            continue
        producer_id = producer_ids[number % len(producer_ids)]
        sequence = sequences[producer_id]
        sequences[producer_id] += len(rows)
        made.append(
            encode_batch(
                rows,
                compression=codec,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=sequence,
            )
        )
    return made
