"""Records of share groups (KIP-932): what is handed out, what becomes of acknowledgements, and how sessions end."""

from __future__ import annotations

import time
from typing import Any

import pytest

from compat_tests.hostile.scene import Scene
from compat_tests.wire import Wire
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.share_groups import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    FetchPartition,
    FetchTopic,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)

from .interview import Interview, batch, plain

GROUP_RESOURCE = 32
JOIN_S = 60.0
WAIT_MS, LOOK_MS = 10_000, 300
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
NOTHING = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}

Word = tuple[int, int, list[int]]
"""First offset, last offset, types."""


class Member:
    """A member of the share group with its session on one connection; every answer goes into the interview."""

    def __init__(self, interview: Interview, wire: Wire, name: str, topic_id: bytes, version: int) -> None:
        self._interview = interview
        self._wire = wire
        self._name = name
        self._topic_id = topic_id
        self._version = version
        self._group = interview.topic

    def join(self) -> None:
        """Join the group, and have its partition."""
        beat = ShareGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._name,
            member_epoch=0,
            subscribed_topic_names=[self._interview.topic],
        )
        deadline = time.monotonic() + JOIN_S
        while True:
            self._wire.call(FindCoordinatorRequest(key=self._group, key_type=0), 3)  # which has its topic created
            answer: Any = self._wire.call(beat, 1)
            if answer.error_code == 0:
                beat.member_epoch, beat.subscribed_topic_names = answer.member_epoch, None
                if answer.assignment is not None and answer.assignment.topic_partitions:
                    return
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)

    def fetch(
        self, step: str, epoch: int, *words: Word, names: bool = False, partition: int = 0, **fields: Any
    ) -> None:
        """names: whether the request names the partition; with words it does in any case."""
        partitions = [FetchPartition(partition_index=partition, acknowledgement_batches=_batches(words))]
        settings = {"max_wait_ms": LOOK_MS, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}
        request = ShareFetchRequest(
            group_id=self._group,
            member_id=self._name,
            share_session_epoch=epoch,
            topics=[FetchTopic(topic_id=self._topic_id, partitions=partitions)] if words or names else [],
            **{**settings, **fields},
        )
        self._ask(step, request)

    def acknowledge(self, step: str, epoch: int, *words: Word, partition: int = 0, **fields: Any) -> None:
        partitions = [AcknowledgePartition(partition_index=partition, acknowledgement_batches=_batches(words))]
        request = ShareAcknowledgeRequest(
            group_id=self._group,
            member_id=self._name,
            share_session_epoch=epoch,
            topics=[AcknowledgeTopic(topic_id=self._topic_id, partitions=partitions)],
            **fields,
        )
        self._ask(step, request)

    def _ask(self, step: str, request: ShareFetchRequest | ShareAcknowledgeRequest) -> None:
        answer: Any = self._wire.call(request, self._version)
        self._interview.answers[f"version {self._version}, {self._name}: {step}"] = plain(answer)


def _batches(words: tuple[Word, ...]) -> list[AcknowledgementBatch]:
    return [
        AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
        for first, last, types in words
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_records_from_their_first_delivery_to_their_last(interview: Interview, version: int) -> None:
    interview.topic = f"{interview.topic}-{version}"
    topic_id = interview.create(interview.topic)
    scene = Scene(interview.broker)
    with Wire(interview.broker.address) as wire, Wire(interview.broker.address) as other_wire:
        _read_from_the_beginning(wire, interview.topic)
        for values in ((b"a", b"b", b"c"), (b"d", b"e"), (b"f", b"g", b"h", b"i")):
            assert scene.produce(batch(*values), interview.topic) == "NONE"
        anna = Member(interview, wire, "anna", topic_id, version)
        anna.join()
        bert = Member(interview, other_wire, "bert", topic_id, version)
        anna.fetch("begins a session with acknowledgements", 0, (0, 0, [ACCEPT]))
        anna.fetch("has no session yet", 1)
        anna.acknowledge("acknowledges without a session", 1, (0, 0, [ACCEPT]))
        anna.acknowledge("begins a session by an acknowledgement", 0, (0, 0, [ACCEPT]))
        anna.fetch("is given all, in batches", 0, names=True, max_wait_ms=WAIT_MS, batch_size=4)
        bert.fetch("is given nothing", 0, names=True)
        bert.acknowledge("acknowledges what anna has", 1, (0, 4, [ACCEPT]))
        bert.acknowledge("acknowledges a part of what anna has", 2, (1, 2, [ACCEPT]))
        anna.fetch("uses an epoch that was", 5)
        anna.acknowledge("accepts, releases and rejects", 1, (0, 2, [ACCEPT]), (3, 4, [RELEASE, REJECT]))
        bert.fetch("is given what was released", 3, max_wait_ms=WAIT_MS)
        anna.acknowledge("accepts once more", 2, (0, 0, [ACCEPT]))
        anna.acknowledge("accepts what bert has", 3, (3, 3, [ACCEPT]))
        anna.acknowledge("accepts what nobody has", 4, (7, 20, [ACCEPT]))
        anna.acknowledge("accepts what is far away", 5, (50, 60, [ACCEPT]))
        anna.acknowledge("says it the wrong way round", 6, (8, 7, [ACCEPT]))
        anna.acknowledge("says too little", 7, (5, 8, [ACCEPT, ACCEPT]))
        anna.acknowledge("says nothing", 8, (5, 8, []))
        anna.acknowledge("says nothing of any record", 9)
        anna.acknowledge("says what nobody knows", 10, (5, 5, [7]))
        anna.acknowledge("renews, and does not say so", 11, (5, 5, [RENEW]))
        anna.acknowledge("speaks of an unknown partition", 12, (0, 0, [ACCEPT]), partition=7)
        anna.acknowledge("says that there is no record", 13, (5, 5, [GAP]))
        anna.fetch(
            "releases beside a fetch, and has it again", 14, (6, 7, [RELEASE]), (8, 8, [ACCEPT]), max_wait_ms=WAIT_MS
        )
        anna.fetch("names an unknown partition", 15, names=True, partition=7)
        anna.fetch("ends the session with a word", -1, (6, 6, [ACCEPT]))
        anna.fetch("has ended it", -1)
        bert.fetch("has what anna had", 4, max_wait_ms=WAIT_MS)
        bert.acknowledge("ends its session", -1, (3, 3, [ACCEPT]), (7, 7, [ACCEPT]))
        bert.acknowledge("has ended it", -1)
        anna.fetch("finds nothing more", 0, names=True)


def test_records_by_number_and_locks_that_are_renewed(interview: Interview) -> None:
    topic_id = interview.create(interview.topic)
    scene = Scene(interview.broker)
    with Wire(interview.broker.address) as wire:
        _read_from_the_beginning(wire, interview.topic)
        for values in ((b"a", b"b", b"c", b"d"), (b"e", b"f")):
            assert scene.produce(batch(*values), interview.topic) == "NONE"
        anna = Member(interview, wire, "anna", topic_id, 2)
        anna.join()
        anna.fetch("two records", 0, names=True, max_wait_ms=WAIT_MS, max_records=2, share_acquire_mode=1)
        anna.fetch("one record, or the end of its batch", 1, max_records=1)
        anna.fetch("one record of the next batch", 2, max_records=1, share_acquire_mode=1)
        anna.fetch("renews and fetches", 3, (0, 1, [RENEW]), is_renew_ack=True)
        anna.fetch("renews", 3, (0, 1, [RENEW]), is_renew_ack=True, **NOTHING)
        anna.acknowledge("renews one, and accepts another", 4, (0, 1, [RENEW, ACCEPT]), is_renew_ack=True)
        anna.acknowledge("renews what it has not", 5, (1, 1, [RENEW]), is_renew_ack=True)
        anna.fetch("one that is left", 6, max_records=1)
        anna.fetch("fetches no record", 7, max_records=0)
        anna.fetch("fetches no byte", 8, max_bytes=0)
        anna.acknowledge("accepts the rest", -1, (0, 0, [ACCEPT]), (2, 5, [ACCEPT]))


def _read_from_the_beginning(wire: Wire, group: str) -> None:
    config = IncrementalAlterConfigsRequestAlterableConfig(
        name="share.auto.offset.reset", config_operation=0, value="earliest"
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name=group, configs=[config]
    )
    answer: Any = wire.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == 0, answer
