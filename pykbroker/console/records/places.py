"""Places in partitions as a reader types them. The page makes times of the reader's own zone complete."""

from __future__ import annotations

from collections.abc import Mapping

from pykbroker.client import places
from pykbroker.client.errors import BadInput
from pykbroker.client.places import Place
from pykbroker.client.spans import Span


def parse_place(text: str, name: str, now_ms: int) -> Place:
    """Return the place that a text names; a distance needs its end. Raises BadInput."""
    if text.strip()[:1] in ("+", "-"):
        raise BadInput(f"'{name}' has no end to count from: start+10 or end-10, not '{text.strip()[:60]}'")
    return places.parse_place(text, f"'{name}'", now_ms)


def offsets_of(place: Place, spans: Mapping[int, Span]) -> dict[int, int]:
    """Return the place's offset in each partition, inside of its span. The place is no time."""
    return {partition: span.inside(place.offset_in(span)) for partition, span in spans.items()}
