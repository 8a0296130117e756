"""Cursors: an offset in each of some partitions, as a text for addresses, such as `0:17,3:4`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pykbroker.client.errors import BadInput

MOST_PARTITIONS: Final = 100
LONGEST: Final = 4096
_MOST_PARTITION: Final = 2**31 - 1
_MOST_OFFSET: Final = 2**63 - 1
_PAIR: Final = re.compile(r"([0-9]{1,10}):([0-9]{1,19})", re.ASCII)


def cursor_text(offsets: Mapping[int, int]) -> str:
    """Return the text of a cursor."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(offsets.items()))


def parse_cursor(text: str, name: str) -> dict[int, int]:
    """Return the offsets of a cursor, by partition. Raises BadInput."""
    found: dict[int, int] = {}
    for part in text.split(","):
        pair = _PAIR.fullmatch(part)
        if pair is None or int(pair[1]) > _MOST_PARTITION or int(pair[2]) > _MOST_OFFSET:
            raise BadInput(f"'{name}' is a list of PARTITION:OFFSET, such as 0:17,3:4")
        found[int(pair[1])] = int(pair[2])
    if len(found) > MOST_PARTITIONS:
        raise BadInput(f"'{name}' has {MOST_PARTITIONS} partitions at most")
    return found
