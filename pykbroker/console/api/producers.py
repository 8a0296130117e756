"""Producers of a partition, `/api/topics/{name}/producers`, and the end of transactions that nobody else would end.

A transaction hangs when the partition's log has it open, and no coordinator knows of it. The log is asked once more
after the coordinators: a transaction that has ended meanwhile is not taken for one that hangs.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import BadInput, ClientError, KafkaError
from pykbroker.client.transactions import abort_transaction, describe_producers, find_hanging
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.console.failures import name_of
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transaction_admin import ProducerState
from pykbroker.protocol.topic_partition import TopicPartition

from .pages import Page, PageAsked, page_of

_LONGEST_S: Final = 8.0
_MOST_PARTITION: Final = 2**31 - 1
_MS_PER_HOUR: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class ProducerRow:
    """A producer. start_offset: of its open transaction, None for none."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    start_offset: int | None
    is_hanging: bool


@dataclass(frozen=True, slots=True)
class Producers:
    """One page of the partition's producers. error: why nobody can say what hangs, None where it is known."""

    producers: Page[ProducerRow]
    hanging: int
    error: str | None


async def producers(asking: Asking, given: Arguments) -> Producers:
    """Return a page, those with an open transaction first. Raises BadInput, KafkaError, ClientError."""
    asked, at = PageAsked.of(given), _partition(given)
    asking.cluster.metadata.topics.pop(at.topic, None)  # the leader may have moved since
    found = await describe_producers(asking.cluster, at)
    hanging: Collection[tuple[int, int]] = ()
    error = None
    if any(each.current_txn_start_offset >= 0 for each in found):
        error = ErrorCode.REQUEST_TIMED_OUT.name
        with trio.move_on_after(_LONGEST_S):
            try:
                hanging = (await _hanging(asking.cluster, at)).keys()
                error = None
            except ClientError as failed:
                error = name_of(failed)
    found = sorted(found, key=lambda each: (each.current_txn_start_offset < 0, each.producer_id))
    page = page_of(found, asked)
    return Producers(
        Page([_row(each, hanging) for each in page.rows], page.page, page.pages, page.total), len(hanging), error
    )


async def abort(asking: Asking, given: Arguments) -> None:
    """Abort a transaction that hangs, named by its producer and its first offset. Raises BadInput, KafkaError."""
    at, key = _partition(given), (given.whole("producer_id"), given.whole("start_offset"))
    if given.text("confirm", "") != str(at):
        raise BadInput("'confirm' is the partition once more, such as orders-0")
    asking.cluster.metadata.topics.pop(at.topic, None)
    producer = (await _hanging(asking.cluster, at)).get(key)
    if producer is None:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE, f"No transaction of producer {key[0]} hangs at offset {key[1]} of {at}"
        )
    epoch, coordinator_epoch = producer.producer_epoch, max(producer.coordinator_epoch, 0)
    await abort_transaction(asking.cluster, at, producer.producer_id, epoch, coordinator_epoch)


async def _hanging(cluster: Cluster, at: TopicPartition) -> dict[tuple[int, int], ProducerState]:
    """Return what hangs, by producer id and first offset. Raises KafkaError, ClientError."""
    any_age_ms = time.time_ns() // 1_000_000 + _MS_PER_HOUR
    candidates = [each.producer for each in await find_hanging(cluster, [at], any_age_ms)]
    if not candidates:
        return {}
    still = {_key(each): each for each in await describe_producers(cluster, at)}
    return {_key(each): still[_key(each)] for each in candidates if _key(each) in still}


def _key(producer: ProducerState) -> tuple[int, int]:
    return producer.producer_id, producer.current_txn_start_offset


def _partition(given: Arguments) -> TopicPartition:
    return TopicPartition(given.text("name", longest=249), given.whole("partition", 0, most=_MOST_PARTITION))


def _row(producer: ProducerState, hanging: Collection[tuple[int, int]]) -> ProducerRow:
    return ProducerRow(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_sequence=producer.last_sequence,
        last_timestamp_ms=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        start_offset=producer.current_txn_start_offset if producer.current_txn_start_offset >= 0 else None,
        is_hanging=_key(producer) in hanging,
    )
