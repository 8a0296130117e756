"""Consumer groups in a shard: what no transcript of a real broker can show in reasonable time or size."""

from __future__ import annotations

import base64
from random import Random
from typing import Any, cast
from uuid import RFC_4122, UUID

import pytest

from pykbroker.groups.common import topic_changes
from pykbroker.groups.common.config import ConsumerGroupConfig, GroupConfig
from pykbroker.groups.common.requests import DescribeConsumerGroup
from pykbroker.groups.common.topics import FixedTopics
from pykbroker.groups.consumer.consumer_group import ConsumerGroup
from pykbroker.groups.consumer.consumer_group_member import ConsumerGroupMember
from pykbroker.groups.consumer.descriptions import ConsumerGroupAsOfNow
from pykbroker.groups.consumer.membership import new_member_id
from pykbroker.groups.shard import GroupRequest, GroupShard
from pykbroker.long_work import whole
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_group_records import ConsumerGroupMetadataKey
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykbroker.protocol.messages.group_records import OffsetCommitKey
from pykbroker.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from pykbroker.state_machine import CoordinatorContext, Token

T = b"t" * 16
GROUP = "g"
RETENTION_MS = 60_000


class Talk:
    """A shard with the topic events, and a clock that the test moves."""

    def __init__(self, settings: ConsumerGroupConfig | None = None, **config: Any) -> None:
        own = settings or ConsumerGroupConfig(assignment_interval_ms=0)
        config = {"offsets_retention_ms": RETENTION_MS, "offsets_retention_check_interval_ms": 100, **config}
        topics = FixedTopics({"events": (T, 3)})
        self.shard = GroupShard(GroupConfig(**config), Random(1), topics, lambda group_id: own)
        self.now_ms = 1_000
        self.shard.start_timers(self.now_ms, self.now_ms)
        self.records: list[Any] = []

    def ask(self, request: GroupRequest, version: int = 1) -> Any:
        context = CoordinatorContext(api_version=version, client_id="client", client_host="/host")
        result = self.shard.handle(request, Token(1), self.now_ms, context, self.now_ms)
        self.records = list(result.records)
        (completion,) = result.completed
        return completion.response

    def join(self, member_id: str, *names: str, **fields: Any) -> Any:
        joining: dict[str, Any] = {"rebalance_timeout_ms": 30_000, "topic_partitions": []}
        return self.beat(member_id, 0, subscribed_topic_names=list(names or ("events",)), **{**joining, **fields})

    def beat(self, member_id: str, epoch: int, **fields: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=epoch, **fields)
        return self.ask(request)

    def commit(self, topic: str, member_id: str, epoch: int) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        request = OffsetCommitRequest(
            group_id=GROUP,
            member_id=member_id,
            generation_id_or_member_epoch=epoch,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        (answered,) = self.ask(request, 9).topics
        assert not answered.partitions[0].error_code

    def advance(self, ms: int) -> list[Any]:
        """The keys of what was written by timeouts."""
        self.now_ms += ms
        return [record.key for record in self.shard.expire(self.now_ms, self.now_ms).records]

    @property
    def group(self) -> ConsumerGroup:
        group = self.shard.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group


def test_the_first_member_of_a_group_is_in_epoch_2() -> None:
    """KAFKA-20268: epoch 1 is that of the empty group, which has an empty assignment."""
    talk = Talk()
    assert talk.join("a").member_epoch == 2
    assert (talk.group.group_epoch, talk.group.assignment_epoch) == (2, 2)


def test_offsets_of_subscribed_topics_stay_and_others_go_by_their_age() -> None:
    talk = Talk(ConsumerGroupConfig(session_timeout_ms=RETENTION_MS * 10))
    epoch = talk.join("a").member_epoch
    talk.commit("events", "a", epoch)
    talk.commit("orders", "a", epoch)
    assert talk.advance(RETENTION_MS - 1) == []
    assert talk.advance(101) == [OffsetCommitKey(group=GROUP, topic="orders", partition=0)]
    assert talk.advance(RETENTION_MS) == []


def test_transactions_commit_what_their_member_has_had_since() -> None:
    """Whichever epoch it says, if it had the partition then already; errors before v6 are of generations."""
    talk = Talk()
    first = talk.join("a").member_epoch
    talk.join("b")
    talk.beat("a", first, topic_partitions=[])
    talk.beat("b", first + 1)
    assert talk.group.members["a"].member_epoch == first + 1
    (kept,) = talk.group.members["a"].assigned.values()
    (gained,) = talk.group.members["b"].assigned.values()
    kept_index, gained_index = min(kept), min(gained)

    def code(member_id: str, epoch: int, index: int, topic: str = "events", version: int = 5) -> int:
        partition = TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=1)
        request = TxnOffsetCommitRequest(
            group_id=GROUP,
            transactional_id="t",
            producer_id=1,
            member_id=member_id,
            generation_id_or_member_epoch=epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        (answered,) = talk.ask(request, version).topics
        return int(answered.partitions[0].error_code)

    assert code("a", first + 1, gained_index) == ErrorCode.NONE, "in its own epoch it is not asked what for"
    assert code("a", first, kept_index) == ErrorCode.NONE
    assert code("a", first, gained_index) == ErrorCode.ILLEGAL_GENERATION
    assert code("a", first, 0, topic="not-there") == ErrorCode.ILLEGAL_GENERATION
    assert code("a", first + 2, kept_index) == ErrorCode.ILLEGAL_GENERATION
    assert code("b", first, gained_index) == ErrorCode.ILLEGAL_GENERATION
    for epoch, index in ((first, gained_index), (first + 2, kept_index)):
        assert code("a", epoch, index, version=6) == ErrorCode.STALE_MEMBER_EPOCH, "v6 has epochs of members (KIP-1319)"
    assert code("a", first, kept_index, version=6) == ErrorCode.NONE
    assert code("c", first, 0) == code("c", first, 0, version=6) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code("", -1, 0) == ErrorCode.NONE, "a producer of the time before KIP-447"


def test_an_empty_group_goes_with_the_last_of_its_offsets() -> None:
    talk = Talk()
    talk.commit("events", "a", talk.join("a").member_epoch)
    talk.beat("a", -1)
    talk.advance(RETENTION_MS // 2)
    assert GROUP in talk.shard.groups
    written = talk.advance(RETENTION_MS)
    assert written[0] == OffsetCommitKey(group=GROUP, topic="events", partition=0)
    assert written[-1] == ConsumerGroupMetadataKey(group_id=GROUP)
    assert talk.shard.groups == {}


def test_a_group_s_own_settings_count() -> None:
    talk = Talk(ConsumerGroupConfig(session_timeout_ms=700, heartbeat_interval_ms=70, assignment_interval_ms=900))
    assert talk.join("a").heartbeat_interval_ms == 70
    talk.advance(600)
    assert talk.beat("a", 2).error_code == ErrorCode.NONE
    talk.join("b")
    assert talk.group.assignment_epoch == 2, "not before the interval is over"
    talk.advance(301)
    assert talk.beat("b", 2).member_epoch == 3
    talk.advance(400)
    assert set(talk.group.members) == {"b"}


def test_a_clock_that_was_set_back_keeps_nobody_waiting() -> None:
    talk = Talk(ConsumerGroupConfig(assignment_interval_ms=500))
    talk.now_ms = 100_000
    talk.join("a")
    talk.now_ms = 50_000
    talk.join("b")
    assert talk.group.assignment_epoch == talk.group.group_epoch == 3


def test_members_have_a_whole_session_after_a_load() -> None:
    talk = Talk(ConsumerGroupConfig(session_timeout_ms=1_000, assignment_interval_ms=0))
    talk.join("a", rebalance_timeout_ms=300)
    talk.join("b")
    talk.beat("a", 2)
    talk.shard.start_timers(10_000, 10_000)
    talk.now_ms = 10_000
    talk.advance(299)
    assert set(talk.group.members) == {"a", "b"}
    talk.advance(1)
    assert set(talk.group.members) == {"b"}, "a was to give up a partition"
    talk.advance(700)
    assert talk.shard.groups == {}, "it went with its last member, having no offsets"


def test_a_subscription_that_could_not_be_written_is_refused() -> None:
    talk = Talk(max_record_bytes=1_000)
    names = [f"topic-{number}" for number in range(200)]
    answer = talk.join("a", *names)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "1000 at most" in answer.error_message
    assert not talk.records
    assert talk.shard.groups == {}
    epoch = talk.join("a").member_epoch
    assert talk.beat("a", epoch, subscribed_topic_names=names).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert talk.group.members["a"].subscribed_topic_names == ("events",)


def test_a_heartbeat_that_says_the_same_writes_nothing() -> None:
    talk = Talk()
    epoch = talk.join("a").member_epoch
    assert talk.records
    assert talk.beat("a", epoch, subscribed_topic_names=["events"]).error_code == ErrorCode.NONE
    assert talk.records == []


def test_only_groups_of_a_changed_topic_look_at_their_topics_again() -> None:
    talk = Talk()
    talk.join("a")
    changes = talk.shard.consumer._topic_changes
    assert not changes.concern(talk.group)
    talk.shard.on_topics_changed({"orders"})
    assert not changes.concern(talk.group)
    talk.shard.on_topics_changed({"orders", "events"})
    assert changes.concern(talk.group)
    talk.beat("a", talk.group.members["a"].member_epoch)
    assert not changes.concern(talk.group)
    talk.shard.on_topics_changed([f"topic-{number}" for number in range(1_000)])
    assert changes.concern(talk.group), "of so many nobody asks which"


def test_names_of_topics_that_changed_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_changes, "MOST_NOTED", 10)
    talk = Talk()
    talk.join("a")
    changes = talk.shard.consumer._topic_changes
    talk.shard.on_topics_changed({"events"})
    for number in range(20):
        talk.shard.on_topics_changed({f"deleted-{number}"})
    assert len(changes._newest_by_name) <= 10
    assert changes.concern(talk.group)


def test_a_change_of_a_topic_looks_at_no_group() -> None:
    talk = Talk()
    talk.join("a")
    talk.shard.groups = talk.shard.consumer._records._groups = cast(Any, None)
    talk.shard.on_topics_changed({"events"})


def test_members_are_described_in_the_order_of_kafkas_tables() -> None:
    talk = Talk()
    for number in (1, 2):
        talk.join(f"member-{number}")
    found: ConsumerGroupAsOfNow = talk.ask(DescribeConsumerGroup(group_id=GROUP))
    assert list(whole(found.member_ids())) == ["member-2", "member-1"]


class CountedMembers(dict[str, ConsumerGroupMember]):
    looked_at = 0

    def values(self) -> Any:
        for member in super().values():
            self.looked_at += 1
            yield member


def test_sessions_that_are_over_cost_no_look_at_all_who_stay() -> None:
    """Whether they could go on as a classic group is known by the first one that could not."""
    talk = Talk()
    for number in range(200):
        talk.join(f"member-{number}")
    talk.now_ms += 30_000
    for number in range(0, 200, 10):
        talk.beat(f"member-{number}", talk.group.members[f"member-{number}"].member_epoch)
    members = talk.group.members = CountedMembers(talk.group.members)
    talk.now_ms += 20_000
    while talk.shard.expire(talk.now_ms, talk.now_ms).records:
        pass
    assert len(members) == 20
    assert members.looked_at <= 2 * 180


@pytest.mark.parametrize("seed", range(50))
def test_a_member_id_that_the_coordinator_makes_is_a_random_uuid_as_kafka_writes_it(seed: int) -> None:
    member_id = new_member_id(Random(seed))
    uuid = UUID(bytes=base64.urlsafe_b64decode(member_id + "=="))
    assert (uuid.version, uuid.variant, member_id[0] != "-") == (4, RFC_4122, True)


# Kafka 4.4


def of_4_4(**config: Any) -> Talk:
    return Talk(ConsumerGroupConfig(assignment_interval_ms=0, is_of_4_4=True), **config)


def test_another_assignor_begins_an_epoch_since_kafka_4_4() -> None:
    told = {}
    for release, talk in (("4.3", Talk()), ("4.4", of_4_4())):
        epoch = talk.join("a", server_assignor="uniform").member_epoch
        told[release] = [
            talk.beat("a", epoch, server_assignor="uniform").member_epoch - epoch,
            talk.beat("a", epoch, server_assignor="range").member_epoch - epoch,
        ]
    assert told == {"4.3": [0, 0], "4.4": [0, 1]}


def test_a_member_that_asks_for_what_most_ask_for_begins_no_epoch_by_it() -> None:
    talk = of_4_4()
    epoch = talk.join("a", server_assignor="range").member_epoch
    talk.join("b", server_assignor="range")
    joined = talk.shard.groups[GROUP].group_epoch
    assert joined == epoch + 1
    talk.beat("b", joined, server_assignor="uniform")
    assert talk.shard.groups[GROUP].group_epoch == joined, "as many ask for one as for the other: the first one stays"


@pytest.mark.parametrize(
    ("release", "error_code"), [("4.3", ErrorCode.GROUP_MAX_SIZE_REACHED), ("4.4", ErrorCode.NONE)]
)
def test_a_full_group_has_a_place_for_a_static_member_that_comes_back_since_kafka_4_4(
    release: str, error_code: ErrorCode
) -> None:
    talk = of_4_4(consumer_max_size=2) if release == "4.4" else Talk(consumer_max_size=2)
    talk.join("a", instance_id="instance")
    talk.join("b")
    assert talk.join("c").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert not talk.beat("a", -2, instance_id="instance").error_code
    assert talk.join("c").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert talk.join("d", instance_id="another").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert talk.join("e", instance_id="instance").error_code == error_code
