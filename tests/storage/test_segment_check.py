"""Damage anywhere in a segment is found, named by its place, and does not hide the sound batches around it."""

import struct

import pytest

from pykbroker.protocol.records.batch import Record, assemble_batch, encode_batch
from pykbroker.protocol.records.compression import Compression
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.checks.batch_walk import FoundBatch, FoundLegacyMessage, Unreadable
from pykbroker.storage.checks.segment_check import ChainState, Checked, SegmentCheck
from tests.legacy_messages import message, messages
from tests.storage.batches import NOW_MS, batch

PATH = "/data/t-0/00000000000000000100.log"


def check(
    disk: SimulatedDisk, data: bytes, *, base_offset: int = 100, end_offset: int | None = None, deep: bool = True
) -> list[Checked]:
    disk.make_directory("/data/t-0")
    disk.replace_file(PATH, data)
    file = disk.open(PATH)
    found = list(SegmentCheck(file, base_offset, ChainState(), end_offset=end_offset, deep=deep))
    file.close()
    return found


def complaints(checked: list[Checked]) -> list[str]:
    return [str(finding) for each in checked for finding in each.findings]


def three(codec: Compression = Compression.NONE) -> list[bytes]:
    return [
        encode_batch(
            [Record(b"key", b"value %d" % index, (), NOW_MS) for index in range(2)],
            base_offset=base_offset,
            compression=codec,
            partition_leader_epoch=3,
        )
        for base_offset in (100, 102, 104)
    ]


@pytest.mark.parametrize("codec", list(Compression))
def test_nothing_is_wrong_with_what_was_written(disk: SimulatedDisk, codec: Compression) -> None:
    found = check(disk, b"".join(three(codec)), end_offset=106)
    assert complaints(found) == []
    assert [each.hole for each in found] == [None] * 3


def test_every_flipped_byte_is_found_and_hides_no_other_batch(disk: SimulatedDisk) -> None:
    batches = three()
    start, end = len(batches[0]), len(batches[0]) + len(batches[1])
    for position in range(start, end):
        for bit in (0x01, 0x80):
            data = bytearray(b"".join(batches))
            data[position] ^= bit
            found = check(disk, bytes(data), end_offset=106)
            damaged = [each for each in found if each.findings]
            assert damaged, position
            assert all(start <= each.found.position < end for each in damaged), position
            sound = [each.found.position for each in found if not each.findings]
            assert sound == [0, end], position


def test_every_place_where_a_log_may_be_cut_is_found(disk: SimulatedDisk) -> None:
    batches = three()
    data = b"".join(batches)
    for end in range(len(data)):
        if end in (0, len(batches[0]), len(batches[0]) + len(batches[1])):
            continue
        found = check(disk, data[:end])
        assert isinstance(found[-1].found, Unreadable)
        assert len(complaints(found)) == 1


def test_a_changed_base_offset_is_told_by_the_neighbours(disk: SimulatedDisk) -> None:
    first, second, third = three()
    for changed, complaint in ((101, "the batch before ends at 101"), (103, "the neighbours leave 102 for it")):
        found = check(disk, first + struct.pack(">q", changed) + second[8:] + third)
        assert complaints(found) == [
            f"at byte {len(first)} (offset {changed}): the base offset is {changed}, {complaint}"
        ]


def test_a_changed_leader_epoch_is_told_by_the_neighbours(disk: SimulatedDisk) -> None:
    first, second, third = three()
    found = check(disk, first + second[:12] + struct.pack(">i", 7) + second[16:] + third)
    assert complaints(found) == [
        f"at byte {len(first)} (offset 102): the leader epoch is 7, before it 3 and behind it 3"
    ]
    found = check(disk, first + second[:12] + struct.pack(">i", 2) + second[16:] + third)
    assert complaints(found) == [f"at byte {len(first)} (offset 102): the leader epoch goes back from 3 to 2"]


def test_a_hole_is_no_damage_by_itself(disk: SimulatedDisk) -> None:
    first, _, third = three()
    found = check(disk, first + third)
    assert complaints(found) == []
    assert found[1].hole == range(102, 104)


def test_zeros_behind_the_end_are_called_so(disk: SimulatedDisk) -> None:
    data = b"".join(three())
    found = check(disk, data + bytes(37))
    assert complaints(found) == [f"at byte {len(data)} (offset 106): 37 zero bytes"]
    assert isinstance(found[-1].found, Unreadable)
    assert found[-1].found.is_zero


def test_a_length_that_lies_costs_no_more_than_its_batch(disk: SimulatedDisk) -> None:
    first, second, third = three()
    for length in (0, 49, len(second), 2**31 - 1, -1):
        found = check(disk, first + second[:8] + struct.pack(">i", length) + second[12:] + third)
        assert [each.found.position for each in found if not each.findings] == [0, len(first) + len(second)]


def test_garbage_is_passed_over_in_one_piece(disk: SimulatedDisk) -> None:
    first, second, third = three()
    garbage = bytes(range(256)) * 5000
    found = check(disk, first + garbage + second + third)
    assert len(found) == 4
    assert isinstance(found[1].found, Unreadable)
    assert found[1].found.size == len(garbage)


def test_a_batch_within_a_damaged_batch_is_not_taken_for_one_of_the_log(disk: SimulatedDisk) -> None:
    """Who keeps copies of other logs in a topic has batches in values; their offsets are others."""
    first, _, third = three()
    copy = batch(2, base_offset=7)
    carrier = bytearray(encode_batch([Record(b"key", copy), Record(b"key", copy)], base_offset=102))
    carrier[10] ^= 1
    found = check(disk, first + bytes(carrier) + third)
    assert [each.found.position for each in found if not each.findings] == [0, len(first) + len(carrier)]


def test_records_are_looked_at_when_asked(disk: SimulatedDisk) -> None:
    lying = encode_batch([Record(None, b"a"), Record(None, b"b")], base_offset=100, offset_deltas=[0, 0])
    unpackable = assemble_batch(
        b"\x28\xb5\x2f\xfd but no more",
        base_offset=100,
        partition_leader_epoch=0,
        attributes=int(Compression.ZSTD),
        last_offset_delta=0,
        base_timestamp=0,
        max_timestamp=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=1,
    )
    for data, complaint in ((unpackable, "the zstd data is damaged"), (lying, "2 records in 1 offsets")):
        assert complaint in complaints(check(disk, data))[0]
    assert complaints(check(disk, unpackable, deep=False)) == []


def test_offsets_that_cannot_be_in_the_segment_are_damage(disk: SimulatedDisk) -> None:
    (complaint,) = complaints(check(disk, batch(2, base_offset=99)))
    assert "the offsets 99-100 cannot be in a segment of 100" in complaint
    (complaint,) = complaints(check(disk, batch(2, base_offset=100), end_offset=101))
    assert "the last offset is 101, the next segment begins at 101" in complaint


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_formats_are_checked_as_well(disk: SimulatedDisk, magic: int) -> None:
    old = messages([Record(b"key", b"value", (), NOW_MS, 100 + number) for number in range(8)], magic)
    found = check(disk, old + batch(1, base_offset=108))
    assert complaints(found) == []
    assert [type(each.found) for each in found] == [FoundLegacyMessage] * 5 + [FoundBatch]
    size = len(message(Record(b"key", b"value", (), NOW_MS, 100), magic))
    changed = check(disk, old[: size - 1] + b"E" + old[size:] + batch(1, base_offset=108))
    assert complaints(changed) == ["at byte 0 (offset 100): the checksum is not that of the bytes"]
    backwards = check(
        disk, message(Record(None, b"", offset=101), magic) + message(Record(None, b"", offset=100), magic)
    )
    assert len(complaints(backwards)) == 1
    assert complaints(backwards)[0].endswith("(offset 100): the offset is 100, the message before has 101")
