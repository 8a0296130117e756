"""The rows of the scene of limits, as flags of the load generator, and those that have a target."""

from __future__ import annotations

Options = dict[str, int | str]
CLIENTS = 2
_SIXTEEN: Options = {"records": 16, "size": 1_000, "clients": CLIENTS}
SIZES = {
    "1 x 100 B": (1, 100),
    "16 x 1 kB": (16, 1_000),
    "64 x 1 kB": (64, 1_000),
    "600 x 100 B": (600, 100),
    "900 x 1 kB": (900, 1_000),
}
BY_SIZE: dict[str, Options] = {
    f"limit: {name}": {"records": records, "size": size, "clients": CLIENTS} for name, (records, size) in SIZES.items()
}
_WIDE: dict[str, Options] = {
    f"limit: 16 x 1 kB to {count} partitions at once": _SIXTEEN | {"batches": count, "partitions": count}
    for count in (1, 10, 100)
}
PRODUCE_ROWS: dict[str, Options] = {
    **BY_SIZE,
    **_WIDE,
    **{
        f"limit: 64 x 1 kB, {codec}": _SIXTEEN | {"records": 64, "codec": codec}
        for codec in ("lz4", "zstd", "gzip", "snappy")
    },
    **{f"limit: 16 x 1 kB, acks={'all' if acks < 0 else acks}": _SIXTEEN | {"acks": acks} for acks in (0, -1)},
    "limit: 16 x 1 kB, 50 clients": _SIXTEEN | {"clients": 50},
}
"""`partitions` is how many the topic has: no flag of the generator."""
FETCH_ROWS: dict[str, tuple[int, Options]] = {
    "limit: catch-up": (1, {"clients": CLIENTS}),
    "limit: catch-up, 100 partitions at once": (100, {"clients": CLIENTS, "partitions": 100, "max-bytes": 65_536}),
}
"""How many partitions the topic has, and flags."""
AIMED = (*BY_SIZE, *_WIDE)
"""Rows in which the broker must be well ahead."""
