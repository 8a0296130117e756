"""Points: whatever the journal keeps has the state that there was when it ended, however entries overlap."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from pykbroker.control.journal.exchange import OVERHEAD_BYTES, Exchange
from pykbroker.control.journal.points import METADATA, InvalidPoints, LogEnd, Points, ends_values, read_ends
from pykbroker.control.replay.errors import PointLost
from pykbroker.control.replay.points import point_of
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from pykbroker.protocol.topic_partition import TopicPartition

from .entries import begin, end, new_journal

LOGS = [METADATA, *(TopicPartition("t", index) for index in range(3))]


@pytest.mark.parametrize("seed", range(30))
def test_each_kept_entry_has_its_state(seed: int) -> None:
    rng = random.Random(seed)
    journal = new_journal(most_bytes=25 * OVERHEAD_BYTES)
    state = {METADATA: LogEnd("", 0, 1, 0)}
    told: dict[TopicPartition, LogEnd] = {}

    def look() -> dict[TopicPartition, LogEnd | None]:
        changed: dict[TopicPartition, LogEnd | None] = {at: each for at, each in state.items() if told.get(at) != each}
        changed |= {at: None for at in told if at not in state}
        told.clear()
        told.update(state)
        return changed

    journal.look = look
    waiting: list[Exchange] = []
    states: dict[int, dict[TopicPartition, LogEnd]] = {}
    for _ in range(400):
        at = rng.choice(LOGS)
        if at in state and at != METADATA and rng.random() < 0.1:
            del state[at]
        elif rng.random() < 0.6:
            last = state.get(at, LogEnd("id", 0, 0, 0))
            state[at] = last._replace(end_offset=last.end_offset + rng.randint(1, 3))
        if rng.random() < 0.5:
            waiting.append(begin(journal, HeartbeatRequest(group_id="g"), 4))
        elif waiting:
            ended = waiting.pop(rng.randrange(len(waiting)))
            end(journal, ended, HeartbeatResponse())
            states[ended.number] = dict(state)
        else:
            journal.note("__consumer_offsets-0", "x", 0)
            states[journal.last_number] = dict(state)
    kept = journal.entries()
    assert journal.forgotten
    assert any(entry.number in states for entry in kept)
    assert journal.kept_bytes == sum(entry.kept_bytes for entry in kept)
    for entry in kept:
        if entry.number in states:
            assert point_of(journal, entry.number).logs == states[entry.number]
        else:
            with pytest.raises(PointLost, match="had not ended yet"):
                point_of(journal, entry.number)
    with pytest.raises(PointLost, match="the journal has forgotten #1: it has"):
        point_of(journal, 1)


def ends_of(logs: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd | None]:
    return {at: LogEnd("id", 1, 5, 0, 2) for at in logs}


def test_ends_are_read_as_they_were_written() -> None:
    ends = {**ends_of(LOGS), TopicPartition("gone", 4): None}
    assert read_ends(ends_values(ends)) == ends


@pytest.mark.parametrize(
    "values",
    [
        [],
        {"t": None},
        {"../t-0": None},
        {"t-0": ["id", 0, 1, 0]},
        {"t-0": ["id", 2, 1, 0, 0]},
        {"t-0": ["id", 0, -1, 0, 0]},
        {"t-0": ["id", 0, True, 0, 0]},
        {"t-0": ["id", 0, 1 << 70, 0, 0]},
        {"t-0": [7, 0, 1, 0, 0]},
    ],
)
def test_what_are_no_ends(values: object) -> None:
    with pytest.raises(InvalidPoints):
        read_ends(values)


def test_what_is_forgotten_is_in_the_base() -> None:
    points = Points()
    for _ in range(3):
        points.next(ends_of(LOGS[:1]))
    last = points.next(ends_of(LOGS[1:2]))
    points.forget_before(last - 1)
    history = points.history()
    assert (history.base_point, [each.point for each in history.changes]) == (3, [4])
    assert set(history.at(last)) == set(LOGS[:2])
    assert set(history.at(last - 1)) == set(LOGS[:1])
