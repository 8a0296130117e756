"""Members of a share group (KIP-932), librdkafka's and the project's own: they accept, release, reject and leave alone.

Now and then a record is released or rejected, and the project's members let some of their locks run out.
`tests/history/shares.py` says what has to hold of it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping
from typing import Any

import trio
from confluent_kafka import AcknowledgeType as ConfluentType
from confluent_kafka import KafkaException, Message, ShareConsumer

from compat_tests.waiting import until
from pykbroker.client.addresses import parse_bootstrap_servers
from pykbroker.client.cluster import Cluster
from pykbroker.client.configs import Resource, ResourceType, alter_configs
from pykbroker.client.errors import ClientError, KafkaError
from pykbroker.client.fetched import ConsumedRecord
from pykbroker.client.share_acknowledgements import AcknowledgeType
from pykbroker.client.share_consumer import ShareConsumer as OwnShareConsumer
from pykbroker.client.share_consumer import open_share_consumer
from pykbroker.client.share_groups import ShareOffset, fetch_share_offsets
from tests.history.operations import OK, Value
from tests.history.recorder import Recording

from .calls import close
from .reading import last_offsets
from .stage import CALL_TIMEOUT_S, ORDERS, PLAIN, Stage, decode, key_of, partitions, pause

SHARERS = "sharers"
SHARED_TOPICS = (PLAIN, ORDERS)
DELIVERY_LIMIT = 10
LOCK_MS = 5_000
PROPERTIES = {
    "share.coordinator.state.topic.num.partitions": "3",
    "group.share.delivery.count.limit": f"{DELIVERY_LIMIT}",
    "group.share.record.lock.duration.ms": f"{LOCK_MS}",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.session.timeout.ms": "6000",
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "1000",
}
"""Of nodes: locks and sessions that a round sees the end of, and a limit that no record gets to by chance."""

_MEMBERS_OWN_LIFE_S = 30.0
_RELEASED, _REJECTED, _LEFT_ALONE = 0.04, 0.01, 0.005
"""How likely, of a record."""
_MOST_GIVEN_BACK = 2
"""How often a record was delivered at most that a member gives back on purpose: the others get it to its end."""
_ACCEPT, _RELEASE, _REJECT, _ALONE = "accept", "release", "reject", ""

_CONFLUENT_TYPES = {
    _ACCEPT: ConfluentType.ACCEPT,
    _RELEASE: ConfluentType.RELEASE,
    _REJECT: ConfluentType.REJECT,
}
_OWN_TYPES = {_ACCEPT: AcknowledgeType.ACCEPT, _RELEASE: AcknowledgeType.RELEASE, _REJECT: AcknowledgeType.REJECT}

Deliveries = dict[str, list[tuple[int, int]]]
"""By partition: offset and count."""


def begin_sharing(stage: Stage) -> None:
    """The group reads what is committed, from the first record on. Raises ClientError."""
    keys = [key_of(each) for topic in SHARED_TOPICS for each in partitions(topic)]
    stage.recorder.tell(stage.recorder.new_process(), "shared", group=SHARERS, limit=DELIVERY_LIMIT, keys=keys)
    configs = {"share.auto.offset.reset": "earliest", "share.isolation.level": "read_committed"}

    async def begin() -> None:
        async with _cluster(stage) as cluster:
            await alter_configs(cluster, Resource(ResourceType.GROUP, SHARERS), configs, ())

    trio.run(begin)


def _cluster(stage: Stage) -> Cluster:
    return Cluster(
        parse_bootstrap_servers(stage.bootstrap),
        client_id="sharer",
        request_timeout_ms=CALL_TIMEOUT_S * 1000,
        api_timeout_ms=CALL_TIMEOUT_S * 2000,
    )


def wait_until_all_is_shared(stage: Stage, deadline_s: float) -> None:
    """Raises AssertionError with where the group is, and where the partitions end."""
    wanted = [each for topic in SHARED_TOPICS for each in partitions(topic)]
    ends: dict[str, int] = {}
    offsets: dict[str, ShareOffset] = {}

    def is_all_shared() -> bool:
        try:
            ends.update(last_offsets(stage, wanted, 0))
            offsets.update(trio.run(_offsets, stage))
        except (KafkaException, ClientError):
            return False
        return all(is_at_end(offsets.get(key), end) for key, end in ends.items())

    try:
        until(is_all_shared, "all is shared", deadline_s)
    except AssertionError as failed:
        raise AssertionError(f"{failed}: the group is at {offsets}, the partitions end at {ends}") from None


def is_at_end(offset: ShareOffset | None, end: int) -> bool:
    """Tell whether nothing is left to be delivered: the start offset is the end, or all between them is settled.

    A leader stores a new start offset with its next write (Kafka's SharePartition does), so that a group which has had
    everything may be behind by what the last write settled, and its lag is 0 (KIP-1226).
    """
    return offset is not None and (offset.start_offset == end or offset.lag == 0)


async def _offsets(stage: Stage) -> Mapping[str, ShareOffset]:
    async with _cluster(stage) as cluster:
        return {f"{of}": offset for of, offset in (await fetch_share_offsets(cluster, SHARERS)).items()}


def word_on(count: int, rng: random.Random) -> str:
    """Return what a member says of a record that it got for the `count`-th time; nothing is what leaves it alone."""
    draw = rng.random()
    if draw < _REJECTED:
        return _REJECT
    if count > _MOST_GIVEN_BACK:
        return _ACCEPT
    if draw < _REJECTED + _RELEASED:
        return _RELEASE
    return _ALONE if draw < _REJECTED + _RELEASED + _LEFT_ALONE else _ACCEPT


# librdkafka's


def share_with_confluent(stage: Stage, rng: random.Random) -> None:
    """One member after another, as long as somebody writes; the rest is for the project's own.

    librdkafka 2.16 acknowledges no acquired offsets that come without any record, such as an abort marker whose records
    the broker has left out: they come again until the limit ends them, which would take the end of a round a minute.
    """
    while stage.writing.is_set():
        asked_ns = stage.recorder.now_ns()
        consumer = ShareConsumer(stage.config(group_id=SHARERS, share_acknowledgement_mode="explicit"))
        proc = stage.recorder.new_process()
        try:
            consumer.subscribe([*SHARED_TOPICS])
            until_s = time.monotonic() + rng.random() * _MEMBERS_OWN_LIFE_S
            while stage.writing.is_set() and time.monotonic() < until_s:
                _share_some(stage, consumer, proc, rng, asked_ns)
        except KafkaException as ended:
            stage.progress.note_end(ended)
            pause(rng, 1.0)
        finally:
            _close(stage, consumer)


def _close(stage: Stage, consumer: ShareConsumer) -> None:
    """Leave; where the brokers cannot be asked, they find out by themselves."""
    try:
        close(stage, consumer)
    except KafkaException as ended:
        stage.progress.note_end(ended)


def _share_some(stage: Stage, consumer: ShareConsumer, proc: int, rng: random.Random, asked_ns: int) -> None:
    """asked_ns: when the consumer began, as it fetches on its own account. Raises KafkaException."""
    polling = stage.recorder.invoke(proc, "deliver")
    polling.note(asked_ns=asked_ns)
    messages = [each for each in consumer.poll(0.5) or () if each.error() is None]
    polling.delivered(SHARERS, _given_by_confluent(messages))
    polling.ok()
    if not messages:
        return
    said: dict[str, Deliveries] = {}
    for message in messages:
        key, offset, count = f"{message.topic()}-{message.partition()}", message.offset(), message.delivery_count()
        assert offset is not None
        assert count is not None, f"{key} offset {offset} has no delivery count"
        word = word_on(count, rng) or _ACCEPT  # nothing is polled before there is a word on each
        consumer.acknowledge(message, _CONFLUENT_TYPES[word])
        said.setdefault(word, {}).setdefault(key, []).append((offset, count))
    saying = stage.recorder.invoke(proc, "acknowledge")
    _note(saying, said)
    try:
        answered = consumer.commit_sync(CALL_TIMEOUT_S)
    except KafkaException:
        saying.info()
        raise
    taken = {key_of(partition): OK for partition, error in answered.items() if error is None}
    saying.acknowledged(taken)
    saying.ok()
    if taken:
        stage.progress.note()


def _given_by_confluent(messages: Iterable[Message]) -> dict[str, list[tuple[int, Value, int]]]:
    found: dict[str, list[tuple[int, Value, int]]] = {}
    for each in messages:
        topic, value, offset = each.topic(), each.value(), each.offset()
        assert topic is not None
        assert value is not None
        assert offset is not None
        record = (offset, decode(topic, value), each.delivery_count() or 0)
        found.setdefault(f"{topic}-{each.partition()}", []).append(record)
    return found


def _note(recording: Recording, said: Mapping[str, Deliveries]) -> None:
    for word, deliveries in said.items():
        recording.acknowledging(SHARERS, word, deliveries)


# The project's own


def share_with_own(stage: Stage, rng: random.Random) -> None:
    """One member after another."""
    while stage.reading.is_set():
        failures: list[ClientError] = []
        try:
            trio.run(_live, stage, rng)
        except* ClientError as ended:
            failures += _leaves(ended)
        if failures:
            first = failures[0]
            stage.progress.note_end(first.error_code.name if isinstance(first, KafkaError) else first)
            pause(rng, 1.0)


def _leaves(group: BaseExceptionGroup[Any]) -> list[Any]:
    return [
        leaf
        for each in group.exceptions
        for leaf in (_leaves(each) if isinstance(each, BaseExceptionGroup) else [each])
    ]


async def _live(stage: Stage, rng: random.Random) -> None:
    proc = stage.recorder.new_process()
    async with _cluster(stage) as cluster, open_share_consumer(cluster, SHARERS, SHARED_TOPICS) as consumer:
        until_s = time.monotonic() + rng.random() * _MEMBERS_OWN_LIFE_S
        given: list[ConsumedRecord] = []
        while stage.reading.is_set() and time.monotonic() < until_s:
            given = await _share_some_more(stage, consumer, proc, rng, given)


async def _share_some_more(
    stage: Stage, consumer: OwnShareConsumer, proc: int, rng: random.Random, given: list[ConsumedRecord]
) -> list[ConsumedRecord]:
    """Acknowledge what the last call returned, with the fetch for more, which is returned. Raises ClientError."""
    polling = stage.recorder.invoke(proc, "deliver")
    said: dict[str, Deliveries] = {}
    for record in given:
        assert record.delivery_count is not None
        if word := word_on(record.delivery_count, rng):
            consumer.acknowledge([record], _OWN_TYPES[word])
            at = said.setdefault(word, {}).setdefault(f"{record.topic}-{record.partition}", [])
            at.append((record.offset, record.delivery_count))
    _note(polling, said)
    consumer.refused.clear()
    try:
        records = await consumer.poll()
    except ClientError:
        polling.info()
        raise
    refused = {f"{of}" for of in consumer.refused}
    taken = {key: OK for deliveries in said.values() for key in deliveries if key not in refused}
    polling.acknowledged(taken)
    polling.delivered(SHARERS, _given_by_own(records))
    polling.ok()
    if taken:
        stage.progress.note()
    return records


def _given_by_own(records: Iterable[ConsumedRecord]) -> dict[str, list[tuple[int, Value, int]]]:
    found: dict[str, list[tuple[int, Value, int]]] = {}
    for each in records:
        assert each.value is not None
        record = (each.offset, decode(each.topic, bytes(each.value)), each.delivery_count or 0)
        found.setdefault(f"{each.topic}-{each.partition}", []).append(record)
    return found
