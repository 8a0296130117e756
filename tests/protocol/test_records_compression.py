"""The codecs: bounds that hold before anything large exists, and the framings that clients use."""

import random
import tracemalloc
import zlib

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.records.compression import Compression, compress, decompress
from pykbroker.protocol.records.errors import InvalidRecords

REAL_CODECS = [codec for codec in Compression if codec is not Compression.NONE]


@settings(max_examples=100, deadline=None)
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
    assert refused.value.error_code is ErrorCode.MESSAGE_TOO_LARGE


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
    assert refused.value.error_code is ErrorCode.MESSAGE_TOO_LARGE
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
        assert refused.value.error_code is ErrorCode.CORRUPT_MESSAGE


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
    assert refused.value.error_code is ErrorCode.CORRUPT_MESSAGE


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
    assert refused.value.error_code is ErrorCode.MESSAGE_TOO_LARGE


def test_zlib_without_gzip_header_is_corrupt() -> None:
    with pytest.raises(InvalidRecords) as refused:
        decompress(Compression.GZIP, zlib.compress(b"abc"))
    assert refused.value.error_code is ErrorCode.CORRUPT_MESSAGE


def test_levels_are_used() -> None:
    rng = random.Random(1)
    data = b"".join(rng.choice((b"offset ", b"epoch ", b"leader ", b"of ", rng.randbytes(2))) for _ in range(20_000))
    for codec, low, high in ((Compression.GZIP, 1, 9), (Compression.LZ4, 1, 12), (Compression.ZSTD, 1, 19)):
        assert len(compress(codec, data, high)) < len(compress(codec, data, low))


@pytest.mark.parametrize("number", [5, 6, 7])
def test_codec_ids_that_mean_nothing_are_unsupported(number: int) -> None:
    with pytest.raises(InvalidRecords) as refused:
        Compression.from_attributes(number)
    assert refused.value.error_code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
