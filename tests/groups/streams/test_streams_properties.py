"""Streams groups under any order of joins, heartbeats, leaves, silences and topics, next to a plain model.

The model is what members and an onlooker may rely on, whatever the coordinator does inside: an active task is never two
members' at once, no process has a task in two roles, epochs only grow, whoever does what it is told ends with its
share, and a restart changes nothing. Each step is made as a trial first, and has to leave no trace (`tests.trials`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pykbroker.groups.common.config import GroupConfig, StreamsGroupConfig
from pykbroker.groups.common.records import decode_record
from pykbroker.groups.shard import GroupRequest, GroupShard
from pykbroker.groups.streams.streams_group import StreamsGroup
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.streams_groups import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    TaskOffset,
)
from pykbroker.state_machine import CoordinatorContext, Result, Token
from tests.examples import examples
from tests.groups.late_assignments import LateAssignments, written
from tests.groups.streams_requests import LEAVING, streams_beat, streams_joining, subtopology, topic_info, topology
from tests.groups.topics import ChangingTopics
from tests.trials import Trials, state_of

GROUP = "g"
STATIC_LEAVING = -2
INTERNAL = ("r", "log")
TOPOLOGY = topology(
    subtopology("0", "a", "b", sinks=["r"]),
    subtopology("1", repartition=[topic_info("r")], changelogs=[topic_info("log")]),
)
CONFIG = GroupConfig()
SETTINGS = StreamsGroupConfig(
    session_timeout_ms=1_000,
    heartbeat_interval_ms=100,
    assignment_interval_ms=50,
    initial_rebalance_delay_ms=60,
    num_standby_replicas=1,
)
REBALANCE_MS = 600
ROUNDS_TO_SETTLE = 40
Tasks = dict[str, list[int]]


@dataclass(eq=False)
class Client:
    """A member as its application sees it."""

    member_id: str
    process: str
    epoch: int = 0
    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    is_member: bool = False
    instance_id: str | None = None

    def drop(self) -> None:
        self.epoch, self.active, self.standby, self.is_member = 0, {}, {}, False


def new_shard(
    seed: int, topics: ChangingTopics, assignments: LateAssignments | None, settings: StreamsGroupConfig = SETTINGS
) -> GroupShard:
    return GroupShard(
        CONFIG, Random(seed), topics, assignments=assignments, streams_config_of=lambda group_id: settings
    )


def tasks(told: list[TaskIds] | None) -> Tasks:
    return {each.subtopology_id: list(each.partitions) for each in told or ()}


class StreamsMachine(RuleBasedStateMachine):
    settings_of_groups = SETTINGS

    @initialize(seed=st.integers(0, 1000))
    def start(self, seed: int) -> None:
        self.topics = ChangingTopics(a=3, b=2)
        self.late = LateAssignments(Random(seed)) if seed % 2 else None
        self.shard = new_shard(seed, self.topics, self.late, self.settings_of_groups)
        self.trials = Trials.of_random(Random(seed))
        self.log: list[tuple[bytes, bytes | None]] = []
        self.now_ms = 1_000
        self.token = 0
        self.clients: list[Client] = []
        self.highest_epochs = (0, 0)

    # The shard

    def ask(self, request: GroupRequest) -> Any:
        self.token += 1
        context = CoordinatorContext(api_version=0, client_id="c", client_host="/h")
        result = self.make(lambda: self.shard.handle(request, Token(self.token), self.now_ms, context, self.now_ms))
        (completion,) = result.completed
        answer: Any = completion.response
        self.create(topic.name for topic in answer.missing)
        return answer.response

    def make(self, step: Any) -> Result[Any]:
        result = self.trials.make(self.shard, step)
        self.log.extend(written(result))
        assert result.cause or not result.records
        return result

    def create(self, names: Any) -> None:
        for name in names:
            if self.topics.topic_id(name) is None:
                self.topics.create(name, 3)
                self.shard.on_topics_changed([name])

    def wait(self, ms: int) -> None:
        self.now_ms += ms
        for computed in self.late.done() if self.late is not None else ():
            self.make(partial(self.shard.put_assignment, computed, self.now_ms, self.now_ms))
        self.make(lambda: self.shard.expire(self.now_ms, self.now_ms))

    @property
    def group(self) -> StreamsGroup | None:
        group = self.shard.groups.get(GROUP)
        return group if isinstance(group, StreamsGroup) else None

    # Members

    def beat(self, client: Client, *, reports: bool = True) -> StreamsGroupHeartbeatResponse:
        if not client.is_member:
            request = streams_joining(GROUP, client.member_id, TOPOLOGY, process=client.process, rebalance=REBALANCE_MS)
        else:
            active, standby = (client.active, client.standby) if reports else (None, None)
            request = streams_beat(GROUP, client.member_id, client.epoch, active=active, standby=standby)
        request.instance_id = client.instance_id
        self.tell_offsets(request)
        answer: StreamsGroupHeartbeatResponse = self.ask(request)
        if answer.error_code:
            assert answer.error_code in (
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.FENCED_MEMBER_EPOCH,
                ErrorCode.GROUP_ID_NOT_FOUND,
                ErrorCode.INVALID_REQUEST,
            ), answer
            client.drop()
            return answer
        assert answer.member_epoch >= client.epoch
        client.epoch, client.is_member = answer.member_epoch, True
        if answer.active_tasks is not None:
            client.active, client.standby = tasks(answer.active_tasks), tasks(answer.standby_tasks)
        return answer

    def tell_offsets(self, request: StreamsGroupHeartbeatRequest) -> None:
        """Members of Kafka 4.3 tell none."""

    @rule(process=st.sampled_from("pqr"))
    def join(self, process: str) -> None:
        if len(self.clients) < 6:
            self.token += 1
            client = Client(f"m{self.token}", process)
            self.clients.append(client)
            self.beat(client)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), reports=st.booleans())
    def heartbeat(self, data: st.DataObject, reports: bool) -> None:
        self.beat(data.draw(st.sampled_from(self.clients)), reports=reports)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from(self.clients))
        self.clients.remove(client)
        if client.is_member:
            request = streams_beat(GROUP, client.member_id, LEAVING)
            request.instance_id = client.instance_id
            self.ask(request)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        self.clients.remove(data.draw(st.sampled_from(self.clients)))

    @rule(ms=st.sampled_from([10, 60, 300, 700, 1_500]))
    def time_passes(self, ms: int) -> None:
        self.wait(ms)

    # Topics

    @rule(name=st.sampled_from(["a", "b"]), more=st.integers(1, 2))
    def grow(self, name: str, more: int) -> None:
        topic_id = self.topics.topic_id(name)
        if topic_id is not None and self.topics.partition_count(topic_id) + more <= 3:
            self.topics.grow(name, self.topics.partition_count(topic_id) + more)
            self.shard.on_topics_changed([name])

    @rule(name=st.sampled_from(["a", "b", *INTERNAL]))
    def delete(self, name: str) -> None:
        if self.topics.topic_id(name) is not None:
            self.topics.delete(name)
            self.shard.on_topics_changed([name])

    @rule()
    def create_sources(self) -> None:
        self.create(["a", "b"])

    # A restart

    @rule()
    def another_coordinator_takes_over(self) -> None:
        before = self.shard
        self.shard = self.read_back()
        for _ in self.shard.prepare_timers(self.now_ms):
            pass
        self.make(lambda: self.shard.start_timers(self.now_ms, self.now_ms))
        assert durable(self.shard) == durable(before)

    def read_back(self) -> GroupShard:
        shard = new_shard(self.token, self.topics, self.late, self.settings_of_groups)
        for key, value in self.log:
            record = decode_record(key, value)
            shard.replay(record.key, record.value)
        return shard

    # What holds

    @invariant()
    def no_task_is_two_members(self) -> None:
        group = self.group
        if group is None:
            return
        active: Counter[tuple[str, int]] = Counter()
        roles: Counter[tuple[str, str, int]] = Counter()
        for member in group.members.values():
            for owned in (member.assigned, member.pending_revocation):
                active.update((name, each) for name, some in owned.active.items() for each in some)
                for kind in (owned.active, owned.standby):
                    roles.update((member.process_id, name, each) for name, some in kind.items() for each in some)
        assert not active or max(active.values()) == 1, active
        assert not roles or max(roles.values()) == 1, roles

    @invariant()
    def epochs_grow(self) -> None:
        group = self.group
        if group is not None:
            epochs = group.group_epoch, group.assignment_epoch
            assert epochs >= self.highest_epochs
            assert group.assignment_epoch <= group.group_epoch
            self.highest_epochs = epochs

    @invariant()
    def what_is_derived_from_members_is_theirs(self) -> None:
        group = self.group
        if group is None:
            return
        fresh = StreamsGroup(GROUP, self.topics)
        for member in group.members.values():
            fresh.put(member)
        assert (fresh._active, fresh._others) == (group._active, group._others)

    def teardown(self) -> None:
        """Members that do what they are told end with their shares."""
        if not hasattr(self, "shard"):
            return
        self.create(["a", "b"])
        for name in INTERNAL:
            topic_id = self.topics.topic_id(name)
            if topic_id is not None and self.topics.partition_count(topic_id) != 3:
                self.topics.grow(name, 3)
        self.topics.grow("a", 3)
        self.shard.on_topics_changed(["a", "b", *INTERNAL])
        for _ in range(ROUNDS_TO_SETTLE):
            for client in self.clients:
                self.beat(client)
            self.wait(100)
        if self.clients:
            group = self.group
            assert group is not None
            assert group.state.value == "Stable", group.state
            wanted = Counter((name, each) for name in ("0", "1") for each in range(3))
            had = Counter(
                (name, each) for client in self.clients for name, some in client.active.items() for each in some
            )
            assert had == wanted


def durable(shard: GroupShard) -> Any:
    """What records keep of the groups."""
    transient = {
        "incarnation",
        "configured",
        "endpoints",
        "endpoint_information_epoch",
        "shutdown_requested_by",
        "seen_topic_change",
        "topology",
        "_topics",
        "is_of_4_4",
        "task_offsets",
        "description_backoff",
    }
    groups = state_of(shard)[0]
    return {
        name: {key: value for key, value in group.items() if key not in transient} for name, group in groups.items()
    }


class MachineOf44(StreamsMachine):
    """By the rules of Kafka 4.4: there are static members, tasks change their roles within a member, offsets count."""

    settings_of_groups = replace(SETTINGS, is_of_4_4=True)

    def tell_offsets(self, request: StreamsGroupHeartbeatRequest) -> None:
        if self.token % 2:
            request.task_offsets = [
                TaskOffset(subtopology_id=name, partition=each, offset=self.token * each)
                for name in ("0", "1")
                for each in range(self.token % 5)
            ]

    @rule(process=st.sampled_from("pqr"))
    def join_as_static_member(self, process: str) -> None:
        if len(self.clients) < 6:
            self.token += 1
            client = Client(f"m{self.token}", process, instance_id=f"i{self.token}")
            self.clients.append(client)
            self.beat(client)

    @precondition(lambda self: any(client.instance_id for client in self.clients))
    @rule(data=st.data(), same=st.booleans())
    def go_away_and_come_back(self, data: st.DataObject, same: bool) -> None:
        client = data.draw(st.sampled_from([client for client in self.clients if client.instance_id]))
        if not client.is_member:
            return
        request = streams_beat(GROUP, client.member_id, STATIC_LEAVING)
        request.instance_id = client.instance_id
        answer = self.ask(request)
        if answer.error_code:
            assert answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND), answer
        self.token += 1
        client.drop()
        client.member_id = client.member_id if same else f"m{self.token}"
        self.wait(data.draw(st.sampled_from([0, 60, 1_500])))
        self.beat(client)

    @invariant()
    def no_task_is_two_members(self) -> None:
        """A member may give up an active task and have it as standby task already."""
        active: Counter[tuple[str, int]] = Counter()
        roles: Counter[tuple[str, str, int]] = Counter()
        holders: dict[tuple[str, str, int], set[str]] = {}
        for member in () if self.group is None else self.group.members.values():
            for owned in (member.assigned, member.pending_revocation):
                active.update((name, each) for name, some in owned.active.items() for each in some)
                held = {
                    (member.process_id, name, each)
                    for kind in (owned.active, owned.standby)
                    for name, some in kind.items()
                    for each in some
                }
                for task in held:
                    holders.setdefault(task, set()).add(member.member_id)
            for kind in (member.assigned.active, member.assigned.standby):
                roles.update((member.process_id, name, each) for name, some in kind.items() for each in some)
        assert not active or max(active.values()) == 1, active
        assert not roles or max(roles.values()) == 1, roles
        assert not holders or max(map(len, holders.values())) == 1, holders

    @invariant()
    def instance_ids_name_members(self) -> None:
        group = self.group
        if group is not None:
            static = {each.instance_id: name for name, each in group.members.items() if each.instance_id}
            assert group.static_members == static
            assert group.task_offsets.keys() <= group.members.keys()


MachineOf44.TestCase.settings = examples(60, stateful_step_count=30)
TestStreamsGroupsOf44 = MachineOf44.TestCase
StreamsMachine.TestCase.settings = examples(60, stateful_step_count=30)
TestStreamsGroups = StreamsMachine.TestCase
