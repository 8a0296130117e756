"""The record of a share group's partitions: its topics keep their bytes, and it is the record that Kafka reads."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pykbroker.groups.common.records import decode_record
from pykbroker.groups.share.share_records import state_record
from pykbroker.groups.share.state_partitions import StatePartitions, StateTopic
from pykbroker.protocol.compile import encode
from pykbroker.protocol.messages.share_group_records import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)

topics_strategy = st.dictionaries(
    st.integers(0, 3).map(lambda number: bytes([number]) * 16),
    st.builds(StateTopic, st.text(max_size=4), st.frozensets(st.integers(0, 9), min_size=1)),
)
changes_strategy = st.lists(
    st.tuples(st.sampled_from(["initializing_too", "initialized_too", "not_initializing"]), topics_strategy)
)


def _plain(states: StatePartitions) -> bytes:
    def infos(topics: dict[bytes, StateTopic]) -> list[TopicPartitionsInfo]:
        return [
            TopicPartitionsInfo(topic_id=topic_id, topic_name=topic.name, partitions=sorted(topic.partitions))
            for topic_id, topic in topics.items()
        ]

    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=infos(dict(states.initializing)),
        initialized_topics=infos(dict(states.initialized)),
        deleting_topics=[TopicInfo(topic_id=topic_id, topic_name=name) for topic_id, name in states.deleting.items()],
    )
    return encode(value, 0)


@given(changes_strategy)
def test_the_record_is_that_of_the_topics_as_they_are_and_reads_as_them(
    changes: list[tuple[str, dict[bytes, StateTopic]]],
) -> None:
    states = StatePartitions()
    for change, topics in changes:
        states = getattr(states, change)(topics)
        key, value = state_record("group", states).encode()
        assert value is not None
        assert value[2:] == _plain(states)
        read = decode_record(key, value).value
        assert isinstance(read, ShareGroupStatePartitionMetadataValue)
        assert StatePartitions.of_record(read) == states


def test_a_topic_is_encoded_once() -> None:
    events = StateTopic("events", frozenset({0, 1}))
    states = StatePartitions().initializing_too({b"e" * 16: events})
    states.value()
    more = states.initializing_too({b"o" * 16: StateTopic("orders", frozenset({0}))})
    assert more.initializing[b"e" * 16].in_bytes(b"e" * 16) is events.in_bytes(b"e" * 16)
