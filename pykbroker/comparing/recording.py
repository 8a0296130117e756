"""The recording of one run of a script: each answer of the broker, with the client and the API that asked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from pykbroker.protocol.schema import Message

MOST_EXCHANGES: Final = 50_000
MOST_BYTES: Final = 256 * 1024 * 1024

CLOSED: Final = "closes the connection"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer, which is None where the broker closed the connection instead."""

    client_id: str
    api_key: int
    version: int
    answer: Message | None


@dataclass(slots=True)
class Recording:
    """The answers of one run.

    unread: counts requests whose answers are not known here, by API key and version. left_out: answers that were too
    many.
    """

    exchanges: list[Exchange] = field(default_factory=list)
    unread: Counter[tuple[int, int]] = field(default_factory=Counter)
    left_out: int = 0
    _bytes: int = 0

    def keep(self, exchange: Exchange, size_bytes: int) -> None:
        self._bytes += size_bytes
        if len(self.exchanges) >= MOST_EXCHANGES or self._bytes > MOST_BYTES:
            self.left_out += 1
        else:
            self.exchanges.append(exchange)
