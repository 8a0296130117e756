"""Partitions by key as other clients choose them, and sticky ones without a key."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

from pykbroker.client.partitioner import StickyPartitions, murmur2, partition_for_key


@given(st.binary(max_size=200))
def test_keys_are_hashed_as_kafka_python_does_it(key: bytes) -> None:
    assert murmur2(key) == kafka_python_murmur2(key) & 0xFFFFFFFF


@given(st.binary(), st.integers(min_value=1, max_value=1000))
def test_a_key_has_one_partition(key: bytes, partitions: int) -> None:
    assert 0 <= partition_for_key(key, partitions) < partitions


def test_records_without_a_key_stay_until_their_batch_is_full() -> None:
    sticky = StickyPartitions(Random(1))
    first = sticky.partition("t", 5)
    assert {sticky.partition("t", 5) for _ in range(20)} == {first}
    sticky.batch_is_full("t", 5)
    assert sticky.partition("t", 5) != first


def test_the_only_partition_is_kept_when_its_batch_is_full() -> None:
    sticky = StickyPartitions(Random(1))
    sticky.batch_is_full("t", 1)
    assert sticky.partition("t", 1) == 0


def test_every_partition_gets_its_share() -> None:
    sticky = StickyPartitions(Random(1))
    seen = []
    for _ in range(300):
        seen.append(sticky.partition("t", 3))
        sticky.batch_is_full("t", 3)
    assert all(seen.count(partition) > 50 for partition in range(3))
