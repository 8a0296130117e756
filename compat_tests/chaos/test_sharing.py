"""What members of the share group say, and when the group has had everything."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Message

from pykbroker.client.share_groups import ShareOffset
from tests.history.recorder import Recorder

from .journal import Journal
from .outcome import Outcome
from .sharing import DELIVERY_LIMIT, SHARERS, _given_by_confluent, is_at_end, word_on


def test_members_accept_most_and_give_back_what_was_hardly_ever_delivered() -> None:
    rng = Random(1)
    words = {count: Counter(word_on(count, rng) for _ in range(10_000)) for count in range(1, DELIVERY_LIMIT + 1)}
    for count, said in words.items():
        assert said["accept"] > 9_000
        assert said["reject"] > 0
        assert (said["release"] > 0, said[""] > 0) == (count <= 2, count <= 2)


@pytest.mark.parametrize(
    ("offset", "is_there"),
    [
        (ShareOffset(7, 1, 0), True),
        (ShareOffset(7, 1, None), True),  # a node that knows of no lag
        (ShareOffset(5, 1, 0), True),  # what the last write settled is behind the start offset that it stored
        (ShareOffset(5, 1, 2), False),
        (ShareOffset(5, 1, None), False),
        (ShareOffset(None, None, None), False),
        (None, False),
    ],
)
def test_a_group_is_at_the_end_when_nothing_is_left_to_be_delivered(offset: ShareOffset | None, is_there: bool) -> None:
    assert is_at_end(offset, 7) is is_there


def test_what_librdkafka_gives_is_told_with_its_counts() -> None:
    messages = [
        Message(topic="plain", partition=1, offset=3, value=b'"v1.1"', delivery_count=1),
        Message(topic="orders", partition=0, offset=5, value=b'["v1.2", 1]', delivery_count=4),
        Message(topic="plain", partition=1, offset=4, value=b'"v1.3"', delivery_count=2),
    ]
    recorder = Recorder()
    recording = recorder.invoke(1, "deliver")
    recording.delivered(SHARERS, _given_by_confluent(messages))
    recording.ok()
    (operation,) = recorder.operations()
    assert [(each.key, each.offset, each.value) for each in operation.reads] == [
        ("plain-1", 3, "v1.1"),
        ("plain-1", 4, "v1.3"),
        ("orders-0", 5, ("v1.2", 1)),
    ]
    assert [each.delivery_count for each in operation.deliveries] == [1, 2, 4]


def test_members_of_which_none_gets_anything_are_named(tmp_path: Path) -> None:
    with Journal(tmp_path / "faults.jsonl") as journal:
        done = {"share member 1": 0, "share member 2": 0, "own share member": 9}
        assert Outcome([], journal, done, 8, {}, []).idle == ["share member"]
