"""Readers of chosen partitions, members of a group, those who look at committed offsets, and the last reader of all."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from compat_tests.waiting import until

from .stage import PLAIN, TOPICS, Stage, found_in, key_of, partitions, pause
from .truncation import TruncationReported

GROUPS: dict[str, dict[str, Any]] = {
    "readers": {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 1_000},
    "newer-readers": {"group_protocol": "consumer"},
}
"""With the settings of their members: by the consumer protocol the broker says how long and how often."""
CALL_TIMEOUT_S = 10
_NOTHING_COMMITTED = -1
_READERS_OWN_LIFE_S = 40.0
_MEMBERS_OWN_LIFE_S = 30.0


def read_committed(stage: Stage, rng: random.Random) -> None:
    _read(stage, rng, "read_committed")


def read_uncommitted(stage: Stage, rng: random.Random) -> None:
    _read(stage, rng, "read_uncommitted")


def _read(stage: Stage, rng: random.Random, isolation: str) -> None:
    """From the beginning on; now and then another reader takes its place."""
    while stage.reading.is_set():
        proc = stage.recorder.new_process()
        stage.recorder.tell(proc, "assign")
        consumer = _assigned_consumer(stage, [each for topic in TOPICS for each in partitions(topic)], isolation)
        until_s = time.monotonic() + rng.random() * _READERS_OWN_LIFE_S
        while stage.reading.is_set() and time.monotonic() < until_s:
            recording = stage.recorder.invoke(proc, "poll")
            recording.note(isolation=isolation)
            try:
                recording.polled(found := found_in(consumer.consume(500, timeout=0.5)))
            except TruncationReported as reported:  # this reader has ended
                recording.polled(reported.found)
                recording.ok()
                reported.refute(stage.bootstrap)
                break
            recording.ok()
            if found:
                stage.progress.note()
        consumer.close()


def _assigned_consumer(stage: Stage, assigned: Sequence[TopicPartition], isolation: str, **more: Any) -> Consumer:
    config = stage.config(
        group_id="unused", enable_auto_commit=False, auto_offset_reset="error", isolation_level=isolation, **more
    )
    consumer = Consumer(config)
    consumer.assign([TopicPartition(each.topic, each.partition, OFFSET_BEGINNING) for each in assigned])
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
            stage.config(
                group_id=group,
                enable_auto_commit=False,
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
        consumer.close()


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
    consumers = {group: Consumer(stage.config(group_id=group, enable_auto_commit=False)) for group in GROUPS}
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
        consumer.close()


def read_everything(stage: Stage) -> None:
    """The last reader: everything from the beginning to the end, when nobody writes any more."""
    wanted = [each for topic in TOPICS for each in partitions(topic)]
    until(lambda: _no_transaction_is_open(stage), "the last transactions end")
    consumer = _assigned_consumer(stage, wanted, "read_committed", enable_partition_eof=True)
    recording = stage.recorder.invoke(stage.recorder.new_process(), "poll")
    ended: set[tuple[str, int]] = set()

    def is_read() -> bool:
        messages = consumer.consume(2_000, timeout=1)
        for each in messages:
            error = each.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                ended.add((str(each.topic()), each.partition() or 0))
        recording.polled(found_in(messages))
        return len(ended) == len(wanted)

    until(is_read, "everything is read to its end")
    recording.note(final=True, keys=[key_of(each) for each in wanted])
    recording.ok()
    consumer.close()


def _no_transaction_is_open(stage: Stage) -> bool:
    wanted = [each for topic in TOPICS for each in partitions(topic)]
    return last_offsets(stage, wanted, 1) == last_offsets(stage, wanted, 0)


def last_offsets(stage: Stage, wanted: Sequence[TopicPartition], isolation: int) -> dict[str, int]:
    """isolation: 0 gives high watermarks, 1 the last stable offsets."""
    admin = AdminClient(stage.config())
    asked = admin.list_offsets(
        {TopicPartition(each.topic, each.partition): OffsetSpec.latest() for each in wanted},
        isolation_level=IsolationLevel.READ_COMMITTED if isolation else IsolationLevel.READ_UNCOMMITTED,
        request_timeout=CALL_TIMEOUT_S,
    )
    return {key_of(partition): future.result(CALL_TIMEOUT_S * 2).offset for partition, future in asked.items()}
