"""Acknowledgements of share groups that come too late, and those that are well."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer

from pykbroker.control.audit.findings import Kind
from pykbroker.control.audit.shared_records import MOST_OF_ONE, Offsets, settled
from pykbroker.control.audit.who import Who
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages import share_groups, streams_groups
from pykbroker.testing import AuditFailed, Broker
from tests.groups.live_members import share_consumer, shared_records

from .test_auditor import APP, OTHER, PLACE, Wire, made

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
Words = Sequence[tuple[int, int, list[int]]]


class Sharing(Wire):
    """Members of the share group `g`."""

    def fetches_shared(
        self,
        who: Who,
        words: Words = (),
        acquired: Sequence[tuple[int, int, int]] = (),
        *,
        acknowledged: ErrorCode = ErrorCode.NONE,
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        """acquired: first and last offset, and how often they were delivered."""
        partition = made(share_groups.FetchPartition, partition_index=0, acknowledgement_batches=batches(words))
        topic = made(share_groups.FetchTopic, topic_id=PLACE.topic_id, partitions=[partition])
        request = made(share_groups.ShareFetchRequest, group_id="g", member_id="m", topics=[topic])
        told = made(
            share_groups.ShareFetchResponsePartitionData,
            partition_index=0,
            acknowledge_error_code=acknowledged,
            acquired_records=[
                made(share_groups.AcquiredRecords, first_offset=first, last_offset=last, delivery_count=count)
                for first, last, count in acquired
            ],
        )
        topics = [made(share_groups.ShareFetchableTopicResponse, topic_id=PLACE.topic_id, partitions=[told])]
        answer = made(share_groups.ShareFetchResponse, error_code=error, responses=[] if error else topics)
        self.exchange(who, ApiKey.SHARE_FETCH, request, answer)

    def acknowledges(self, who: Who, words: Words, error: ErrorCode = ErrorCode.NONE) -> None:
        partition = made(share_groups.AcknowledgePartition, partition_index=0, acknowledgement_batches=batches(words))
        topic = made(share_groups.AcknowledgeTopic, topic_id=PLACE.topic_id, partitions=[partition])
        request = made(share_groups.ShareAcknowledgeRequest, group_id="g", member_id="m", topics=[topic])
        told = made(share_groups.ShareAcknowledgeResponsePartitionData, partition_index=0, error_code=error)
        topics = [made(share_groups.ShareAcknowledgeTopicResponse, topic_id=PLACE.topic_id, partitions=[told])]
        answer = made(share_groups.ShareAcknowledgeResponse, responses=topics)
        self.exchange(who, ApiKey.SHARE_ACKNOWLEDGE, request, answer)


def batches(words: Words) -> list[share_groups.AcknowledgementBatch]:
    return [
        made(share_groups.AcknowledgementBatch, first_offset=first, last_offset=last, acknowledge_types=types)
        for first, last, types in words
    ]


@pytest.fixture
def wire() -> Sharing:
    wire = Sharing()
    wire.opens(APP)
    wire.opens(OTHER)
    return wire


def test_an_acknowledgement_behind_a_second_delivery_is_found(wire: Sharing) -> None:
    wire.fetches_shared(APP, acquired=[(0, 4, 1)])
    wire.fetches_shared(OTHER, acquired=[(2, 4, 2)])
    assert wire.found == []
    wire.acknowledges(APP, [(0, 4, [ACCEPT])], ErrorCode.INVALID_RECORD_STATE)
    assert wire.found == [Kind.LATE]
    assert "client app of 127.0.0.1 wanted to acknowledge the offsets 0 to 4 of orders-0 in share group g" in wire.text


def test_an_acknowledgement_before_the_second_delivery_is_found_then(wire: Sharing) -> None:
    wire.fetches_shared(APP, acquired=[(7, 7, 1)])
    wire.fetches_shared(APP, [(7, 7, [REJECT])], acknowledged=ErrorCode.INVALID_RECORD_STATE)
    assert wire.found == []
    wire.fetches_shared(OTHER, acquired=[(7, 9, 2)])
    assert wire.found == [Kind.LATE]
    wire.fetches_shared(OTHER, acquired=[(7, 9, 3)])
    assert wire.found == [Kind.LATE]  # once


def test_one_whose_session_has_ended_is_found_by_the_error_of_the_whole_answer(wire: Sharing) -> None:
    wire.fetches_shared(APP, [(1, 2, [ACCEPT, ACCEPT])], error=ErrorCode.SHARE_SESSION_NOT_FOUND)
    wire.fetches_shared(OTHER, acquired=[(1, 2, 2)])
    assert wire.found == [Kind.LATE]


def test_what_is_sent_twice_released_or_renewed_is_well(wire: Sharing) -> None:
    wire.fetches_shared(APP, acquired=[(0, 4, 1)])
    wire.acknowledges(APP, [(0, 1, [ACCEPT])])
    wire.acknowledges(APP, [(0, 1, [ACCEPT])], ErrorCode.INVALID_RECORD_STATE)  # settled, and never delivered again
    wire.acknowledges(APP, [(2, 2, [RELEASE]), (3, 3, [RENEW])], ErrorCode.INVALID_RECORD_STATE)
    wire.acknowledges(APP, [(4, 4, [ACCEPT])], ErrorCode.COORDINATOR_NOT_AVAILABLE)
    wire.fetches_shared(OTHER, acquired=[(2, 4, 2)])
    wire.fetches_shared(OTHER, acquired=[(5, 9, 1)])
    assert wire.found == []


def test_what_is_kept_of_a_partition_is_bounded(wire: Sharing) -> None:
    for offset in range(0, 4 * MOST_OF_ONE, 2):
        wire.acknowledges(APP, [(offset, offset, [ACCEPT])], ErrorCode.INVALID_RECORD_STATE)
    wire.fetches_shared(OTHER, acquired=[(0, 10 * MOST_OF_ONE, 2)])
    assert len(wire.found) == MOST_OF_ONE


def test_of_one_refused_acknowledgement_the_newest_ranges_are_looked_at(wire: Sharing) -> None:
    wire.fetches_shared(OTHER, acquired=[(0, 9_999, 2)])
    wire.acknowledges(APP, [(0, 9_999, [ACCEPT, RELEASE] * 5_000)], ErrorCode.INVALID_RECORD_STATE)
    assert wire.found == [Kind.LATE] * MOST_OF_ONE
    assert "offset 9998 of" in [*wire.auditor.findings][-1].text


def test_neighbours_that_are_settled_are_told_together() -> None:
    words: Words = [(0, 4, [ACCEPT, REJECT, RELEASE, 0, ACCEPT]), (7, 9, [ACCEPT]), (10, 12, [RELEASE])]
    assert list(settled(batches(words))) == [Offsets(0, 1), Offsets(4, 4), Offsets(7, 9)]


def test_a_member_of_a_streams_group_is_known_by_its_heartbeats(wire: Sharing) -> None:
    """So that the offsets which its producer commits are those of the client that has read."""
    wire.fetches(APP, 0, 5)
    beat = made(streams_groups.StreamsGroupHeartbeatRequest, group_id="billing", member_id="m")
    wire.exchange(APP, ApiKey.STREAMS_GROUP_HEARTBEAT, beat, made(streams_groups.StreamsGroupHeartbeatResponse))
    wire.commits_in_transaction(OTHER, 5)
    wire.ends_transaction(OTHER, committed=True)
    wire.commits_in_transaction(OTHER, 9)
    wire.ends_transaction(OTHER, committed=True)
    assert wire.found == [Kind.JUMP]
    assert "client app " in wire.text


def test_a_consumer_that_is_too_slow_is_found_at_a_broker() -> None:
    settings = {"group.share.min.record.lock.duration.ms": "1000", "group.share.record.lock.duration.ms": "1000"}
    explicit = {"share_acknowledgement_mode": "explicit", "client_id": "slow"}
    with Broker(settings) as broker:
        broker.create_topic("jobs").produce(b"a")
        slow = share_consumer(broker.bootstrap_servers, "g", "jobs", **explicit)
        quick = share_consumer(broker.bootstrap_servers, "g", "jobs", **{**explicit, "client_id": "quick"})
        late = "late-acknowledgement: client slow .* wanted to acknowledge offset 0 of jobs-0 in share group g"
        audit = broker.audit()
        with pytest.raises(AuditFailed, match=late), audit:
            _be_too_late(slow, quick)
        assert {each.kind for each in audit.findings} == {Kind.LATE}


def _be_too_late(slow: AbstractContextManager[ShareConsumer], quick: AbstractContextManager[ShareConsumer]) -> None:
    with slow as first, quick as second:
        (record,) = shared_records(first, 1)
        (again,) = shared_records(second, 1)
        first.acknowledge(record, AcknowledgeType.ACCEPT)
        (refused,) = first.commit_sync().values()
        assert refused is not None
        second.acknowledge(again, AcknowledgeType.ACCEPT)
        second.commit_sync()
