"""Responses from files: the headers of batches are read, wherever they lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykbroker.control.audit.batch_headers import BLOCK_BYTES, end_of_records, last_batch, size_bytes, with_headers
from pykbroker.protocol.records.batch import Record, encode_batch


class Region:
    """A part of a file, as the log gives it."""

    def __init__(self, path: Path, position: int, size: int, *, has_descriptor: bool = True) -> None:
        self._opened = path.open("rb")
        self.path = str(path)
        self.position = position
        self.size = size
        self._has_descriptor = has_descriptor

    @property
    def file(self) -> Region:
        return self

    def fileno(self) -> int | None:
        return self._opened.fileno() if self._has_descriptor else None

    def read(self) -> bytes:
        self._opened.seek(self.position)
        return self._opened.read(self.size)

    def close(self) -> None:
        self._opened.close()


def batches(sizes: list[int]) -> bytes:
    found = bytearray()
    for offset, size in enumerate(sizes):
        found += encode_batch([Record(None, bytes(size))], base_offset=offset)
    return bytes(found)


@pytest.mark.parametrize(
    "sizes",
    [
        [1],
        [1] * 5_000,
        [BLOCK_BYTES - 100, 10, 3 * BLOCK_BYTES, 5],
        [BLOCK_BYTES - 61 - 12 + shift for shift in range(40)],
    ],
    ids=["one", "many", "long and short", "headers across blocks"],
)
@pytest.mark.parametrize("has_descriptor", [True, False])
def test_the_last_offset_is_found_in_files(tmp_path: Path, sizes: list[int], has_descriptor: bool) -> None:
    records = batches(sizes)
    path = tmp_path / "log"
    path.write_bytes(b"before" + records + b"behind")
    region = Region(path, 6, len(records), has_descriptor=has_descriptor)
    response = with_headers([b"\0\0\0\0head", region, b"tail"])
    region.close()
    assert bytes(response[:4]) == b"head"
    assert bytes(response[-4:]) == b"tail"
    assert end_of_records(response[4:-4]) == len(sizes)
    assert end_of_records(last_batch(response[4:-4])) == len(sizes)
    assert len(last_batch(response[4:-4])) == len(batches([sizes[-1]]))
    assert size_bytes([b"head", region]) == 4 + len(records)


def test_a_file_that_became_shorter_gives_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "log"
    first = batches([10])
    path.write_bytes(first)
    region = Region(path, 0, 3 * len(first))
    assert end_of_records(with_headers([b"\0\0\0\0", region])) == 1
    region.close()


@pytest.mark.parametrize("records", [b"", b"\0" * 100, b"\xff" * 100, batches([5])[:-1]])
def test_what_is_no_whole_batch_has_no_end(records: bytes) -> None:
    assert end_of_records(records) is None
