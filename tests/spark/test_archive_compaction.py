"""Which small files of an archive are merged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pykbroker.spark.archiving.compaction import FILES_OF_A_TIER, next_group, shared_out
from pykbroker.spark.archiving.manifest import ArchivedFile, Share

TOPIC = "orders"


def file_of(size: int, number: int, day: int = 1) -> ArchivedFile:
    share = Share(1, "00", 1, number, number, 0, 0)
    return ArchivedFile(f"topic=orders/date=2026-11-{day:02d}/{number:05d}", TOPIC, size, {0: share})


@given(st.lists(st.tuples(st.integers(0, 200_000_000), st.integers(1, 3)), max_size=400), st.integers(1, 16))
def test_merging_ends_with_few_files_of_one_day(sizes: list[tuple[int, int]], cores: int) -> None:
    """However they come: each record is written anew about once per tier."""
    target = 128 << 20
    files = {number: file_of(size, number, day) for number, (size, day) in enumerate(sizes)}
    numbers = iter(range(len(sizes), 10_000))
    written = 0
    while group := next_group(files.values(), target):
        assert len({file.directory for file in group}) == 1
        assert len(group) >= 2
        assert sum(file.file_bytes for file in group) <= target
        assert all(file.file_bytes <= target // 2 for file in group)
        merged = sum(file.file_bytes for file in group)
        written += merged
        for number in [number for number, file in files.items() if file in group]:
            del files[number]
        parts = shared_out(group, cores)
        assert [file for part in parts for file in part] == list(group)
        assert len(parts) < len(group)
        for part in parts:
            number = next(numbers)
            files[number] = file_of(sum(file.file_bytes for file in part), number, int(part[0].directory[-2:]))
    small = [file for file in files.values() if file.file_bytes <= target // 2]
    assert len(small) <= 3 * 7 * FILES_OF_A_TIER
    assert written <= 7 * sum(size for size, _ in sizes)
