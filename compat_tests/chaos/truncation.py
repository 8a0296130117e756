"""What a consumer says of a truncated partition, and whether it is so (KIP-320).

librdkafka 2.16 has one OffsetForLeaderEpoch request under way, and compares its answer with the position that it has by
then. Where the answer takes its time, it is about an older leader epoch than that position's, and seems to say that the
log ends in front of it. With `auto.offset.reset=error` the partition is reported as truncated, otherwise it is read
again from where the older epoch ended; with Apache Kafka 4.3.1 as with pykbroker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from confluent_kafka import Message

from compat_tests.clusters.view import ANSWER_DEADLINE_S
from compat_tests.waiting import until
from compat_tests.wire import Closed, Silent, Wire
from pykbroker.protocol.messages.offsets import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.history.operations import Value

_REPORTED = re.compile(r"log truncation detected at offset (\d+) \(leader epoch (\d+)\)")


class TruncationReported(Exception):
    """A consumer holds its position in this partition for truncated: `leader_epoch` is to have ended in front of it."""

    def __init__(self, topic: str, partition: int, offset: int, leader_epoch: int) -> None:
        super().__init__(f"{topic}-{partition} is said to be truncated at {offset}, in leader epoch {leader_epoch}")
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.found: Mapping[str, list[tuple[int, Value]]] = {}
        """The records that came along."""

    @classmethod
    def of(cls, message: Message) -> TruncationReported | None:
        """Return what the message reports, None where it is another one."""
        error, topic, partition = message.error(), message.topic(), message.partition()
        reported = _REPORTED.search(error.str()) if error is not None else None
        if reported is None or topic is None or partition is None:
            return None
        return cls(topic, partition, int(reported[1]), int(reported[2]))

    def is_refuted_by(self, told: EpochEndOffset) -> bool:
        """Raises AssertionError where the log was truncated: a leader epoch whose records went never has any again."""
        assert told.leader_epoch == self.leader_epoch, f"{self}: epoch {told.leader_epoch} ends at {told.end_offset}"
        assert told.end_offset >= self.offset, f"{self}: the epoch ends at {told.end_offset}"
        return True

    def refute(self, bootstrap: str) -> None:
        """Ask until a leader tells that the log holds the position. Raises AssertionError where it does not."""
        nodes = [(host, int(port)) for host, _, port in (each.rpartition(":") for each in bootstrap.split(","))]
        until(lambda: any(map(self.is_refuted_by, self._answers(nodes))), f"somebody leads who knows: {self}")

    def _answers(self, nodes: Iterable[tuple[str, int]]) -> Iterator[EpochEndOffset]:
        """None of who does not lead, does not serve, or leads in an older epoch than it is asked for."""
        asked = OffsetForLeaderPartition(partition=self.partition, leader_epoch=self.leader_epoch)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=self.topic, partitions=[asked])])
        for node in nodes:
            try:
                with Wire(node, ANSWER_DEADLINE_S) as wire:
                    answer = wire.call(request, 4, deadline_s=ANSWER_DEADLINE_S)
            except (OSError, Closed, Silent):
                continue
            assert isinstance(answer, OffsetForLeaderEpochResponse)
            (told,) = answer.topics[0].partitions
            if not told.error_code and told.leader_epoch >= 0:
                yield told
