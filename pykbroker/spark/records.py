"""A record as the pipeline sees it: Spark's columns, and the hashes that checksums are made of.

A hash is `xxhash64` over fields in a fixed order. That function skips nulls, so each nullable field stands beside a
flag; headers are hashed as JSON, in which their borders, order, duplicates and nulls show. The checksum of a set of
records is the sum of their hashes modulo 2**64: it depends on no order, and checksums of disjoint sets can be added.
"""

from __future__ import annotations

_HEADERS = "CASE WHEN headers IS NULL THEN 0L ELSE xxhash64(to_json(headers, map('ignoreNullFields', 'false'))) END"

CONTENT_HASH = f"xxhash64(key IS NULL, key, value IS NULL, value, {_HEADERS})"
"""What a producer sends: key, value and headers."""

RECORD_HASH = f"xxhash64({CONTENT_HASH}, partition, offset, unix_micros(timestamp), timestampType)"
"""What a consumer gets; the topic's name is left out, which a mirror may change."""

DATE = "CAST(timestamp AS DATE)"
"""In the session's time zone, which is UTC."""

SIZE = "(COALESCE(OCTET_LENGTH(key), 0) + COALESCE(OCTET_LENGTH(value), 0))"
"""Bytes of key and value; headers and the record's own framing come on top."""

MODULUS = 1 << 64
EMPTY_CHECKSUM = f"{0:016x}"
"""Of no records."""


def checksum_text(total: int) -> str:
    """16 hexadecimal digits of a sum of hashes, which Spark gives as a signed number of 64 bits."""
    return f"{total % MODULUS:016x}"


def add_checksums(first: str, second: str) -> str:
    return checksum_text(int(first, 16) + int(second, 16))
