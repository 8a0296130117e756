"""Incremental fetches (KIP-227): what a session answers, and how it ends."""

from typing import Any

import pytest

from compat_tests.hostile.scene import Scene
from compat_tests.wire import Wire
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

from .interview import Interview, batch, plain

WITHOUT_TOPIC_IDS, WITH_TOPIC_IDS = (7, 11, 12), (13, 16, 18)


class Session:
    """One connection that fetches in one version; every answer goes into the interview."""

    def __init__(self, interview: Interview, wire: Wire, version: int, topic_id: bytes) -> None:
        self._interview = interview
        self._wire = wire
        self._version = version
        self._topic_id = topic_id
        self.id = 0

    def fetch(self, step: str, epoch: int, *partitions: tuple[int, int], **fields: Any) -> None:
        """partitions: (partition, offset) to add or change."""
        wanted = [
            FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=2**20)
            for partition, offset in partitions
        ]
        topics = [FetchTopic(topic=self._interview.topic, topic_id=self._topic_id, partitions=wanted)] if wanted else []
        forgotten = [
            ForgottenTopic(topic=self._interview.topic, topic_id=self._topic_id, partitions=[partition])
            for partition in fields.pop("forgotten", ())
        ]
        request = FetchRequest(
            max_wait_ms=200,
            min_bytes=1,
            session_id=fields.pop("session_id", self.id),
            session_epoch=epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
        )
        answer: Any = self._wire.call(request, self._version)
        self.id = self.id or answer.session_id
        shown = plain(answer)
        shown["session_id"] = "mine" if answer.session_id == self.id else answer.session_id
        self._interview.answers[f"version {self._version}, {step}"] = shown


@pytest.mark.parametrize("version", [*WITHOUT_TOPIC_IDS, *WITH_TOPIC_IDS])
def test_a_session_from_its_first_fetch_to_its_last(interview: Interview, version: int) -> None:
    interview.topic = f"{interview.topic}-{version}"
    topic_id = interview.create(interview.topic, 3)
    scene = Scene(interview.broker)

    def produce(partition: int, value: bytes) -> None:
        assert scene.produce(batch(value), interview.topic, partition=partition) == "NONE"

    produce(0, b"first")
    with Wire(interview.broker.address) as wire:
        session = Session(interview, wire, version, topic_id)
        session.fetch("a new session", 0, (0, 0), (1, 0), (2, 0))
        session.fetch("goes on behind the first record", 1, (0, 1))
        produce(1, b"second")
        session.fetch("only the partition with news", 2)
        produce(2, b"third")
        session.fetch("the news that were not fetched, and others", 3)
        session.fetch("one is forgotten", 4, (1, 1), forgotten=[2])
        session.fetch("one comes back", 5, (2, 0))
        session.fetch("an offset out of range", 6, (2, 77))
        session.fetch("the same error again", 7)
        session.fetch("an unknown partition", 8, (2, 1), (9, 0))
        session.fetch("its error again", 9)
        session.fetch("an epoch that was", 3)
        session.fetch("an epoch too far", 99)
        session.fetch("the epoch that is due", 10)
        session.fetch("another session's id", 1, session_id=session.id + 1)
        session.fetch("the session ends, one fetch without", -1, (0, 0))
        session.fetch("the session is gone", 11)
