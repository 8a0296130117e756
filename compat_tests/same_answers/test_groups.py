"""A group from its first member to its deletion."""

from typing import Any

from compat_tests.hostile.scene import Scene
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from pykbroker.protocol.messages.groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

from .interview import Interview, plain


def state_of(interview: Interview, group: str) -> str:
    with Wire(interview.broker.address) as wire:
        answer: Any = wire.call(DescribeGroupsRequest(groups=[group]), 5)
    return str(answer.groups[0].group_state)


def test_groups(interview: Interview) -> None:
    """One member by hand, through its whole life."""
    topic, ask = interview.topic, interview.ask
    interview.create(topic, 2)
    Scene(interview.broker).group()  # the coordinator is at work
    group = topic
    for key_type in (0, 2, 99):
        old = FindCoordinatorRequest(key=group, key_type=key_type)
        ask(f"a coordinator of type {key_type}", old, 1, 2, 3)
        ask(
            f"a coordinator of type {key_type}",
            FindCoordinatorRequest(coordinator_keys=[group, "x"], key_type=key_type),
            4,
            5,
            6,
        )
    ask("a group that is not there", DescribeGroupsRequest(groups=[group]))
    ask("with operations", DescribeGroupsRequest(groups=[group], include_authorized_operations=True))
    ask("a group without a name", DescribeGroupsRequest(groups=[""]))
    ask("a group that is not there", DeleteGroupsRequest(groups_names=[group, ""]))
    ask("a group that is not there", HeartbeatRequest(group_id=group, generation_id=1, member_id="m"))
    ask(
        "a group that is not there",
        SyncGroupRequest(
            group_id=group, generation_id=1, member_id="m", protocol_type="consumer", protocol_name="range"
        ),
    )
    leaving = LeaveGroupRequest(group_id=group, member_id="m")
    ask("a group that is not there", leaving, 0, 1, 2)
    ask("a group that is not there", LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id="m")]))
    ask("without a name", HeartbeatRequest(group_id="", generation_id=1, member_id="m"))
    ask("no topics", OffsetFetchRequest(group_id=group, topics=[]))
    ask("all topics", OffsetFetchRequest(group_id=group, topics=None))

    protocols = [
        JoinGroupRequestProtocol(name="range", metadata=b"meta"),
        JoinGroupRequestProtocol(name="other", metadata=b""),
    ]

    def joining(member_id: str = "", **fields: Any) -> JoinGroupRequest:
        known = {
            "group_id": group,
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 30_000,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocols": protocols,
        }
        return JoinGroupRequest(**(known | fields))

    ask("for the first time", joining(), 4, 5, 6, 7, 8, 9)
    member_id = ask("for the first time, to stay", joining(), 9).member_id
    joined = ask("with the id that was given", joining(member_id), 9)
    generation = joined.generation_id

    def syncing(generation_id: int = generation, **fields: Any) -> SyncGroupRequest:
        assignments = [SyncGroupRequestAssignment(member_id=member_id, assignment=b"all of it")]
        known = {
            "group_id": group,
            "generation_id": generation_id,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": assignments,
        }
        return SyncGroupRequest(**(known | fields))

    ask(
        "before the leader's assignment",
        HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id),
    )
    ask("another generation", syncing(generation + 5))
    ask("another protocol", syncing(protocol_name="other"), 5)
    ask("another protocol type", syncing(protocol_type="connect"), 5)
    ask("another member", syncing(member_id="nobody"))
    ask("the leader", syncing())
    ask("the leader again, without assignments", syncing(assignments=[]))
    ask("a member", HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id))
    ask("an old generation", HeartbeatRequest(group_id=group, generation_id=generation - 1, member_id=member_id))
    ask("an unknown member", HeartbeatRequest(group_id=group, generation_id=generation, member_id="nobody"))
    static = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id, group_instance_id="i")
    ask("an unknown instance", static)
    ask("a stable group", DescribeGroupsRequest(groups=[group], include_authorized_operations=True))
    ask("a stable group", DeleteGroupsRequest(groups_names=[group]))
    ask("of another type", joining(protocol_type="connect"), 3, 9)
    ask("with no common protocol", joining(protocols=[JoinGroupRequestProtocol(name="mine", metadata=b"")]), 3, 9)
    ask("without a type", joining(protocol_type=""), 3, 9)

    def committing(generation_id: int, committer: str, partition: int = 0, **fields: Any) -> OffsetCommitRequest:
        row = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=5, committed_metadata=fields.pop("metadata", "note")
        )
        return OffsetCommitRequest(
            group_id=fields.pop("group_id", group),
            generation_id_or_member_epoch=generation_id,
            member_id=committer,
            topics=[OffsetCommitRequestTopic(name=fields.pop("name", topic), partitions=[row])],
            **fields,
        )

    ask("a member", committing(generation, member_id), 2, 3, 4, 5, 6, 7, 8, 9)
    ask("a member, no note", committing(generation, member_id, metadata=None), 2, 8, 9)
    ask("an old generation", committing(generation - 1, member_id), 2, 8, 9)
    ask("a generation to come", committing(generation + 1, member_id), 2, 8, 9)
    ask("an unknown member", committing(generation, "nobody"), 2, 8, 9)
    ask("nobody", committing(-1, ""), 2, 8, 9)
    ask("an unknown instance", committing(generation, member_id, group_instance_id="i"), 7, 8, 9)
    ask("an unknown partition", committing(generation, member_id, 44), 2, 8, 9)
    ask("an unknown topic", committing(generation, member_id, name=f"{topic}-unknown"), 2, 8, 9)
    ask("another group", committing(-1, "", group_id=f"{group}-simple"), 2, 8, 9)
    ask("another group, a generation", committing(3, "", group_id=f"{group}-never"), 2, 8, 9)
    ask("no group", committing(-1, "", group_id=""), 2, 8, 9)
    fetched = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 1, 44])]
    ask("some partitions", OffsetFetchRequest(group_id=group, topics=fetched))
    ask("all topics", OffsetFetchRequest(group_id=group, topics=None))
    ask("stable offsets", OffsetFetchRequest(group_id=group, topics=fetched, require_stable=True))
    many = [
        OffsetFetchRequestGroup(
            group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[0, 1])]
        ),
        OffsetFetchRequestGroup(group_id=f"{group}-simple", topics=None),
        OffsetFetchRequestGroup(group_id="nobody's", topics=None),
    ]
    ask("several groups", OffsetFetchRequest(groups=many), 8, 9)
    ask("a simple group", DescribeGroupsRequest(groups=[f"{group}-simple"]))

    def forgetting(partition: int, name: str = topic, of: str = group) -> OffsetDeleteRequest:
        rows = [OffsetDeleteRequestPartition(partition_index=partition)]
        return OffsetDeleteRequest(group_id=of, topics=[OffsetDeleteRequestTopic(name=name, partitions=rows)])

    ask("of a stable group", forgetting(0))
    ask("of an unknown partition", forgetting(44))
    ask("of an unknown topic", forgetting(0, f"{topic}-unknown"))
    ask("of an unknown group", forgetting(0, of="nobody's"))
    ask("of a simple group", forgetting(0, of=f"{group}-simple"))
    leaving_now = [
        MemberIdentity(member_id=member_id),
        MemberIdentity(member_id="nobody"),
        MemberIdentity(member_id="", group_instance_id="i"),
    ]
    ask("one of three", LeaveGroupRequest(group_id=group, members=leaving_now), 5)
    until(lambda: state_of(interview, group) == "Empty", "the group is empty")
    ask("an empty group", DescribeGroupsRequest(groups=[group]))
    ask("an empty group", committing(-1, ""), 2, 8, 9)
    ask("an empty group, a generation", committing(generation, ""), 2, 8, 9)
    ask("of an empty group", forgetting(0))
    ask("an empty group", DeleteGroupsRequest(groups_names=[group]), 2)
    ask("after that", DescribeGroupsRequest(groups=[group]))
    ask("after that", OffsetFetchRequest(group_id=group, topics=None))
    with Wire(interview.broker.address) as wire:
        listed: Any = wire.call(ListGroupsRequest(states_filter=["empty"]), 5)
        nothing: Any = wire.call(ListGroupsRequest(states_filter=["Bogus"]), 5)
        typed: Any = wire.call(ListGroupsRequest(types_filter=["classic"]), 5)
    for name, answer in (("empty", listed), ("bogus", nothing), ("classic", typed)):
        mine = [plain(each) for each in answer.groups if each.group_id.startswith(group)]
        interview.answers[f"listed: {name}"] = (answer.error_code, sorted(mine, key=repr))
