"""Offsets that were committed in transactions which have not ended yet (KIP-98, KIP-447).

Pending offsets count once their producer's transaction is committed. Until then their partitions are unstable: a
request for stable offsets has to be repeated, and no offset of these partitions expires. A tombstone deletes pending
offsets too. The model is the transactional half of Kafka's `OffsetMetadataManager`.

A transaction may leave a hundred thousand offsets, and from the moment of its end all of them count, or none. So `end`
only marks the transaction, and every read looks at these marks (`committed_offset`, `is_pending`, `as_of_now`). The
offsets are moved to the table of committed offsets afterwards, some at a time (`move_some`), which no read can tell.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from pykbroker.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue

from .committed_offsets import CommittedOffset, CommittedOffsets, Place

MOST_MOVED = 1_000
"""How many offsets of ended transactions are moved in one step of about a millisecond."""


@dataclass(slots=True, eq=False)
class _Transaction:
    """The offsets of one transaction.

    offsets: by group and place. end: the number of the transaction's end, counted from 1; 0 while it is open.
    """

    producer_id: int
    offsets: dict[str, dict[Place, CommittedOffset]] = field(default_factory=dict)
    end: int = 0
    is_commit: bool = False
    places_to_move: Iterator[tuple[str, Place]] | None = None

    def places(self) -> Iterator[tuple[str, Place]]:
        for group_id in list(self.offsets):
            for place in list(self.offsets.get(group_id, ())):
                yield group_id, place


@dataclass(frozen=True, slots=True)
class PendingAsOfNow:
    """The pending offsets of one group at one time. committed: offsets that counted and were not in the table yet."""

    committed: Sequence[Mapping[Place, CommittedOffset]]
    _transactions: Mapping[Place, tuple[_Transaction, ...]]
    _ends: int

    def is_pending(self, topic: str, partition: int) -> bool:
        transactions = self._transactions.get((topic, partition), ())
        return any(not each.end or each.end > self._ends for each in transactions)


class PendingOffsets:
    """The pending offsets of one shard.

    offsets: the table that takes the offsets of committed transactions.
    """

    def __init__(self, offsets: CommittedOffsets) -> None:
        self._offsets = offsets
        self._most_moved = MOST_MOVED
        self._open: dict[int, _Transaction] = {}
        """By producer."""
        self._ended: deque[_Transaction] = deque()
        """Transactions with offsets that are not moved yet."""
        self._ends = 0
        # Open and ended transactions, in the order of their first commit at a place. No dict or tuple here is empty.
        self._transactions: dict[str, dict[Place, tuple[_Transaction, ...]]] = {}

    def __contains__(self, group_id: str) -> bool:
        """Tell whether an offset of the group is pending, or not moved yet."""
        return group_id in self._transactions

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        return any(not each.end for each in self._transactions_at(group_id, (topic, partition)))

    def is_moving(self, group_id: str, topic: str, partition: int) -> bool:
        """Tell whether an offset there is pending, or not moved yet: then the table alone does not tell what counts."""
        return (topic, partition) in self._transactions.get(group_id, ())

    def committed_offset(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """The offset that counts there: the newest of those in the table and those not moved to it yet."""
        newest = self._offsets.get(group_id, topic, partition)
        place = topic, partition
        for transaction in self._transactions_at(group_id, place):
            if transaction.is_commit:
                offset = transaction.offsets[group_id][place]
                if newest is None or newest.order < offset.order:
                    newest = offset
        return newest

    def as_of_now(self, group_id: str) -> PendingAsOfNow:
        """The group's offsets that are pending or not moved yet, as values that no later change reaches."""
        on_their_way = [each.offsets[group_id] for each in self._ended if each.is_commit and group_id in each.offsets]
        is_pending = any(group_id in each.offsets for each in self._open.values())
        transactions = self._transactions[group_id].copy() if is_pending else {}
        return PendingAsOfNow([offsets.copy() for offsets in on_their_way], transactions, self._ends)

    def places(self, group_id: str) -> Iterator[Place]:
        """The places of offsets that are pending, or not moved yet."""
        yield from self._transactions.get(group_id, ())

    def offsets_at(self, group_id: str, topic: str, partition: int) -> Iterator[CommittedOffset]:
        """The offsets that open transactions have committed there."""
        place = topic, partition
        for transaction in self._transactions_at(group_id, place):
            if not transaction.end:
                yield transaction.offsets[group_id][place]

    def _transactions_at(self, group_id: str, place: Place) -> tuple[_Transaction, ...]:
        places = self._transactions.get(group_id)
        return () if places is None else places.get(place, ())

    def add(self, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
        """Add an offset to the producer's open transaction. The last commit of a partition counts."""
        group_id, place = key.group, (key.topic, key.partition)
        transaction = self._open.get(producer_id)
        if transaction is None:
            transaction = self._open[producer_id] = _Transaction(producer_id)
        offsets = transaction.offsets.setdefault(group_id, {})
        is_first = place not in offsets
        offsets[place] = self._offsets.numbered(value)
        if is_first:
            places = self._transactions.setdefault(group_id, {})
            if place not in places:
                self._offsets.groups_by_topic.add(key.topic, group_id)
            places[place] = (*places.get(place, ()), transaction)

    def drop(self, group_id: str, topic: str, partition: int) -> None:
        """Drop the partition's pending offsets of all transactions: a tombstone has deleted its offset."""
        place = topic, partition
        for transaction in self._transactions_at(group_id, place):
            offsets = transaction.offsets[group_id]
            del offsets[place]
            if not offsets:
                del transaction.offsets[group_id]
            if not transaction.offsets and not transaction.end:
                del self._open[transaction.producer_id]
            self._remove(transaction, group_id, place)

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        """End the producer's transaction, if it has committed offsets here. For the rest of a large transaction
        `move_some` has to be called."""
        transaction = self._open.pop(producer_id, None)
        if transaction is not None:
            self._ends += 1
            transaction.end, transaction.is_commit = self._ends, is_commit
            self._ended.append(transaction)
            self.move_some()

    def move_some(self) -> bool:
        """Move some offsets of committed transactions to the table, and drop some of aborted ones. Whether there are
        more."""
        left = self._most_moved
        while self._ended and left > 0:
            left -= self._move(self._ended[0], left)
            if left > 0:
                self._ended.popleft()
        return bool(self._ended)

    def _move(self, transaction: _Transaction, most: int) -> int:
        """Return how many offsets were looked at; fewer than `most` where there are no more."""
        if transaction.places_to_move is None:
            transaction.places_to_move = transaction.places()
        looked_at = 0
        for group_id, place in islice(transaction.places_to_move, most):
            looked_at += 1
            offset = transaction.offsets.get(group_id, {}).pop(place, None)
            if offset is None:
                continue  # dropped since
            self._remove(transaction, group_id, place)
            if transaction.is_commit:
                self._offsets.put_if_newer(group_id, *place, offset)
        return looked_at

    def _remove(self, transaction: _Transaction, group_id: str, place: Place) -> None:
        places = self._transactions[group_id]
        transactions = places[place]
        if len(transactions) > 1:
            places[place] = tuple(each for each in transactions if each is not transaction)
            return
        del places[place]
        self._offsets.groups_by_topic.remove(place[0], group_id)
        if not places:
            del self._transactions[group_id]
