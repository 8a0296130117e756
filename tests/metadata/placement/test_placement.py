"""Where the replicas of new partitions go, next to what Apache Kafka's own placer says (`record_placements`)."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from pykbroker.metadata.placement import place_partitions
from pykbroker.metadata.registrations import BrokerRegistration

from .record_placements import recorded

RECORDED = list(recorded())
SEEDS = range(20)


class OneNumber(random.Random):
    """Draws the same number each time, as `KafkasPlacements.java` does: `number % bound`."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def shuffle(self, x: Any) -> None:
        """From the end, each with one of those before it or itself; Python's own has the same rule, and no promise."""
        for index in reversed(range(1, len(x))):
            other = self._number % (index + 1)
            x[index], x[other] = x[other], x[index]

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        assert (stop, step) == (None, 1)
        return self._number % start


def broker(broker_id: int, rack: str | None = None, *, fenced: bool = False) -> BrokerRegistration:
    return BrokerRegistration(id=broker_id, epoch=1, incarnation_id=bytes(16), endpoints=(), rack=rack, fenced=fenced)


def test_there_is_a_recording_of_every_kind() -> None:
    brokers = [case["brokers"] for case in RECORDED]
    assert any(each["fenced"] for case in brokers for each in case)
    assert any({each["rack"] for each in case} > {None} for case in brokers)
    assert any({each["rack"] for each in case} == {None} for case in brokers)
    assert any(case["partitions"] > 2 * len(case["brokers"]) for case in RECORDED)


@pytest.mark.parametrize("case", RECORDED)
def test_replicas_go_where_kafka_puts_them(case: dict[str, Any]) -> None:
    brokers = [broker(each["id"], each["rack"], fenced=each["fenced"]) for each in case["brokers"]]
    placed = list(place_partitions(brokers, case["partitions"], case["replicas"], OneNumber(case["number"])))
    assert placed == case["kafka"]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_partition_has_two_replicas_in_a_rack_while_there_are_other_racks(seed: int) -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
    brokers = [broker(each, rack) for each, rack in racks.items()]
    for replicas in place_partitions(brokers, 30, 3, random.Random(seed)):
        assert len({racks[each] for each in replicas}) == 3


@pytest.mark.parametrize("seed", SEEDS)
def test_replicas_are_even_over_racks_of_equal_size(seed: int) -> None:
    brokers = [broker(each, "ab"[each % 2]) for each in range(4)]
    placed = list(place_partitions(brokers, 8, 2, random.Random(seed)))
    assert Counter(each for replicas in placed for each in replicas) == dict.fromkeys(range(4), 4)
    assert all(first % 2 != second % 2 for first, second in placed)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_broker_leads_as_often_where_there_are_no_racks(seed: int) -> None:
    placed = list(place_partitions([broker(each) for each in range(4)], 12, 2, random.Random(seed)))
    assert Counter(replicas[0] for replicas in placed[:4]) == dict.fromkeys(range(4), 1)


def test_a_fenced_broker_never_leads() -> None:
    brokers = [broker(1, "a", fenced=True), broker(2, "b"), broker(3, "c", fenced=True)]
    for replicas in place_partitions(brokers, 6, 3, random.Random(0)):
        assert replicas[0] == 2
        assert sorted(replicas) == [1, 2, 3]
