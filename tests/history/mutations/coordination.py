"""Offsets, producers and groups, made wrong."""

from __future__ import annotations

from random import Random

from ..index import History
from ..model_broker import PLAIN, SOURCE
from ..operations import FAIL, INFO, OK, Commit, Mark, Operation, Producer, Send
from .places import Operations, append, chosen, committed_sends, plants, transactions

# Offsets


@plants("offset-reuse")
def an_offset_goes_back(operations: Operations, rng: Random) -> Operations | None:
    found = []
    largest: dict[tuple[str, str], int] = {}
    for operation in [each for each in operations if each.is_final or each.kind == "offsets"]:
        for at, mark in enumerate(operation.marks):
            before = largest.get(mark[:2], 0)
            if operation.is_final and before > 0:
                found.append((operation, at, before))
            largest[mark[:2]] = mark.offset
    place = chosen(rng, found)
    if place is None:
        return None
    operation, at, before = place
    operation.marks[at] = operation.marks[at]._replace(offset=rng.randrange(before))
    return operations


@plants("offset-reuse")
def an_acknowledged_offset_is_beyond_the_end(operations: Operations, rng: Random) -> Operations | None:
    found = chosen(rng, list(committed_sends(operations)))
    if found is None:
        return None
    assert found[1].offset is not None
    append(operations, "offsets", marks=[Mark("hw", found[1].key, found[1].offset)])
    return operations


@plants("offset-reuse")
def an_offset_is_given_away_again(operations: Operations, rng: Random) -> Operations | None:
    key = rng.choice(PLAIN)
    append(operations, "send", sends=[Send(key, rng.randrange(len(History(operations).logs[key].order)), "again")])
    return operations


# Producers


@plants("zombie-append")
def a_zombie_writes(operations: Operations, rng: Random) -> Operations | None:
    transaction = chosen(rng, transactions(operations))
    if transaction is None or transaction.producer is None:
        return None
    name, producer_id, epoch = transaction.producer
    begin = transaction.invoked_ns - 2
    fence = Operation(len(operations), 9_999, "init", OK, begin, begin + 1)
    fence.producer = Producer(name, producer_id, epoch + 1)
    operations.append(fence)
    return operations


@plants("zombie-append")
def a_zombie_writes_with_an_older_producer_id(operations: Operations, rng: Random) -> Operations | None:
    transaction = chosen(rng, transactions(operations))
    if transaction is None or transaction.producer is None:
        return None
    init = next(each for each in operations if each.kind == "init" and each.producer == transaction.producer)
    first = min(
        (each for each in operations if each.producer is not None and each.producer[:2] == init.producer[:2]),  # type: ignore[index]
        key=lambda each: each.completed_ns,
    )
    begin = transaction.invoked_ns - 2
    if first.completed_ns >= begin:
        return None
    fence = Operation(len(operations), 9_999, "init", OK, begin, begin + 1)
    fence.producer = Producer(transaction.producer.transactional_id, 10_000, 0)
    operations.append(fence)
    return operations


@plants("nonmonotonic-sequence")
def batches_of_a_producer_change_places(operations: Operations, rng: Random) -> Operations | None:
    batches = [each for each in operations if each.outcome == OK and "sequence" in each.details and each.sends]
    if len(batches) < 2:
        return None
    first, second = rng.sample(batches, 2)
    sends = first.sends[0], second.sends[0]
    first.sends = [sends[0]._replace(offset=sends[1].offset)]
    second.sends = [sends[1]._replace(offset=sends[0].offset)]
    return operations


# Groups


@plants("commit-regression")
def an_older_offset_is_told(operations: Operations, rng: Random) -> Operations | None:
    commits = [each for each in operations if each.kind == "commit" and each.outcome == OK]
    commit = chosen(rng, commits)
    if commit is None:
        return None
    group, key, offset = commit.commits[0]
    final = [each.commits[0].offset for each in commits if each.commits[0].key == key][-1]
    may_come_late = any(each.outcome == INFO and commit.commits[0] in each.commits for each in operations)
    if offset == final or may_come_late:
        offset = -1
    append(operations, "committed", commits=[Commit(group, key, offset)])
    return operations


@plants("aborted-offset")
def the_offset_of_an_aborted_transaction_is_told(operations: Operations, rng: Random) -> Operations | None:
    transaction = chosen(rng, transactions(operations))
    if transaction is None:
        return None
    transaction.commits = [Commit("new", SOURCE, 5)]
    transaction.outcome = FAIL
    append(operations, "committed", commits=[Commit("new", SOURCE, 5)])
    return operations


@plants("phantom-offset")
def an_offset_that_nobody_committed_is_told(operations: Operations, rng: Random) -> Operations | None:
    told = chosen(rng, [each for each in operations if each.kind == "committed" and each.outcome == OK])
    if told is None:
        return None
    told.commits = [each._replace(offset=1_234) for each in told.commits]
    return operations


@plants("phantom-offset")
def an_offset_is_told_before_its_transaction_is_decided(operations: Operations, rng: Random) -> Operations | None:
    transaction = chosen(rng, [each for each in transactions(operations) if each.decided_ns is not None])
    if transaction is None or transaction.decided_ns is None:
        return None
    transaction.commits = [Commit("new", SOURCE, 5)]
    early = Operation(len(operations), 9_999, "committed", OK, transaction.invoked_ns, transaction.decided_ns - 1)
    early.commits = [Commit("new", SOURCE, 5)]
    operations.append(early)
    return operations


@plants("dual-owner")
def a_partition_has_two_owners(operations: Operations, rng: Random) -> Operations | None:
    own = chosen(rng, [each for each in operations if each.kind == "own" and each.keys])
    if own is None:
        return None
    append(operations, "own", keys=(rng.choice(own.keys),), details=own.details | {"member": "another"})
    return operations
