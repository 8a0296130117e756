"""Cycles, and the places of readers and producers, made wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

from ..model_broker import COMPACTED, COPY, PLAIN, SOURCE, TRIMMED
from ..operations import OK, Operation, Send
from .places import (
    Operations,
    append,
    as_read,
    chosen,
    committed_polls,
    committed_sends,
    end_ns,
    own_transactions,
    plants,
)

# Cycles


@plants("G1c")
def two_transactions_read_each_other(operations: Operations, rng: Random) -> Operations | None:
    found = own_transactions(operations)
    if len(found) < 2:
        return None
    first, second = rng.sample(found, 2)
    first.reads.append(as_read(second.sends[0]))
    second.reads.append(as_read(first.sends[0]))
    return operations


@plants("G1c-realtime")
def a_record_is_read_before_it_is_written(operations: Operations, rng: Random) -> Operations | None:
    found = chosen(rng, list(committed_sends(operations)))
    if found is None:
        return None
    poll = chosen(rng, [each for each in committed_polls(operations) if each.completed_ns < found[0].invoked_ns])
    if poll is None:
        return None
    poll.reads.append(as_read(found[1]))
    return operations


def _interleaved(operations: Operations, first: int, second: int) -> tuple[Operation, Operation]:
    """Two transactions at the end that wrote to two partitions at once, in different orders."""
    begin = end_ns(operations) + 1
    found = []
    for proc, offsets in ((first, (20_000, 20_001)), (second, (20_001, 20_000))):
        sends = [Send(key, offset, f"{key} {offset}") for key, offset in zip(PLAIN[:2], offsets, strict=True)]
        operation = Operation(len(operations), proc, "txn", OK, begin, begin + 10, sends, decided_ns=begin + 1)
        operations.append(operation)
        found.append(operation)
    return found[0], found[1]


@plants("G0")
def two_transactions_write_in_different_orders(operations: Operations, rng: Random) -> Operations:
    _interleaved(operations, 9_001, 9_002)
    return operations


@plants("G1c-ww")
def a_transaction_reads_one_that_overwrote_it(operations: Operations, rng: Random) -> Operations:
    first, second = _interleaved(operations, 9_001, 9_002)
    first.sends, second.sends = first.sends[:1], second.sends[:1]
    second.reads = []
    first.reads = [as_read(second.sends[0])]
    return operations


@plants("G0-process")
def a_process_writes_in_front_of_itself(operations: Operations, rng: Random) -> Operations:
    first, second = _interleaved(operations, 9_001, 9_001)
    first.sends, second.sends = first.sends[1:], second.sends[1:]
    second.invoked_ns, second.completed_ns = first.completed_ns + 1, first.completed_ns + 2
    return operations


@plants("G0-realtime")
def a_later_transaction_is_in_front(operations: Operations, rng: Random) -> Operations:
    first, second = _interleaved(operations, 9_001, 9_002)
    first.sends, second.sends = first.sends[1:], second.sends[1:]
    second.invoked_ns, second.completed_ns = first.completed_ns + 1, first.completed_ns + 2
    return operations


# Positions


def _counted(readers: Iterable[Operation], least: int) -> Iterator[tuple[Operation, list[int]]]:
    """Those that read so many records of one partition, and where these are."""
    for reader in readers:
        for key in (*PLAIN, SOURCE, COPY):
            places = [at for at, read in enumerate(reader.reads) if read.key == key]
            if len(places) >= least:
                yield reader, places


@plants("int-poll-skip")
def a_poll_leaves_a_record_out(operations: Operations, rng: Random) -> Operations | None:
    found = chosen(rng, list(_counted(committed_polls(operations), 3)))
    if found is None:
        return None
    poll, places = found
    skipped = poll.reads.pop(rng.choice(places[1:-1]))
    still_known = any(skipped in each.reads for each in committed_polls(operations))
    return operations if still_known or any(skipped == (*send,) for _, send in committed_sends(operations)) else None


@plants("int-nonmonotonic-poll")
def a_poll_goes_back(operations: Operations, rng: Random) -> Operations | None:
    return operations if _go_back(operations, rng, "poll") else None


@plants("int-nonmonotonic-poll")
def a_transaction_of_a_group_goes_back(operations: Operations, rng: Random) -> Operations | None:
    return operations if _go_back(operations, rng, "txn") else None


@plants("int-nonmonotonic-poll-subscribed")
def a_poll_of_a_group_goes_back(operations: Operations, rng: Random) -> Operations | None:
    poll = _go_back(operations, rng, "poll")
    if poll is None:
        return None
    for each in operations:
        if each.proc == poll.proc and each.kind == "assign":
            each.kind = "subscribe"
    return operations


def _go_back(operations: Operations, rng: Random, kind: str) -> Operation | None:
    """Return the operation that begins again with what it has read already."""
    readers = [each for each in operations if each.kind == kind and each.outcome == OK and each.reads_committed]
    found = chosen(rng, list(_counted(readers, 2)))
    if found is None:
        return None
    operation, places = found
    behind = places[rng.randrange(1, len(places))]
    operation.reads[behind:behind] = [operation.reads[place] for place in places if place < behind]
    return operation


def _successive_polls(operations: Operations, reader: str) -> Iterator[tuple[Operation, Operation, str]]:
    """Two polls of one process with records of one partition, and none in between."""
    last: dict[tuple[int, str], Operation] = {}
    readers: dict[int, str] = {}
    for operation in operations:
        if operation.kind in ("assign", "subscribe"):
            readers[operation.proc] = operation.kind
        elif operation.kind == "txn" and operation.outcome != OK:
            last = {place: each for place, each in last.items() if place[0] != operation.proc}
        elif operation.reads and readers.get(operation.proc) == reader and operation.reads_committed:
            for key in dict.fromkeys(read.key for read in operation.reads):
                if (operation.proc, key) in last and key not in (COMPACTED, TRIMMED):
                    yield last[operation.proc, key], operation, key
                last[operation.proc, key] = operation


def _skip(operations: Operations, rng: Random, reader: str) -> Operations | None:
    found = [each for each in _successive_polls(operations, reader) if not each[1].is_final]
    found = [each for each in found if sum(read.key == each[2] for read in each[1].reads) > 1]
    place = chosen(rng, found)
    if place is None:
        return None
    _, second, key = place
    skipped = next(read for read in second.reads if read.key == key)
    second.reads.remove(skipped)
    return operations


def _again(operations: Operations, rng: Random, reader: str) -> Operations | None:
    place = chosen(rng, list(_successive_polls(operations, reader)))
    if place is None:
        return None
    first, second, key = place
    second.reads.insert(0, [read for read in first.reads if read.key == key][-1])
    return operations


@plants("poll-skip")
def the_next_poll_leaves_a_record_out(operations: Operations, rng: Random) -> Operations | None:
    return _skip(operations, rng, "assign")


@plants("nonmonotonic-poll")
def the_next_poll_begins_with_a_record_again(operations: Operations, rng: Random) -> Operations | None:
    return _again(operations, rng, "assign")


@plants("poll-skip-subscribed")
def the_next_poll_of_a_group_leaves_a_record_out(operations: Operations, rng: Random) -> Operations | None:
    return _skip(operations, rng, "subscribe")


@plants("nonmonotonic-poll-subscribed")
def the_next_poll_of_a_group_begins_with_a_record_again(operations: Operations, rng: Random) -> Operations | None:
    return _again(operations, rng, "subscribe")


@plants("int-nonmonotonic-send")
def a_producers_records_change_places(operations: Operations, rng: Random) -> Operations | None:
    found = []
    for operation in operations:
        for at in range(len(operation.sends) - 1):
            first, second = operation.sends[at : at + 2]
            if first.key == second.key and None not in (first.offset, second.offset):
                found.append((operation, at))
    place = chosen(rng, found)
    if place is None:
        return None
    operation, at = place
    first, second = operation.sends[at : at + 2]
    operation.sends[at : at + 2] = [first._replace(offset=second.offset), second._replace(offset=first.offset)]
    return operations


@plants("nonmonotonic-send")
def a_producers_next_record_is_in_front(operations: Operations, rng: Random) -> Operations | None:
    last: dict[tuple[int, str], int] = {}
    found = []
    for operation in operations:
        if len(operation.sends) == 1 and operation.sends[0].offset is not None:
            place = operation.proc, operation.sends[0].key
            if place in last:
                found.append((operation, last[place]))
            last[place] = operation.sends[0].offset
    chosen_one = chosen(rng, found)
    if chosen_one is None:
        return None
    operation, before = chosen_one
    operation.sends = [operation.sends[0]._replace(offset=before - 1)]
    return operations


@plants("send-skip")
def somebody_writes_in_between(operations: Operations, rng: Random) -> Operations:
    sends = [Send(PLAIN[0], 20_000, "before"), Send(PLAIN[0], 20_002, "after")]
    append(operations, "txn", sends=sends, decided_ns=end_ns(operations))
    append(operations, "send", sends=[Send(PLAIN[0], 20_001, "between")])
    return operations
