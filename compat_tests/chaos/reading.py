"""Readers of chosen partitions, members of a group, those who look at committed offsets, and the last reader of all."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from compat_tests.waiting import DEADLINE_S, until

from .calls import close
from .contents import Contents
from .groups import GROUPS
from .stage import CALL_TIMEOUT_S, PLAIN, Stage, all_partitions, found_in, key_of, partitions, pause
from .truncation import TruncationReported

_NOTHING_COMMITTED = -1
_READERS_OWN_LIFE_S = 40.0
MOST_READ_AGAIN = 2_000
"""Of each partition, by a reader that takes another one's place: the judge gives it ten seconds to catch up, however
long a round is.
"""
_MEMBERS_OWN_LIFE_S = 30.0


def read_committed(stage: Stage, rng: random.Random) -> None:
    _read(stage, rng, "read_committed")


def read_uncommitted(stage: Stage, rng: random.Random) -> None:
    _read(stage, rng, "read_uncommitted")


def _read(stage: Stage, rng: random.Random, isolation: str) -> None:
    """From the beginning of the round on; now and then another reader takes its place."""
    reached: dict[str, int] = {}
    while stage.reading.is_set():
        proc = stage.recorder.new_process()
        stage.recorder.tell(proc, "assign")
        consumer = _assigned_consumer(stage, where_to_begin(stage, reached), isolation)
        until_s = time.monotonic() + rng.random() * _READERS_OWN_LIFE_S
        while stage.reading.is_set() and time.monotonic() < until_s:
            recording = stage.recorder.invoke(proc, "poll")
            recording.note(isolation=isolation)
            try:
                recording.polled(found := found_in(consumer.consume(500, timeout=0.5)))
                reached.update((key, records[-1][0]) for key, records in found.items())
            except TruncationReported as reported:  # this reader has ended
                recording.polled(reported.found)
                recording.ok()
                reported.refute(stage.bootstrap)
                break
            recording.ok()
            if found:
                stage.progress.note()
        close(stage, consumer)


def where_to_begin(stage: Stage, reached: Mapping[str, int]) -> list[TopicPartition]:
    """Return the place for a new reader in each partition: some records before the last one that was read, or the
    beginning of the round. reached: the last offset that was read in each partition.
    """
    beginnings = [*map(stage.beginning, all_partitions())]
    for each in beginnings:
        each.offset = max(each.offset, reached.get(key_of(each), 0) - MOST_READ_AGAIN)
    return beginnings


def _assigned_consumer(stage: Stage, assigned: Sequence[TopicPartition], isolation: str, **more: Any) -> Consumer:
    config = stage.consumer_config(group_id="unused", auto_offset_reset="error", isolation_level=isolation, **more)
    consumer = Consumer(config)
    consumer.assign(list(assigned))
    return consumer


def live_in_a_classic_group(stage: Stage, rng: random.Random) -> None:
    _live_in_a_group(stage, rng, "readers")


def live_in_a_consumer_group(stage: Stage, rng: random.Random) -> None:
    _live_in_a_group(stage, rng, "newer-readers")


def _live_in_a_group(stage: Stage, rng: random.Random, group: str) -> None:
    """One member after another, each a process of its own, which commits what it has read."""
    while stage.reading.is_set():
        proc = stage.recorder.new_process()
        stage.recorder.tell(proc, "subscribe")
        consumer = Consumer(
            stage.consumer_config(
                group_id=group,
                auto_offset_reset="earliest",
                isolation_level="read_committed",
                **GROUPS[group],
            )
        )
        consumer.subscribe([PLAIN])
        until_s = time.monotonic() + rng.random() * _MEMBERS_OWN_LIFE_S
        while stage.reading.is_set() and time.monotonic() < until_s:
            recording = stage.recorder.invoke(proc, "poll")
            found = found_in(consumer.consume(200, timeout=0.5))
            recording.polled(found)
            recording.ok()
            if found:
                _commit(stage, consumer, proc, group, found)
            pause(rng, 0.2)
        close(stage, consumer)


def _commit(stage: Stage, consumer: Consumer, proc: int, group: str, found: dict[str, list[tuple[int, Any]]]) -> None:
    offsets = {key: records[-1][0] + 1 for key, records in found.items()}
    recording = stage.recorder.invoke(proc, "commit")
    recording.commits(group, offsets)
    wanted = [TopicPartition(PLAIN, int(key.rpartition("-")[2]), offset) for key, offset in offsets.items()]
    try:
        answered = consumer.commit(offsets=wanted, asynchronous=False) or []
        is_certain = len(answered) == len(wanted) and all(each.error is None for each in answered)
    except KafkaException:
        is_certain = False  # what it sent before may count, whatever the last answer was
    recording.ended("ok" if is_certain else "info")
    if is_certain:
        stage.progress.note()


def look_at_committed_offsets(stage: Stage, rng: random.Random) -> None:
    consumers = {group: Consumer(stage.consumer_config(group_id=group)) for group in GROUPS}
    proc = stage.recorder.new_process()
    while stage.reading.is_set():
        group = rng.choice(list(GROUPS))
        recording = stage.recorder.invoke(proc, "committed")
        try:
            told = consumers[group].committed(partitions(PLAIN), timeout=CALL_TIMEOUT_S)
        except KafkaException:
            recording.info()
        else:
            if all(each.error is None for each in told):
                recording.commits(group, {key_of(each): max(each.offset, _NOTHING_COMMITTED) for each in told})
                recording.ok()
                stage.progress.note()
            else:
                recording.info()
        pause(rng, 0.5)
    for consumer in consumers.values():
        close(stage, consumer)


def read_everything(stage: Stage) -> Contents:
    """The last reader: everything from the beginning of the round to the end, when nobody writes any more."""
    until(lambda: _no_transaction_is_open(stage), "the last transactions end")
    recording = stage.recorder.invoke(stage.recorder.new_process(), "poll")
    contents = Contents(stage.beginnings)
    for found in read_to_the_end(stage, [*map(stage.beginning, all_partitions())]):
        recording.polled(found)
        contents.add(found)
    recording.note(final=True, keys=[*map(key_of, all_partitions())])
    recording.ok()
    contents.close(last_offsets(stage, all_partitions(), 1))
    return contents


def read_to_the_end(stage: Stage, beginnings: Sequence[TopicPartition]) -> Iterator[dict[str, list[tuple[int, Any]]]]:
    """Yield the committed records of these partitions, up to the end of each, as a consumer gets them."""
    consumer = _assigned_consumer(stage, beginnings, "read_committed", enable_partition_eof=True)
    ended: set[tuple[str, int]] = set()
    silent_since_s = time.monotonic()
    while len(ended) < len(beginnings):
        messages = consumer.consume(2_000, timeout=1)
        if messages:
            silent_since_s = time.monotonic()
        assert time.monotonic() - silent_since_s < DEADLINE_S, "the last reader gets nothing, and is not at the end"
        for each in messages:
            error = each.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                ended.add((str(each.topic()), each.partition() or 0))
        yield found_in(messages)
    consumer.close()


def _no_transaction_is_open(stage: Stage) -> bool:
    return last_offsets(stage, all_partitions(), 1) == last_offsets(stage, all_partitions(), 0)


def last_offsets(stage: Stage, wanted: Sequence[TopicPartition], isolation: int) -> dict[str, int]:
    """isolation: 0 gives high watermarks, 1 the last stable offsets."""
    admin = AdminClient(stage.config())
    asked = admin.list_offsets(
        {TopicPartition(each.topic, each.partition): OffsetSpec.latest() for each in wanted},
        isolation_level=IsolationLevel.READ_COMMITTED if isolation else IsolationLevel.READ_UNCOMMITTED,
        request_timeout=CALL_TIMEOUT_S,
    )
    return {key_of(partition): future.result(CALL_TIMEOUT_S * 2).offset for partition, future in asked.items()}
