"""How it ends: copies, compacted partitions, and whether all goes on, made wrong."""

from __future__ import annotations

from random import Random

from ..index import History
from ..model_broker import BATCH_BYTES, COMPACTED, COPIERS, COPY, KEPT_BYTES, PLAIN, TRIMMED
from ..operations import FAIL, OK, Commit, Mark, Operation, Read, Send
from .places import SECOND_NS, Operations, append, end_ns, final_read, plants, transactions

# Exactly once


@plants("eos")
def a_copy_lacks_a_record(operations: Operations, rng: Random) -> Operations:
    poll = final_read(operations, COPY)
    poll.reads.pop(rng.randrange(len(poll.reads)))
    return operations


@plants("eos")
def a_copy_has_a_record_twice(operations: Operations, rng: Random) -> Operations:
    poll = final_read(operations, COPY)
    read = rng.choice(poll.reads)
    value = (read.value[0], "again")
    offset = poll.reads[-1].offset + 1
    transaction = next(each for each in transactions(operations) if each.commits)
    transaction.sends.append(Send(COPY, offset, value))
    poll.reads.append(Read(COPY, offset, value))
    return operations


@plants("eos")
def a_copy_has_another_order(operations: Operations, rng: Random) -> Operations | None:
    poll = final_read(operations, COPY)
    if len(poll.reads) < 2:
        return None
    at = rng.randrange(len(poll.reads) - 1)
    poll.reads[at : at + 2] = poll.reads[at : at + 2][::-1]
    return operations


@plants("consume-counts")
def two_transactions_consume_a_record(operations: Operations, rng: Random) -> Operations | None:
    copying = [each for each in transactions(operations) if each.commits and each.commits[0].group == COPIERS]
    if len(copying) < 2:
        return None
    first, second = rng.sample(copying, 2)
    second.reads.append(rng.choice(first.reads))
    return operations


@plants("consume-counts-unpaired")
def two_transactions_of_a_group_read_a_record(operations: Operations, rng: Random) -> Operations:
    read = rng.choice(final_read(operations, PLAIN[0]).reads)
    for _ in range(2):
        offsets = [Commit("others", PLAIN[0], read.offset + 1)]
        append(operations, "txn", reads=[read], commits=offsets, decided_ns=end_ns(operations))
    return operations


# Compaction


@plants("compaction")
def the_last_value_of_a_key_is_gone(operations: Operations, rng: Random) -> Operations:
    poll = final_read(operations, COMPACTED)
    latest = {read.value[0]: read for read in poll.reads}
    poll.reads.remove(rng.choice(list(latest.values())))
    return operations


@plants("compaction")
def a_deleted_key_comes_back(operations: Operations, rng: Random) -> Operations:
    poll = final_read(operations, COMPACTED)
    read = rng.choice(poll.reads)
    if read.value[1] is None:
        read = Read(COMPACTED, read.offset, (read.value[0], "old", -1))
        append(operations, "send", sends=[Send(*read)])
    begin = max(0, poll.invoked_ns - 7_200 * SECOND_NS)
    tombstone = Operation(len(operations), 9_999, "send", OK, begin - 7_200 * SECOND_NS, begin - 7_000 * SECOND_NS)
    tombstone.sends = [Send(COMPACTED, 30_000, (read.value[0], None, "deleted"))]
    poll.reads = [each for each in poll.reads if each.value[0] != read.value[0] or each.offset == read.offset]
    poll.reads = [read if each.offset == read.offset else each for each in poll.reads]
    operations.append(tombstone)
    return operations


# Trimming


@plants("trimmed")
def a_log_begins_where_nobody_may_delete(operations: Operations, rng: Random) -> Operations:
    append(operations, "offsets", marks=[Mark("start", rng.choice(PLAIN), rng.randint(1, 3))])
    return operations


def _asked(operations: Operations) -> int:
    return max((each.details["below"][TRIMMED] for each in operations if each.kind == "trim"), default=0)


@plants("trimmed")
def retention_leaves_too_little(operations: Operations, rng: Random) -> Operations | None:
    last = final_read(operations, TRIMMED).reads[-1].offset
    start = last + 2 - rng.randint(1, KEPT_BYTES // BATCH_BYTES - 1)
    log = History(operations).logs[TRIMMED]
    if start <= _asked(operations) or log.writers.keys() - log.offsets.keys():
        return None  # it was asked for, or more may be there than anybody knows of
    append(operations, "offsets", marks=[Mark("start", TRIMMED, start)])
    return operations


@plants("trimmed")
def retention_comes_too_early(operations: Operations, rng: Random) -> Operations | None:
    declared = next(each for each in operations if each.kind == "trimmed")
    log = History(operations).logs[TRIMMED]
    if not any(_asked(operations) <= offset < log.largest_start for offset in log.seen):
        return None
    declared.details = {"keeps_ms": 3_600_000}
    return operations


# Liveness


@plants("stuck")
def nobody_writes_to_a_partition_again(operations: Operations, rng: Random) -> Operations:
    heal = next(each for each in operations if each.kind == "heal")
    key = rng.choice(PLAIN)
    for operation in operations:
        if operation.invoked_ns > heal.invoked_ns and any(send.key == key for send in operation.sends):
            operation.completed_ns += 31 * SECOND_NS
    return operations


@plants("stuck")
def nobody_reads_a_partition_again(operations: Operations, rng: Random) -> Operations:
    key = rng.choice(PLAIN)
    for operation in operations:
        if operation.is_final:
            operation.reads = [read for read in operation.reads if read.key != key]
    return operations


@plants("stuck")
def a_group_does_not_commit_again(operations: Operations, rng: Random) -> Operations:
    heal = next(each for each in operations if each.kind == "heal")
    for operation in operations:
        if operation.invoked_ns > heal.invoked_ns and operation.kind == "commit":
            operation.outcome = FAIL
    return operations


@plants("realtime-lag")
def a_reader_stays_behind(operations: Operations, rng: Random) -> Operations | None:
    key = rng.choice(PLAIN)
    reads = final_read(operations, key).reads
    if len(reads) < 2:
        return None
    append(operations, "assign")
    append(operations, "poll", reads=[rng.choice(reads[:-1])])
    late = append(operations, "poll")
    late.invoked_ns += 25 * SECOND_NS
    late.completed_ns += 25 * SECOND_NS
    return operations
