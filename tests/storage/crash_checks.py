"""Starts on what a crash left, as the broker does, and compares what is there with what was promised."""

from collections.abc import Sequence
from functools import lru_cache
from random import Random

from pykbroker.protocol.records.batch import decode_batch_header, iter_batches
from pykbroker.protocol.records.control import ControlRecordType
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.storage.directories.log_dirs import LogDirectory
from pykbroker.storage.log.log import Log
from pykbroker.storage.segments.leader_epochs import epoch_at
from tests.storage.batches import NOW_MS
from tests.storage.crash_life import CLUSTER_ID, NODE_ID, Batch, LogPromise, Promises, as_batch
from tests.storage.crash_states import Base, Survivors
from tests.storage.recording_disk import RecordingDisk

LATER_MS = NOW_MS + 100_000


def start(disk: RecordingDisk, path: str, promises: Promises, *, number: int = 1) -> LogDirectory:
    """number: of this start; no two give the same name to what they put aside."""
    directory = LogDirectory.open(disk, path, rng=Random(number), node_id=NODE_ID, cluster_id=CLUSTER_ID)
    for at, promise in promises.items():
        directory.open_log(at.topic, at.partition, promise.life.topic_id, promise.life.config, now_ms=LATER_MS)
    for at in list(directory.found):
        directory.delete_stray(at)
    directory.remove_deleted(directory.deleted_paths)
    return directory


def check(directory: LogDirectory, promises: Promises, *, is_killed: bool) -> "Found":
    """Returns what the logs hold."""
    found = {}
    for at, promise in promises.items():
        found[at] = _check_log(directory.logs[at], promise, is_killed=is_killed)
    return found


Found = dict[TopicPartition, list[Batch]]


def check_again(
    disk: RecordingDisk,
    base: Base,
    path: str,
    promises: Promises,
    found: Found,
    *,
    seed: str,
    is_thorough: bool = False,
) -> None:
    """Another crash, while `disk` was started on or when that was done: what the first start served is still there.

    is_thorough: at each operation of the start, and with every choice.
    """
    survivors = Survivors(base)
    rng = Random(seed)
    served_at = len(disk.journal)
    cuts = {rng.randint(0, served_at), rng.randint(0, served_at), served_at}
    seen: set[tuple[int, bool]] = set()
    for cut, operation in enumerate(disk.journal, 1):
        survivors.apply(operation)
        if cut not in cuts and not is_thorough:
            continue
        plain, others = survivors.choices(f"{seed}/{cut}", 2)
        for choice in [*plain, *(others if is_thorough else rng.sample(others, min(3, len(others))))]:
            state = survivors.state(choice)
            key = state.key, choice.is_killed
            if key in seen and cut < served_at:
                continue
            seen.add(key)
            try:
                after, _ = state.disk(disk)
                again = check(start(after, path, promises, number=2), promises, is_killed=False)
                for at, batches in found.items() if cut == served_at else ():
                    _check_is_still_there(at, batches, again[at], is_compacted=promises[at].life.config.compact)
            except Exception as failure:
                failure.add_note(f"after a second crash: cut {cut} of {served_at}, {choice.label}")
                raise


def _check_is_still_there(
    at: TopicPartition, served: Sequence[Batch], found: Sequence[Batch], *, is_compacted: bool
) -> None:
    if is_compacted:
        # A swap that was completed may have to be completed once more: only what it would have dropped may be back.
        latest, latest_found = ({each[1]: each for batch in of for each in batch.records} for of in (served, found))
        assert latest.items() <= latest_found.items(), f"{at} has lost records that were served"
    else:
        assert list(found[: len(served)]) == list(served), f"{at} has lost records that were served"


def read(log: Log) -> list[Batch]:
    """Every batch, as it is served."""
    found: list[Batch] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 20).read()
        if not data:
            break
        for batch in iter_batches(data):
            found.append(_known_batch(bytes(batch.data)))
            offset = batch.header.next_offset
    return found


@lru_cache(maxsize=10_000)
def _known_batch(data: bytes) -> Batch:
    """The same few batches are in thousands of states."""
    [batch] = iter_batches(data)
    batch.ensure_valid()
    return as_batch(batch)


def _check_log(log: Log, promise: LogPromise, *, is_killed: bool) -> list[Batch]:
    found = read(log)
    promised_end = promise.appended_end if is_killed else promise.flushed_end
    assert log.log_end_offset >= promised_end, f"{log} ends before {promised_end}, which was promised"
    may_start = max(promise.may_start, promise.must_start)
    assert log.log_start_offset >= promise.must_start, f"{log} should begin at {promise.must_start}"
    if promised_end > may_start:
        assert log.log_start_offset <= may_start, f"{log} should begin at {may_start}"
    written = promise.life.versions[promise.version]
    if log.config.compact:
        _check_compacted(log, found, written, promise, promised_end)
    else:
        _check_is_part_of_its_life(log, found, promise.life.versions)
        promised = [batch for batch in written if may_start < batch.next_offset <= promised_end]
        assert set(promised) <= set(found), f"{log} has lost {sorted(set(promised) - set(found))[0]}"
    _check_lookups(log, found)
    _check_producers(log, found)
    _check_transactions(log, found)
    _check_epochs(log, found, may_start)
    return found


def _check_is_part_of_its_life(log: Log, found: Sequence[Batch], versions: Sequence[Sequence[Batch]]) -> None:
    """What was there at some time, without a hole, and nothing of another time."""
    if not found:
        return
    assert found[-1].next_offset == log.log_end_offset, f"{log} has nothing at its end"
    assert found[0].base_offset <= log.log_start_offset
    for version in versions:
        if found[0] in version:
            first = version.index(found[0])
            if version[first : first + len(found)] == list(found):
                return
    raise AssertionError(f"{log} never held {[(each.base_offset, each.next_offset) for each in found]}")


def _check_compacted(
    log: Log, found: Sequence[Batch], written: Sequence[Batch], promise: LogPromise, promised_end: int
) -> None:
    """In order, nothing that was not written, the latest of each key, and everything that no cleaning has seen."""
    records = [record for batch in found for record in batch.records]
    offsets = [offset for offset, _, _ in records]
    assert offsets == sorted(set(offsets)), f"{log} is not in order: {offsets}"
    of_life = {record for version in promise.life.versions for batch in version for record in batch.records}
    assert set(records) <= of_life, f"{log} holds records that nobody wrote"
    promised = [record for batch in written for record in batch.records if record[0] < promised_end]
    latest = {key: (offset, key, value) for offset, key, value in promised}
    latest_found = {key: offset for offset, key, _ in records}
    for offset, key, value in latest.values():
        if offset < promise.may_start or (value is None and offset < promise.cleaned_end):
            continue
        assert latest_found.get(key, -1) >= offset, f"{log} has lost {value!r} of key {key!r} at {offset}"
    whole = [record for record in promised if record[0] >= max(promise.cleaned_end, promise.may_start)]
    assert set(whole) <= set(records), f"{log} has lost what no cleaning has seen"


def _check_lookups(log: Log, found: Sequence[Batch]) -> None:
    """Every way into the log agrees on what is there."""
    for number, batch in enumerate(found):
        if batch.base_offset < log.log_start_offset or not batch.records:
            continue
        first = log.read(batch.base_offset, 1).read()
        assert first == batch.data, f"{log} reads something else at {batch.base_offset}"
        if (number + len(found)) % 3:  # they are slow, and a third of them meets every segment sooner or later
            continue
        at_time = log.find_offset_for_timestamp(batch.timestamp)
        assert at_time is not None, f"{log} finds nothing at {batch.timestamp}"
        assert at_time.offset == batch.records[0][0], f"{log} finds {at_time} for {batch}"
    last = found[-1].timestamp if found else NOW_MS
    assert log.find_offset_for_timestamp(last + 1) is None


def _check_producers(log: Log, found: Sequence[Batch]) -> None:
    """A retry of a producer's last batch is known for one, and its next batch is in order."""
    latest = {batch.producer_id: batch for batch in found if batch.producer_id >= 0 and batch.control is None}
    for producer_id, batch in latest.items():
        duplicate = log.producers.check_client_batch(decode_batch_header(batch.data))
        assert duplicate is not None, f"{log} would take a batch of producer {producer_id} twice"
        assert (duplicate.first_offset, duplicate.last_offset) == (batch.base_offset, batch.next_offset - 1)


def _check_epochs(log: Log, found: Sequence[Batch], may_start: int) -> None:
    """The leader epochs are those of the batches. Records that may be gone may have lost their epochs."""
    for batch in found:
        offset = max(batch.base_offset, log.log_start_offset)
        if offset < may_start:
            continue
        epoch = decode_batch_header(batch.data).partition_leader_epoch
        known = epoch_at(log.epochs, offset)
        assert known == epoch, f"{log} has the leader epoch {epoch} at {offset}, and knows {log.epochs}"


def _check_transactions(log: Log, found: Sequence[Batch]) -> None:
    """Readers of committed records are told of every abort, and stop before the first transaction that is open.

    Where the log's beginning was deleted, a transaction may have begun before what is found of it.
    """
    open_since: dict[int, int] = {}
    aborts: set[tuple[int, int]] = set()
    aborted: dict[tuple[int, int], int] = {}
    for batch in found:
        if batch.control is None:
            if batch.is_transactional:
                open_since.setdefault(batch.producer_id, batch.base_offset)
            continue
        first_offset = open_since.pop(batch.producer_id, None)
        if batch.control is ControlRecordType.ABORT and batch.base_offset >= log.log_start_offset:
            aborts.add((batch.producer_id, batch.base_offset))
            if first_offset is not None:
                aborted[batch.producer_id, batch.base_offset] = first_offset
    listed = {
        (each.producer_id, each.last_offset): each.first_offset
        for each in log.aborted_transactions(log.log_start_offset, log.log_end_offset)
    }
    assert listed.keys() <= aborts, f"{log} tells of transactions that nobody aborted: {listed.keys() - aborts}"
    for each, first_offset in aborted.items():
        assert listed.get(each, log.log_end_offset) <= first_offset, f"{log} does not tell of the abort {each}"
    unstable = log.first_unstable_offset
    if open_since:
        first_offset = max(min(open_since.values()), log.log_start_offset)
        assert unstable is not None, f"{log} has forgotten that a transaction is open since {first_offset}"
        assert unstable <= first_offset, f"{log} is stable up to {unstable}, a transaction is open since {first_offset}"
    elif not log.log_start_offset:
        assert unstable is None, f"{log} knows of an open transaction since {unstable}, and there is none"
