"""Where `--from` and `--to` are: the words for it."""

import pytest

from pykbroker.cli.command import CommandFailed
from pykbroker.cli.records.places import parse_place
from pykbroker.client.places import Anchor, Place
from pykbroker.client.spans import Span

NOW_MS = 1_764_417_600_123  # 2025-11-29T12:00:00.123Z


def place(text: str) -> Place:
    return parse_place(text, "--from", NOW_MS)


@pytest.mark.parametrize(
    ("text", "anchor", "number"),
    [
        ("0", Anchor.OFFSET, 0),
        ("9223372036854775807", Anchor.OFFSET, 2**63 - 1),
        ("start", Anchor.START, 0),
        ("Beginning", Anchor.START, 0),
        ("start+10", Anchor.START, 10),
        ("+10", Anchor.START, 10),
        ("end", Anchor.END, 0),
        ("latest", Anchor.END, 0),
        ("end-10", Anchor.END, -10),
        ("-10", Anchor.END, -10),
        ("@1764410400000", Anchor.TIME, 1_764_410_400_000),
        ("2025-11-29T10:00:00Z", Anchor.TIME, 1_764_410_400_000),
        ("2025-11-29T10:00:00.250", Anchor.TIME, 1_764_410_400_250),
        ("2025-11-29T11:00:00+01:00", Anchor.TIME, 1_764_410_400_000),
        ("2025-11-29", Anchor.TIME, 1_764_374_400_000),
        ("today", Anchor.TIME, 1_764_374_400_000),
        ("yesterday", Anchor.TIME, 1_764_288_000_000),
        ("now", Anchor.TIME, NOW_MS),
        ("5m ago", Anchor.TIME, NOW_MS - 300_000),
        ("5 minutes ago", Anchor.TIME, NOW_MS - 300_000),
        ("1 hour 5 mins 2 secs ago", Anchor.TIME, NOW_MS - 3_902_000),
        ("250ms ago", Anchor.TIME, NOW_MS - 250),
        ("1 week ago", Anchor.TIME, NOW_MS - 604_800_000),
        ("2h30m ago", Anchor.TIME, NOW_MS - 9_000_000),
        ("1.5 d ago", Anchor.TIME, NOW_MS - 129_600_000),
    ],
)
def test_a_place_has_a_word(text: str, anchor: Anchor, number: int) -> None:
    assert place(text) == Place(anchor, number)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "1e3",
        "٣",
        "-",
        "end+1",
        "start-1",
        "5 ago",
        "5 months ago",
        "5 minutes",
        "5m",
        "1.2.3s ago",
        "99999999999w ago",
        "@-1",
        "@99999999999999999999",
        "9223372036854775808",
        "9" * 5_000,
        "2025-13-01",
        "0001-01-01T00:00:00+23:59",
        "1969-12-31",
        "x" * 5_000,
    ],
)
def test_what_is_no_place_is_one_short_line(text: str) -> None:
    with pytest.raises(CommandFailed, match="--from") as caught:
        place(text)
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 250


def test_an_offset_is_brought_inside() -> None:
    span = Span(10, 20)
    assert [span.inside(offset) for offset in (0, 10, 15, 20, 99)] == [10, 10, 15, 20, 20]
