"""The share session of a consumer with one leader: what the leader knows of its partitions, and the requests."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pykbroker.protocol.messages.share_groups import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
)

from .share_membership import TopicIdPartition

_BEGINS = 0
_ENDS = -1
_LAST_EPOCH = 2**31 - 1

Batches = Mapping[TopicIdPartition, Sequence[AcknowledgementBatch]]


class ShareSession:
    """The epoch counts requests. A session that the leader has lost begins anew, without acknowledgements."""

    def __init__(self, group_id: str, member_id: str) -> None:
        self._group_id = group_id
        self._member_id = member_id
        self._epoch = _BEGINS
        self._known: frozenset[TopicIdPartition] = frozenset()
        self._asked: frozenset[TopicIdPartition] = frozenset()

    @property
    def is_open(self) -> bool:
        """Tell whether the leader has it, so that it takes acknowledgements."""
        return self._epoch != _BEGINS

    def fetch(
        self,
        partitions: Collection[TopicIdPartition],
        acknowledgements: Batches,
        *,
        max_wait_ms: int,
        max_bytes: int,
        max_records: int,
        batch_size: int,
        acquire_mode: int,
    ) -> ShareFetchRequest:
        """Return the request that makes the session one of these partitions, and asks for records."""
        assert self.is_open or not acknowledgements
        self._asked = frozenset(partitions)
        topics: dict[bytes, FetchTopic] = {}
        for of in sorted({*(self._asked - self._known), *acknowledgements}):
            row = FetchPartition(
                partition_index=of.partition, acknowledgement_batches=list(acknowledgements.get(of, ()))
            )
            topics.setdefault(of.topic_id, FetchTopic(topic_id=of.topic_id)).partitions.append(row)
        forgotten: dict[bytes, ForgottenTopic] = {}
        for of in sorted({*self._known, *acknowledgements} - self._asked):
            forgotten.setdefault(of.topic_id, ForgottenTopic(topic_id=of.topic_id)).partitions.append(of.partition)
        return ShareFetchRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=self._epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            max_records=max_records,
            batch_size=batch_size,
            share_acquire_mode=acquire_mode,
            topics=list(topics.values()),
            forgotten_topics_data=list(forgotten.values()),
        )

    def closing(self, acknowledgements: Batches) -> ShareAcknowledgeRequest:
        """Return the request that ends the session: what is not acknowledged is free for others."""
        topics: dict[bytes, AcknowledgeTopic] = {}
        for of, batches in sorted(acknowledgements.items()):
            row = AcknowledgePartition(partition_index=of.partition, acknowledgement_batches=list(batches))
            topics.setdefault(of.topic_id, AcknowledgeTopic(topic_id=of.topic_id)).partitions.append(row)
        return ShareAcknowledgeRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=_ENDS,
            topics=list(topics.values()),
        )

    def answered(self) -> None:
        """Note that the leader took the request of `fetch`."""
        self._known = self._asked
        self._epoch = 1 if self._epoch == _LAST_EPOCH else self._epoch + 1

    def lose(self) -> None:
        """Begin anew: the leader has no such session, or nobody knows whether it took the last request."""
        self._epoch = _BEGINS
        self._known = frozenset()
