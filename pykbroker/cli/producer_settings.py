"""The settings of a producer that commands start, by Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pykbroker.protocol.records.compression import Compression

from .command import CommandFailed
from .connect import whole_number

ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """The settings of a producer, from `--command-property` or a file of properties."""

    acks: int
    idempotent: bool
    compression: Compression
    linger_ms: int
    batch_size_bytes: int
    delivery_timeout_ms: int

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Kafka's names and defaults. Raises CommandFailed."""
        acks = properties.get("acks", "all")
        if acks not in ACKS:
            raise CommandFailed(f"acks must be one of all, -1, 0, 1, not '{acks}'")
        codec = properties.get("compression.type", "none")
        if codec.upper() not in Compression.__members__:
            known = ", ".join(one.name.lower() for one in Compression)
            raise CommandFailed(f"The compression codec must be one of {known}, not '{codec}'")
        # As in Kafka, weaker acks switch idempotence off unless it was asked for.
        default = "true" if ACKS[acks] == -1 else "false"
        return cls(
            acks=ACKS[acks],
            idempotent=properties.get("enable.idempotence", default).lower() == "true",
            compression=Compression[codec.upper()],
            linger_ms=whole_number(properties, "linger.ms", 0),
            batch_size_bytes=whole_number(properties, "batch.size", 16_384),
            delivery_timeout_ms=whole_number(properties, "delivery.timeout.ms", 120_000),
        )
