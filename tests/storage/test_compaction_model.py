"""Any run of appends, rolls, cleanings and restarts beside a list of what was written."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pykbroker.protocol.records.compression import Compression
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.log.log import Log
from tests.examples import examples
from tests.storage.batches import NOW_MS, config, open_log, read_all
from tests.storage.cleaning import CODECS, clean, cleanable, keyed

PATH = "/data/t-0"
RETENTION_MS = 1000
KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
PAIRS = st.lists(st.tuples(KEYS, st.booleans()), min_size=1, max_size=4)


@dataclass(slots=True)
class Written:
    key: bytes
    value: bytes | None
    timestamp: int
    first_horizon_ms: int | None = None
    """The earliest time at which a tombstone may go."""
    last_horizon_ms: int | None = None
    """From when on a cleaning that comes by has to drop it."""


class CompactedLog(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.disk = SimulatedDisk(Random(1))
        self.disk.make_directory(PATH)
        self.disk.sync_directory("/")
        self.disk.sync_directory("/data")
        self.written: list[Written] = []
        self.now_ms = NOW_MS
        self.cleaned: int | None = None
        self.sequences: dict[int, int] = {}
        self.log: Log

    @initialize(segment_bytes=st.sampled_from([200, 500, 2000]), interval=st.sampled_from([0, 100]))
    def create(self, segment_bytes: int, interval: int) -> None:
        self.config = config(
            cleanup_policy="compact",
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            delete_retention_ms=RETENTION_MS,
        )
        self.log = open_log(self.disk, PATH, self.config)

    @rule(pairs=PAIRS, codec=st.sampled_from(CODECS), producer=st.sampled_from([None, 7, 8]))
    def append(self, pairs: Sequence[tuple[bytes, bool]], codec: Compression, producer: int | None) -> None:
        records = [
            Written(key, b"%d" % (len(self.written) + number) if has_value else None, self.now_ms)
            for number, (key, has_value) in enumerate(pairs)
        ]
        producer_fields = {}
        if producer is not None:
            first = self.sequences.get(producer, 0)
            producer_fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": first}
            self.sequences[producer] = first + len(records)
        data = keyed(
            *((each.key, each.value) for each in records),
            timestamp=self.now_ms,
            compression=codec,
            **producer_fields,
        )
        result = self.log.append_as_leader(data, 0, self.now_ms)
        assert result.first_offset == len(self.written)
        self.written += records

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @rule(ms=st.integers(1, 2 * RETENTION_MS))
    def wait(self, ms: int) -> None:
        self.now_ms += ms

    @rule(slots=st.sampled_from([8, 16, 1024]))
    def clean(self, slots: int) -> None:
        if not cleanable(self.log, self.cleaned, now_ms=self.now_ms).dirty_bytes:
            return
        before = self.offsets()
        self.cleaned = clean(self.disk, self.log, self.cleaned, now_ms=self.now_ms, memory_bytes=24 * slots)
        found = self.offsets()
        assert found <= before
        latest: dict[bytes, int] = {}
        for offset, record in enumerate(self.written[: self.cleaned]):
            latest[record.key] = offset
        for offset, record in enumerate(self.written[: self.cleaned]):
            is_due = record.last_horizon_ms is not None and record.last_horizon_ms <= self.now_ms
            if latest[record.key] != offset or (record.value is None and is_due):
                assert offset not in found, "it is superseded, or a tombstone whose time is over"
            elif record.last_horizon_ms is None:
                record.last_horizon_ms = self.now_ms + RETENTION_MS
        for record in self.written:
            if record.first_horizon_ms is None:
                record.first_horizon_ms = self.now_ms + RETENTION_MS

    @rule(is_clean=st.booleans())
    def restart(self, is_clean: bool) -> None:
        """Unclean: without checkpoint and snapshots, so that the log alone tells of everything."""
        recovery_point = 0
        if is_clean:
            self.log.close()
            recovery_point = self.log.recovery_point
        else:
            self.log.flush()
            for offset in self.log.producers.snapshot_offsets():
                self.log.producers.remove_snapshot(offset)
            self.disk.sync_directory(PATH)
        self.disk.crash()
        self.log = open_log(
            self.disk, PATH, self.config, now_ms=self.now_ms, recovery_point=recovery_point, clean_shutdown=is_clean
        )
        self.check_producers()

    def check_producers(self) -> None:
        known = {id: entry.last_sequence + 1 for id, entry in self.log.producers.producers.items()}
        assert known == self.sequences

    def offsets(self) -> set[int]:
        return {record.offset for record in read_all(self.log)}

    @invariant()
    def is_what_was_written(self) -> None:
        if not hasattr(self, "log"):
            return
        assert self.log.log_end_offset == len(self.written)
        found = read_all(self.log)
        offsets = [record.offset for record in found]
        assert offsets == sorted(set(offsets)), "in order, and none twice"
        for record in found:
            written = self.written[record.offset]
            assert (record.key, record.value, record.timestamp) == (written.key, written.value, written.timestamp)
        latest = {written.key: offset for offset, written in enumerate(self.written)}
        for offset in latest.values():
            written = self.written[offset]
            horizon_ms = written.first_horizon_ms
            if written.value is not None or horizon_ms is None or self.now_ms < horizon_ms:
                assert offset in offsets, "the latest record of a key"


TestCompactedLog = CompactedLog.TestCase
TestCompactedLog.settings = examples(60, stateful_step_count=40)
