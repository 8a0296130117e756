"""The state of each producer of a log: the last five batches, epochs, open transactions (`ProducerStateManager`).

It answers whether a batch of an idempotent producer is new, a duplicate or out of order (KIP-98), whether one of a
transaction may be appended (KIP-890), and which `.snapshot` files there are. Sequences run from 0 to 2^31-1 and start
again.
"""

import posixpath
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.records.batch import NO_PRODUCER_EPOCH, RecordBatchHeader
from pykbroker.protocol.records.control import ControlRecordType, EndTransactionMarker

from ..files.disk import Disk
from ..files.errors import CorruptLog, FileError
from ..segments.segment import put_aside_or_remove
from ..segments.transaction_index import AbortedTransaction
from .producer_entry import MAX_SEQUENCE, BatchMetadata, ProducerEntry
from .producer_snapshots import SNAPSHOT_SUFFIX, decode_snapshot, encode_snapshot
from .transaction_verification import VerificationGuard, VerificationState


class ProducerStateManager:
    """One log's producers. `end_offset` is up to where the state holds what the log has."""

    def __init__(self, disk: Disk, directory: str, *, expiration_ms: int) -> None:
        self._disk = disk
        self._directory = directory
        self.expiration_ms = expiration_ms
        self._producers: dict[int, ProducerEntry] = {}
        self._open_transactions: dict[int, int] = {}
        self._unreplicated: dict[int, int] = {}
        """Transactions whose end is perhaps not replicated yet: first offset, and offset of the marker."""
        self._verifications: dict[int, VerificationState] = {}
        self._known_snapshots: set[int] | None = None
        self._unsynced: set[int] = set()
        """The offsets of snapshots that a power cut may tear."""
        self.damaged_snapshots: set[int] = set()
        """Those that were found damaged and are still there."""
        self.end_offset = 0
        self.last_snapshot_offset = 0
        """That of the latest snapshot on disk, or where the log starts."""

    def another(self) -> "ProducerStateManager":
        """Return another state of the same log, with nothing in it."""
        return ProducerStateManager(self._disk, self._directory, expiration_ms=self.expiration_ms)

    def take_over(self, other: "ProducerStateManager") -> None:
        """Take over another state, whose log has the same records and is out of use from now on."""
        assert other.end_offset == self.end_offset
        self._producers = other._producers
        self._open_transactions = other._open_transactions
        self._unreplicated = other._unreplicated
        self._verifications = other._verifications

    def become(self, other: "ProducerStateManager") -> None:
        """Become what another state of the same log has found out: all of it, and nothing else."""
        self.end_offset, self.last_snapshot_offset = other.end_offset, other.last_snapshot_offset
        self._unsynced |= other._unsynced
        self.take_over(other)

    def move_to(self, directory: str) -> None:
        """The log's directory has another name now."""
        self._directory = directory

    @property
    def producers(self) -> dict[int, ProducerEntry]:
        return self._producers

    @property
    def first_unstable_offset(self) -> int | None:
        """The offset at which the earliest transaction began that is still open."""
        return min(self._open_transactions.values()) if self._open_transactions else None

    def first_undecided_offset(self, high_watermark: int) -> int | None:
        """Return where the earliest transaction began that is open, or whose marker a new leader might lack."""
        if not self._unreplicated and not self._open_transactions:  # as in nearly all logs: each read asks
            return None
        self.forget_replicated(high_watermark)
        open_offset = self.first_unstable_offset
        if not self._unreplicated:
            return open_offset
        unreplicated_offset = min(self._unreplicated)
        return unreplicated_offset if open_offset is None else min(open_offset, unreplicated_offset)

    def forget_replicated(self, high_watermark: int) -> None:
        if self._unreplicated:
            self._unreplicated = {first: last for first, last in self._unreplicated.items() if last >= high_watermark}

    # Appending

    def check_client_batch(self, header: RecordBatchHeader) -> BatchMetadata | None:
        """Return the earlier append that an idempotent producer's batch repeats, or None for the next batch.

        Raises `ApiError` (INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER).
        """
        entry = self._producers.get(header.producer_id)
        if entry is None:
            # Nothing is known of this producer: too old, or deleted with its records. Any sequence is its first.
            return None
        batches = entry.batches
        if (
            batches
            and header.producer_epoch == entry.producer_epoch
            and header.base_sequence == batches[-1].last_sequence + 1
        ):
            return None  # the next batch, as nearly all are
        duplicate = entry.find_duplicate(header)
        if duplicate is not None:
            return duplicate
        self._check_epoch(entry, header.producer_epoch)
        first, last = header.base_sequence, entry.last_sequence
        if entry.producer_epoch == NO_PRODUCER_EPOCH:
            return None
        if header.producer_epoch != entry.producer_epoch:
            in_order = first == 0
        else:
            in_order = first == last + 1 or (first == 0 and last == MAX_SEQUENCE)
        if not in_order:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"out of order sequence number for producer {header.producer_id}: "
                f"{first} (incoming), {last} (current end)",
            )
        return None

    def _check_epoch(self, entry: ProducerEntry, producer_epoch: int) -> None:
        if producer_epoch < entry.producer_epoch:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch of producer {entry.producer_id} is {producer_epoch}, "
                f"which is smaller than the last seen epoch {entry.producer_epoch}",
            )

    def update(self, header: RecordBatchHeader, base_offset: int, max_timestamp: int) -> None:
        """A data batch of a producer was appended at `base_offset`."""
        entry = self._producers.get(header.producer_id)
        if entry is None:
            entry = self._producers[header.producer_id] = ProducerEntry(header.producer_id)
        if header.producer_epoch != entry.producer_epoch:
            entry.set_epoch(header.producer_epoch)
        delta = header.last_offset_delta
        entry.batches.append(BatchMetadata(header.last_sequence, base_offset + delta, delta, max_timestamp))
        entry.last_timestamp = max_timestamp
        if header.is_transactional and entry.current_transaction_first_offset is None:
            entry.current_transaction_first_offset = base_offset
            self._open_transactions[header.producer_id] = base_offset
            self._verifications.pop(header.producer_id, None)

    # Transactions

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        entry = self._producers.get(producer_id)
        if entry is None or entry.producer_epoch != producer_epoch:
            return False
        return entry.current_transaction_first_offset is not None

    def start_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, now_ms: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | None:
        """Start a verification, before the coordinator is asked, with the batch's first sequence.

        Return None where nobody needs to ask: the transaction is open here.
        """
        if self.has_ongoing_transaction(producer_id, producer_epoch):
            return None
        state = self._verifications.get(producer_id)
        if state is None:
            state = VerificationState(VerificationGuard(), now_ms, producer_epoch, sequence, supports_epoch_bump)
            self._verifications[producer_id] = state
        else:
            state.note(producer_epoch, sequence, supports_epoch_bump=supports_epoch_bump)
        return state.guard

    def has_guard(self, producer_id: int, guard: VerificationGuard) -> bool:
        """Tell whether nothing has taken it back: no marker, and no first batch of a transaction."""
        state = self._verifications.get(producer_id)
        return state is not None and state.guard is guard

    def check_verified(self, producer_id: int, producer_epoch: int, guard: VerificationGuard | None) -> None:
        """A producer's transaction is open here, or the coordinator was asked since the last one ended.

        Raises `ApiError` (INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE).
        """
        if self.has_ongoing_transaction(producer_id, producer_epoch):
            return
        entry = self._producers.get(producer_id)
        if entry is not None:
            self._check_epoch(entry, producer_epoch)
        state = self._verifications.get(producer_id)
        if state is None or state.guard is not guard:
            raise ApiError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")

    def check_verified_batch(self, header: RecordBatchHeader, guard: VerificationGuard | None) -> None:
        """Check a client's transactional batch as `check_verified` does; one that was appended already may come again.

        Raises `ApiError` (OUT_OF_ORDER_SEQUENCE_NUMBER, and those).
        """
        producer_id, sequence = header.producer_id, header.base_sequence
        entry = self._producers.get(producer_id)
        if entry is not None and entry.find_duplicate(header) is not None:
            return
        self.check_verified(producer_id, header.producer_epoch, guard)
        state = self._verifications.get(producer_id)
        if state is None:
            return
        begins_anew = state.supports_epoch_bump and (entry is None or not entry.batches)
        if sequence > (0 if begins_anew else state.lowest_sequence):
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"out of order sequence number for producer {producer_id}: no transaction begins at {sequence}",
            )

    def check_end_of_transaction(self, producer_id: int, producer_epoch: int, transaction_version: int) -> None:
        """Check a marker further than `check_marker`: from transaction.version 2 on its epoch is new (KIP-1228).

        One that was there already may come again. Raises `ApiError` (INVALID_PRODUCER_EPOCH).
        """
        entry = self._producers.get(producer_id)
        if entry is None:
            return
        self._check_epoch(entry, producer_epoch)
        is_open = entry.current_transaction_first_offset is not None
        if transaction_version >= 2 and producer_epoch == entry.producer_epoch and is_open:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"a marker with the epoch {producer_epoch} of producer {producer_id} cannot end a transaction of the "
                f"same epoch",
            )

    # Markers

    def check_epoch(self, header: RecordBatchHeader) -> None:
        """Raises `ApiError` for a batch of an old producer."""
        entry = self._producers.get(header.producer_id)
        if entry is not None:
            self._check_epoch(entry, header.producer_epoch)

    def check_marker(self, header: RecordBatchHeader, marker: EndTransactionMarker) -> None:
        """Raises `ApiError` for a marker of an old coordinator."""
        entry = self._producers.get(header.producer_id)
        if entry is None:
            return
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise ApiError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {marker.coordinator_epoch} for producer {header.producer_id} "
                f"is smaller than {entry.coordinator_epoch}",
            )

    def update_marker(self, header: RecordBatchHeader, marker: EndTransactionMarker) -> AbortedTransaction | None:
        """A transaction was ended by a marker. Returns what the transaction index is to know of it."""
        assert marker.control_type in (ControlRecordType.COMMIT, ControlRecordType.ABORT)
        entry = self._producers.setdefault(header.producer_id, ProducerEntry(header.producer_id))
        entry.set_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = header.max_timestamp
        entry.current_transaction_first_offset = None
        self._verifications.pop(header.producer_id, None)
        first_offset = self._open_transactions.pop(header.producer_id, None)
        if first_offset is None:
            # There were no records between two markers, and there is nothing to hide.
            return None
        self._unreplicated[first_offset] = header.last_offset
        if marker.control_type is ControlRecordType.COMMIT:
            return None
        stable_offset = self.first_unstable_offset
        return AbortedTransaction(
            header.producer_id,
            first_offset,
            header.last_offset,
            header.next_offset if stable_offset is None else stable_offset,
        )

    def remove_expired(self, now_ms: int) -> None:
        """`producer.id.expiration.ms` after the last append; never in the middle of a transaction."""
        expired = [entry.producer_id for entry in self._producers.values() if self._is_expired(entry, now_ms)]
        for producer_id in expired:
            del self._producers[producer_id]
        forgotten = [each for each, state in self._verifications.items() if self._is_over(state.since_ms, now_ms)]
        for producer_id in forgotten:
            del self._verifications[producer_id]

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        if entry.current_transaction_first_offset is not None:
            return False
        return self._is_over(entry.last_timestamp, now_ms)

    def _is_over(self, since_ms: int, now_ms: int) -> bool:
        return now_ms - since_ms >= self.expiration_ms

    # Snapshots

    def take_snapshot(self, *, sync: bool) -> None:
        """Take a snapshot of the state at `end_offset`, in the file of that name."""
        self._disk.replace_file(self.snapshot_path(self.end_offset), encode_snapshot(self._producers), sync=sync)
        self.damaged_snapshots.discard(self.end_offset)
        if not sync:
            self._unsynced.add(self.end_offset)
        self.last_snapshot_offset = self.end_offset
        if self._known_snapshots is not None:
            self._known_snapshots.add(self.end_offset)

    def note_unsynced_snapshots(self, recovery_point: int) -> None:
        """Note those that a process took before it died: no flush came behind them."""
        self._unsynced.update(offset for offset in self.snapshot_offsets() if offset >= recovery_point)

    def sync_snapshots(self) -> None:
        """Make the snapshots durable that were taken without a sync. May run in a thread beside whoever removes some.

        Raises `FileError`.
        """
        for offset in sorted(self._unsynced):
            # First: one that is taken anew meanwhile is to be synced again.
            self._unsynced.discard(offset)
            try:
                self._sync_snapshot(self.snapshot_path(offset))
            except FileError:
                self._unsynced.add(offset)
                raise

    def _sync_snapshot(self, path: str) -> None:
        try:
            file = self._disk.open(path)
        except FileError:
            if self._disk.exists(path):
                raise
            return
        try:
            file.sync()
        finally:
            file.close()

    def snapshot_offsets(self) -> list[int]:
        """Ascending."""
        known = self._known_snapshots
        return sorted(_snapshot_offsets(self._disk.list_directory(self._directory)) if known is None else known)

    @contextmanager
    def knowing_files(self, names: Iterable[str]) -> Iterator[None]:
        """The directory's files, for as long as nobody else adds snapshots or takes any away: they are not listed."""
        self._known_snapshots = _snapshot_offsets(names)
        try:
            yield
        finally:
            self._known_snapshots = None

    def snapshot_path(self, offset: int) -> str:
        return posixpath.join(self._directory, f"{offset:020d}{SNAPSHOT_SUFFIX}")

    def put_snapshot_aside(self, offset: int) -> list[str]:
        """Put a snapshot aside whose segment is aside already. Returns the path, where there was one."""
        return put_aside_or_remove(self._disk, [self.snapshot_path(offset)])

    def remove_snapshot(self, offset: int) -> None:
        self._disk.remove(self.snapshot_path(offset))
        self.damaged_snapshots.discard(offset)
        if self._known_snapshots is not None:
            self._known_snapshots.discard(offset)

    def is_sound(self, offset: int) -> bool:
        """Tell whether the snapshot can be read. Raises `FileError`."""
        path = self.snapshot_path(offset)
        try:
            for _ in decode_snapshot(self._disk.read_file(path), path):
                pass
        except CorruptLog:
            return False
        return True

    def remove_snapshots_behind(self, offset: int) -> None:
        for snapshot_offset in self.snapshot_offsets():
            if snapshot_offset > offset:
                self.remove_snapshot(snapshot_offset)

    def load_latest_snapshot(
        self, log_start_offset: int, end_offset: int, now_ms: int, *, remove_others: bool = True
    ) -> None:
        """Start from the latest sound snapshot up to `end_offset`, or from nothing at `log_start_offset`.

        Later snapshots, and damaged ones, are removed: they tell of batches that are not there, or of nothing.
        remove_others: not as long as it is open how far the log goes.
        """
        self.clear(log_start_offset)
        for offset in reversed(self.snapshot_offsets()):
            if offset > end_offset:
                if remove_others:
                    self.remove_snapshot(offset)
            elif offset >= log_start_offset:
                path = self.snapshot_path(offset)
                try:
                    entries = list(decode_snapshot(self._disk.read_file(path), path))
                except CorruptLog:
                    if remove_others:
                        self.remove_snapshot(offset)
                    else:
                        self.damaged_snapshots.add(offset)
                    continue
                self._take_over(entries, now_ms)
                self.end_offset = self.last_snapshot_offset = offset
                return

    def _take_over(self, entries: list[ProducerEntry], now_ms: int) -> None:
        for entry in entries:
            if self._is_expired(entry, now_ms):
                continue
            self._producers[entry.producer_id] = entry
            if entry.current_transaction_first_offset is not None:
                self._open_transactions[entry.producer_id] = entry.current_transaction_first_offset

    def clear(self, end_offset: int) -> None:
        self._producers.clear()
        self._open_transactions.clear()
        self._unreplicated.clear()
        self._verifications.clear()
        self.end_offset = self.last_snapshot_offset = end_offset


def _snapshot_offsets(names: Iterable[str]) -> set[int]:
    stems = [name.removesuffix(SNAPSHOT_SUFFIX) for name in names if name.endswith(SNAPSHOT_SUFFIX)]
    return {int(stem) for stem in stems if stem.isdecimal()}
