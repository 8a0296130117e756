"""The share session of a consumer: a model of the leader sees exactly the partitions that were asked for last."""

from hypothesis import given
from hypothesis import strategies as st

from pykbroker.client.share_membership import TopicIdPartition
from pykbroker.client.share_session import ShareSession
from pykbroker.protocol.messages.share_groups import AcknowledgementBatch, ShareFetchRequest

TOPICS = [bytes([number]) * 16 for number in (1, 2)]
PARTITIONS = st.builds(TopicIdPartition, st.sampled_from(TOPICS), st.integers(0, 3))
ROUNDS = st.lists(st.tuples(st.sets(PARTITIONS), st.sets(PARTITIONS), st.booleans()), max_size=12)
BATCH = AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])


class Leader:
    """A leader's side of one session: what it fetches from, and which epoch is due."""

    def __init__(self) -> None:
        self.partitions: set[TopicIdPartition] = set()
        self.due = 0
        self.acknowledged: set[TopicIdPartition] = set()

    def take(self, request: ShareFetchRequest) -> None:
        assert request.share_session_epoch in (0, self.due)
        named = {
            TopicIdPartition(topic.topic_id, row.partition_index)
            for topic in request.topics
            for row in topic.partitions
        }
        self.acknowledged = {
            TopicIdPartition(topic.topic_id, row.partition_index)
            for topic in request.topics
            for row in topic.partitions
            if row.acknowledgement_batches
        }
        forgotten = {
            TopicIdPartition(topic.topic_id, partition)
            for topic in request.forgotten_topics_data
            for partition in topic.partitions
        }
        if request.share_session_epoch == 0:
            assert not self.acknowledged, "a session that begins takes none"
            self.partitions = set()
        self.partitions = (self.partitions | named) - forgotten
        self.due = request.share_session_epoch + 1


def ask(session: ShareSession, wanted: set[TopicIdPartition], acknowledged: set[TopicIdPartition]) -> ShareFetchRequest:
    return session.fetch(
        wanted,
        {of: [BATCH] for of in acknowledged},
        max_wait_ms=0,
        max_bytes=1,
        max_records=1,
        batch_size=1,
        acquire_mode=0,
    )


@given(ROUNDS)
def test_the_leader_has_the_partitions_that_were_asked_for(
    rounds: list[tuple[set[TopicIdPartition], set[TopicIdPartition], bool]],
) -> None:
    session, leader = ShareSession("group", "member"), Leader()
    for wanted, acknowledged, is_lost in rounds:
        told = acknowledged if session.is_open else set()
        leader.take(ask(session, wanted, told))
        assert (leader.partitions, leader.acknowledged) == (wanted, told)
        if is_lost:
            session.lose()
        else:
            session.answered()


def test_the_last_request_ends_the_session_with_what_is_acknowledged() -> None:
    session = ShareSession("group", "member")
    of = TopicIdPartition(TOPICS[0], 2)
    ask(session, {of}, set())
    session.answered()
    request = session.closing({of: [BATCH]})
    assert (request.share_session_epoch, request.member_id, request.group_id) == (-1, "member", "group")
    [topic] = request.topics
    assert (topic.topic_id, [row.partition_index for row in topic.partitions]) == (TOPICS[0], [2])
