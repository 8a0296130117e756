"""The codecs: bounds that hold before anything large exists, and the framings that clients use."""

import random
import tracemalloc
import zlib

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.records import compression
from pykbroker.protocol.records.compression import (
    MAX_PARTS,
    Compression,
    compress,
    decompress,
    decompress_large,
    limit_of,
)
from pykbroker.protocol.records.errors import InvalidRecords
from tests.examples import examples

REAL_CODECS = [codec for codec in Compression if codec is not Compression.NONE]


@examples(100)
@given(st.binary(max_size=5000), st.integers(1, 60), st.sampled_from(list(Compression)))
def test_round_trip(piece: bytes, times: int, codec: Compression) -> None:
    data = piece * times
    assert bytes(decompress(codec, compress(codec, data))) == data


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_exactly_the_limit_passes_and_one_byte_more_does_not(codec: Compression) -> None:
    compressed = compress(codec, bytes(300_000))
    assert len(decompress(codec, compressed, 300_000)) == 300_000
    with pytest.raises(InvalidRecords) as refused:
        decompress(codec, compressed, 299_999)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_bomb_is_refused_without_being_expanded(codec: Compression) -> None:
    bomb = compress(codec, bytes(100_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRecords) as refused:
            decompress(codec, bomb, 1_000_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    # Snappy hardly compresses: its bomb is 5 MB already, and its copy is counted as well.
    assert peak < 3_000_000 + 3 * len(bomb)


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_truncated_data_is_corrupt_at_every_length(codec: Compression) -> None:
    compressed = compress(codec, b"some text that repeats itself, some text that repeats itself" * 5)
    for end in range(len(compressed)):
        if codec is Compression.SNAPPY and end == 16:
            continue  # a framing header without blocks is what Java writes for no data
        with pytest.raises(InvalidRecords) as refused:
            decompress(codec, compressed[:end])
        assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_raw_snappy_is_read_as_librdkafka_writes_it() -> None:
    raw = bytes(cramjam.snappy.compress_raw(b"abc" * 1000))
    assert decompress(Compression.SNAPPY, raw) == b"abc" * 1000


def test_snappy_is_written_in_the_framing_of_java_in_several_blocks() -> None:
    data = bytes(range(256)) * 400
    compressed = compress(Compression.SNAPPY, data)
    assert compressed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    assert decompress(Compression.SNAPPY, compressed) == data
    with pytest.raises(InvalidRecords):
        decompress(Compression.SNAPPY, compressed, len(data) - 1)


def test_snappy_block_beyond_the_data_is_corrupt() -> None:
    compressed = compress(Compression.SNAPPY, b"abc")
    lying = compressed[:16] + (2**31 - 1).to_bytes(4, "big") + compressed[20:]
    with pytest.raises(InvalidRecords) as refused:
        decompress(Compression.SNAPPY, lying)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_lz4_blocks_are_independent_because_java_reads_no_others() -> None:
    compressed = compress(Compression.LZ4, b"abc" * 100_000)
    assert compressed[:4] == b"\x04\x22\x4d\x18"
    flags = compressed[4]
    assert flags & 0b1100_0000 == 0b0100_0000
    assert flags & 0b0010_0000, "block independence"


def test_gzip_members_follow_each_other() -> None:
    compressed = compress(Compression.GZIP, b"one") + compress(Compression.GZIP, b"two")
    assert decompress(Compression.GZIP, compressed) == b"onetwo"
    with pytest.raises(InvalidRecords) as refused:
        decompress(Compression.GZIP, compressed, 5)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_zlib_without_gzip_header_is_corrupt() -> None:
    with pytest.raises(InvalidRecords) as refused:
        decompress(Compression.GZIP, zlib.compress(b"abc"))
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_levels_are_used() -> None:
    rng = random.Random(1)
    data = b"".join(rng.choice((b"offset ", b"epoch ", b"leader ", b"of ", rng.randbytes(2))) for _ in range(20_000))
    for codec, low, high in ((Compression.GZIP, 1, 9), (Compression.LZ4, 1, 12), (Compression.ZSTD, 1, 19)):
        assert len(compress(codec, data, high)) < len(compress(codec, data, low))


@pytest.mark.parametrize("number", [5, 6, 7])
def test_codec_ids_that_mean_nothing_are_unsupported(number: int) -> None:
    with pytest.raises(InvalidRecords) as refused:
        Compression.from_attributes(number)
    assert refused.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("codec", REAL_CODECS)
@pytest.mark.parametrize("size", [0, 1, 100, 300_000, (9 << 20) + 5])
def test_what_a_thread_decompresses_is_the_same(codec: Compression, size: int) -> None:
    data = (b"some text that repeats itself, " * (size // 31 + 1))[:size]
    large = decompress_large(codec, compress(codec, data), size + 1)
    assert large.size == size
    assert large.data[:size] == data


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_a_thread_stops_at_the_limit_and_at_damage(codec: Compression) -> None:
    compressed = compress(codec, bytes(300_000))
    with pytest.raises(InvalidRecords) as refused:
        decompress_large(codec, compressed, 299_999)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    with pytest.raises(InvalidRecords) as refused:
        decompress_large(codec, compressed[:-20], 300_000)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_several_gzip_members_are_read_as_one() -> None:
    members = [random.Random(size).randbytes(size) * 2 for size in (0, 1, 600, 2000, 70_000, 0, 300_000)]
    compressed = b"".join(compress(Compression.GZIP, each) for each in members)
    assert decompress(Compression.GZIP, compressed) == b"".join(members)
    with pytest.raises(InvalidRecords) as refused:
        decompress(Compression.GZIP, compressed + b"garbage behind the members")
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


class _CountingZlib:
    """Counts what members are made, and the bytes that they are given and leave over, which are copied."""

    error = zlib.error

    def __init__(self) -> None:
        self.members = 0
        self.given = 0

    def decompressobj(self, wbits: int) -> "_CountingMember":
        self.members += 1
        return _CountingMember(self, zlib.decompressobj(wbits))


class _CountingMember:
    def __init__(self, counts: _CountingZlib, member: object) -> None:
        self._counts = counts
        self._member = member

    def decompress(self, data: bytes, limit: int) -> bytes:
        self._counts.given += len(data)
        part: bytes = self._member.decompress(data, limit)  # type: ignore[attr-defined]
        return part

    def __getattr__(self, name: str) -> object:
        return getattr(self._member, name)


def test_the_work_for_empty_gzip_members_grows_with_their_number_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    members = compress(Compression.GZIP, b"") * 5_000
    counts = _CountingZlib()
    monkeypatch.setattr(compression, "zlib", counts)
    assert decompress(Compression.GZIP, members) == b""
    assert counts.members == 5_000
    assert counts.given <= 5_000 * 1024  # with all that is left for each member it would be 250 MB


def test_a_client_may_send_a_bounded_number_of_members_and_blocks() -> None:
    for codec, part in (
        (Compression.GZIP, compress(Compression.GZIP, b"")),
        (Compression.SNAPPY, compress(Compression.SNAPPY, b"x")[16:]),
    ):
        prefix = b"" if codec is Compression.GZIP else compress(codec, b"")
        large = decompress_large(codec, prefix + part * MAX_PARTS, 1 << 20)
        assert large.size == (0 if codec is Compression.GZIP else MAX_PARTS)
        with pytest.raises(InvalidRecords) as refused:
            decompress_large(codec, prefix + part * (MAX_PARTS + 1), 1 << 20)
        assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
        # What was stored before is read, whatever wrote it.
        decompress(codec, prefix + part * (MAX_PARTS + 1))


def test_the_limit_grows_with_what_a_topic_takes() -> None:
    assert limit_of(1 << 20) == 64 << 20
    assert limit_of(10 << 20) == 320 << 20
    assert limit_of(100 << 20) == 1 << 30
