"""What was found: anomalies with the operations that show them."""

from __future__ import annotations

from dataclasses import dataclass, field

from .operations import Operation

SHOWN_OPERATIONS = 12

INFORMATIONAL = frozenset(
    (
        *("G0", "G1c-ww", "G0-process", "G1c-process", "G0-realtime", "G1c-realtime-ww"),
        *("send-skip", "poll-skip-subscribed", "nonmonotonic-poll-subscribed", "int-nonmonotonic-poll-subscribed"),
        "consume-counts-unpaired",
        *("stale-delivery", "stale-delivery-count"),
    )
)
"""What Kafka permits: no isolation of writes, readers of a group that begin again somewhere else, and deliveries by a
leader that has yet to hear of its successor.
"""


@dataclass(frozen=True, slots=True)
class Anomaly:
    """name: as in the table. witness: the operations that show it, and no others."""

    name: str
    message: str
    witness: tuple[Operation, ...]

    @property
    def is_bad(self) -> bool:
        return self.name not in INFORMATIONAL


@dataclass(slots=True)
class Report:
    anomalies: list[Anomaly]
    operations: int
    figures: dict[str, int] = field(default_factory=dict)
    """Not judged: counts and durations."""

    @property
    def bad(self) -> list[Anomaly]:
        return [anomaly for anomaly in self.anomalies if anomaly.is_bad]

    @property
    def names(self) -> set[str]:
        return {anomaly.name for anomaly in self.anomalies}

    def __str__(self) -> str:
        lines = [f"{'BAD' if self.bad else 'good'}: {self.operations} operations"]
        lines += [f"  {name}: {value}" for name, value in sorted(self.figures.items())]
        for name in sorted(self.names, key=lambda name: (name in INFORMATIONAL, name)):
            found = [anomaly for anomaly in self.anomalies if anomaly.name == name]
            shortest = min(found, key=lambda anomaly: len(anomaly.witness))
            note = "" if shortest.is_bad else " (permitted)"
            lines.append(f"{name}{note}: {len(found)}, such as: {shortest.message}")
            lines += [f"    {operation}" for operation in shortest.witness[:SHOWN_OPERATIONS]]
            if len(shortest.witness) > SHOWN_OPERATIONS:
                lines.append(f"    and {len(shortest.witness) - SHOWN_OPERATIONS} more operations")
        return "\n".join(lines)
