"""What is in the log, and who sees it, made wrong."""

from __future__ import annotations

from random import Random

from ..index import History
from ..model_broker import COMPACTED, TRIMMED
from ..operations import FAIL, OK, Operation, Read, Send
from .places import (
    Operations,
    as_read,
    chosen,
    committed_polls,
    committed_sends,
    forget,
    later_reads,
    own_transactions,
    plants,
    transactions,
)

# Values


@plants("inconsistent-offsets")
def another_value_at_an_offset(operations: Operations, rng: Random) -> Operations | None:
    polls = [each for each in committed_polls(operations) if each.reads and not each.is_final]
    poll = chosen(rng, polls)
    if poll is None:
        return None
    places = [at for at, read in enumerate(poll.reads) if read.key != TRIMMED]
    if not places:
        return None
    at = rng.choice(places)
    poll.reads[at] = poll.reads[at]._replace(value=("k1", "other", 0) if poll.reads[at].key == COMPACTED else "other")
    return operations


@plants("inconsistent-offsets")
def two_sends_get_one_offset(operations: Operations, rng: Random) -> Operations | None:
    sends = [each for each in committed_sends(operations) if len(each[0].sends) == 1]
    first, second = chosen(rng, sends), chosen(rng, sends)
    if first is None or second is None or first[1] == second[1] or first[1].key != second[1].key:
        return None
    second[0].sends = [second[1]._replace(offset=first[1].offset)]
    return operations


@plants("duplicate")
def a_value_twice(operations: Operations, rng: Random) -> Operations | None:
    poll = chosen(rng, [each for each in operations if each.is_final and each.reads and each.keys != (COMPACTED,)])
    if poll is None:
        return None
    read = rng.choice(poll.reads)
    poll.reads.append(read._replace(offset=poll.reads[-1].offset + 1))
    return operations


@plants("phantom")
def a_value_that_nobody_wrote(operations: Operations, rng: Random) -> Operations | None:
    poll = chosen(rng, [each for each in operations if each.is_final and each.keys != (COMPACTED,)])
    if poll is None:
        return None
    poll.reads.append(Read(poll.keys[0], 10_000, "from nowhere"))
    return operations


# Visibility


def _still_there(operations: Operations) -> list[tuple[Operation, Send]]:
    """Sends to the trimmed partition that nobody may have deleted."""
    start = History(operations).logs[TRIMMED].largest_start
    found = [(each, send) for each in operations for send in each.sends if send.key == TRIMMED]
    return [
        (each, send) for each, send in found if each.outcome == OK and send.offset is not None and start <= send.offset
    ]


@plants("lost-write")
def a_record_behind_the_log_start_that_everybody_passes(operations: Operations, rng: Random) -> Operations | None:
    found = chosen(rng, _still_there(operations)[:-1])
    if found is None:
        return None
    forget(operations, TRIMMED, found[1].value)
    return operations


@plants("unseen")
def a_record_behind_the_log_start_that_is_gone_at_the_end(operations: Operations, rng: Random) -> Operations:
    found = rng.choice(_still_there(operations))
    forget(operations, TRIMMED, found[1].value)
    return operations


@plants("lost-write")
def a_record_that_everybody_passes(operations: Operations, rng: Random) -> Operations | None:
    found = chosen(rng, list(committed_sends(operations)))
    if found is None or not later_reads(operations, found[1].key, found[1].value):
        return None
    forget(operations, found[1].key, found[1].value)
    return operations


@plants("lost-write")
def a_record_that_only_readers_of_uncommitted_ones_see(operations: Operations, rng: Random) -> Operations | None:
    found = chosen(rng, list(committed_sends(operations)))
    if found is None or not later_reads(operations, found[1].key, found[1].value):
        return None
    forget(operations, found[1].key, found[1].value, isolation="read_committed")
    return operations


@plants("G1a")
def an_aborted_record_is_read(operations: Operations, rng: Random) -> Operations | None:
    aborted = chosen(rng, transactions(operations, FAIL))
    poll = chosen(rng, committed_polls(operations))
    if aborted is None or poll is None:
        return None
    send = rng.choice(aborted.sends)
    if send.offset is None:
        return None
    poll.reads.append(as_read(send))
    return operations


@plants("G1a")
def a_send_that_failed_is_there(operations: Operations, rng: Random) -> Operations | None:
    failed = chosen(rng, [each for each in operations if each.kind == "send" and each.outcome == FAIL])
    poll = chosen(rng, [each for each in operations if each.kind == "poll"])
    if failed is None or poll is None:
        return None
    poll.reads.append(Read(failed.sends[0].key, 10_000, failed.sends[0].value))
    return operations


@plants("precommitted-read")
def a_transaction_reads_its_own_record(operations: Operations, rng: Random) -> Operations | None:
    transaction = chosen(rng, own_transactions(operations))
    if transaction is None:
        return None
    transaction.reads.append(as_read(rng.choice(transaction.sends)))
    return operations


@plants("torn-txn")
def half_of_a_transaction(operations: Operations, rng: Random) -> Operations | None:
    transaction = chosen(rng, [each for each in own_transactions(operations) if len(each.sends) > 1])
    if transaction is None:
        return None
    send = rng.choice(transaction.sends)
    if not later_reads(operations, send.key, send.value):
        return None
    forget(operations, send.key, send.value, isolation="read_committed")
    return operations


@plants("lso-breach")
def a_record_is_read_before_the_end_of_its_transaction(operations: Operations, rng: Random) -> Operations | None:
    transaction = chosen(rng, own_transactions(operations))
    if transaction is None or transaction.decided_ns is None:
        return None
    poll = chosen(rng, [e for e in committed_polls(operations) if e.completed_ns < transaction.decided_ns])
    if poll is None:
        return None
    poll.reads.append(as_read(rng.choice(transaction.sends)))
    return operations


@plants("lso-breach")
def a_record_is_read_above_the_last_stable_offset(operations: Operations, rng: Random) -> Operations | None:
    poll = chosen(rng, [each for each in committed_polls(operations) if each.reads and each.marks])
    if poll is None:
        return None
    read = rng.choice(poll.reads)
    poll.marks = [each._replace(offset=read.offset) if each[:2] == ("lso", read.key) else each for each in poll.marks]
    return operations


@plants("unseen")
def an_acknowledged_record_is_gone_at_the_end(operations: Operations, rng: Random) -> Operations | None:
    found = chosen(rng, list(committed_sends(operations)))
    if found is None:
        return None
    for poll in operations:
        if poll.is_final:
            poll.reads = [read for read in poll.reads if (read.key, read.value) != (found[1].key, found[1].value)]
    return operations
