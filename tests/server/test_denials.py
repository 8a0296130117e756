"""The denials of late are counted by kind, the newest first, and within bounds."""

from __future__ import annotations

from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.node.denials import Denials


def note(denials: Denials, topic: str, at_ms: int, client_id: str = "app") -> None:
    denials.note("User:a", "10.0.0.1", client_id, Operation.READ, ResourceType.TOPIC, topic, at_ms)


def test_denials_of_a_kind_are_counted_and_the_newest_comes_first() -> None:
    denials = Denials()
    for at_ms, topic in enumerate(["t", "u", "t"]):
        note(denials, topic, at_ms)
    assert [(each.name, each.count, each.timestamp_ms) for each in denials] == [("t", 2, 2), ("u", 1, 1)]


def test_denials_are_so_many_at_most_and_have_no_long_names() -> None:
    denials = Denials(most=3)
    for number in range(10):
        note(denials, f"t{number}", number)
        note(denials, "x" * 1_000, number)
        note(denials, "t", number, client_id="x" * 1_000)
    assert [each.name for each in denials] == ["t9", "t8", "t7"]
