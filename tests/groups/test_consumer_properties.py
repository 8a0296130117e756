"""Consumer groups under any order of joins, heartbeats, leaves, silences, topics and migrations, next to a plain model.

The model is what members and an onlooker may rely on, whatever the coordinator does inside: a partition is never two
members' at once, epochs only grow, whoever does what it is told ends with its share, and a restart changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pykbroker.groups.classic.classic_group import ClassicGroup
from pykbroker.groups.common.config import ConsumerGroupConfig, GroupConfig
from pykbroker.groups.common.deadlines import RevocationTimeout, SessionTimeout
from pykbroker.groups.common.records import decode_record
from pykbroker.groups.consumer.assignment_tasks import ComputedAssignment
from pykbroker.groups.consumer.consumer_group import ConsumerGroup
from pykbroker.groups.consumer.consumer_group_member import UNREVOKED_PARTITIONS
from pykbroker.groups.shard import GroupRequest, GroupShard
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatResponse
from pykbroker.state_machine import Completion, CoordinatorContext, Result, Token
from tests.examples import examples
from tests.trials import Trials

from .compacted_log import overtaken
from .consumer_requests import JOINING, LEAVING, LEAVING_FOR_A_WHILE, VERSION, assigned, consumer_beat
from .late_assignments import LateAssignments, written
from .topics import ChangingTopics

GROUP = "g"
CONFIG = GroupConfig(initial_rebalance_delay_ms=0, min_session_timeout_ms=10)
CLASSIC_TOPICS = ("a", "b")
"""What every member of the classic protocol subscribes to."""
ROUNDS_TO_SETTLE = 40
CONSUMER_CONFIG = ConsumerGroupConfig(session_timeout_ms=1_000, heartbeat_interval_ms=100, assignment_interval_ms=50)
CLASSIC_JOIN_VERSION = 5
Partitions = dict[bytes, set[int]]


@dataclass(eq=False)
class Client:
    """A member as its user sees it. owned: what it works on; it lets go of something before it says that it has."""

    member_id: str
    instance: str | None
    topics: tuple[str, ...]
    regex: str | None
    epoch: int = JOINING
    owned: Partitions = field(default_factory=dict)
    target: Partitions = field(default_factory=dict)
    is_member: bool = False
    is_gone: bool = False
    """Died or fenced by another self: it sends nothing any more."""
    is_classic: bool = False

    @property
    def works_on(self) -> set[tuple[bytes, int]]:
        if self.is_gone:
            return set()
        return {(topic_id, index) for topic_id, indexes in self.owned.items() for index in indexes}

    def drop(self) -> None:
        self.epoch, self.owned, self.target, self.is_member = JOINING, {}, {}, False


def new_shard(rng: Random, topics: ChangingTopics, assignments: LateAssignments | None) -> GroupShard:
    return GroupShard(CONFIG, rng, topics, lambda group_id: CONSUMER_CONFIG, assignments=assignments)


def _on_the_wire(response: Any, version: int) -> Any:
    """The answer to a heartbeat as it arrives: a part of it may be encoded already."""
    if not isinstance(response, ConsumerGroupHeartbeatResponse):
        return response
    return decode(ConsumerGroupHeartbeatResponse, version, encode(response, version))[0]


class Harness:
    """A shard, and its log. With an odd seed assignments are computed beside the event loop, and late; and so are most
    steps of members, when something else may have happened before they are made.
    """

    def __init__(self, seed: int) -> None:
        self.topics = ChangingTopics(a=3, b=2)
        rng = Random(seed)
        self.late_assignments = LateAssignments(Random(seed)) if seed % 2 else None
        self._chance = Random(seed)
        self.shard = new_shard(rng, self.topics, self.late_assignments)
        self._trials = Trials.of_random(rng)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.now_ms = 1_000
        self.next_token = Token(1)
        self.late: list[Completion] = []
        """Answers to requests that were parked, for whoever owes them to somebody."""

    def ask(self, request: GroupRequest, version: int, client: str = "c") -> Any:
        """None where the answer is owed still."""
        token = self.next_token
        self.next_token = Token(token + 1)
        early = self._chance.random() < 0.2
        prepared = self._prepared(request, version)
        if early:
            self._put_late()

        def handle() -> Result[Any]:
            newest = prepared if early else self._prepared(request, version)
            context = CoordinatorContext(api_version=version, client_id=client, prepared=newest)
            return self.shard.handle(request, token, self.now_ms, context, self.now_ms)

        self.take(self._trials.make(self.shard, handle))
        answers = [each for each in self.late if each.token == token]
        self.late = [each for each in self.late if each.token != token]
        return _on_the_wire(answers[0].response, version) if answers else None

    def _prepared(self, request: GroupRequest, version: int) -> object:
        preparation = self.shard.preparation(request, version)
        return None if preparation is None else preparation.run()

    def take(self, result: Result[Any]) -> None:
        self.log.extend(written(result))
        assert result.cause or not result.records
        self.late += result.completed

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        self._put_late()
        self.take(self._trials.make(self.shard, lambda: self.shard.expire(self.now_ms, self.now_ms)))

    def _put_late(self) -> None:
        for computed in self.late_assignments.done() if self.late_assignments is not None else ():
            self.take(self._trials.make(self.shard, partial(self._put, computed)))

    def _put(self, computed: ComputedAssignment) -> Result[Any]:
        return self.shard.put_assignment(computed, self.now_ms, self.now_ms)

    def read_back(self, overtaken_at: int | None = None) -> GroupShard:
        """Another coordinator, which does not give out the same member ids again.

        overtaken_at: the offset up to which it has read when the log is compacted.
        """
        shard = new_shard(Random(self.next_token), self.topics, self.late_assignments)
        for key, value in self.log if overtaken_at is None else overtaken(self.log, overtaken_at):
            record = decode_record(key, value)
            shard.replay(record.key, record.value)
        return shard

    @property
    def group(self) -> ConsumerGroup | None:
        group = self.shard.groups.get(GROUP)
        return group if isinstance(group, ConsumerGroup) else None


class ConsumerMachine(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 1000))
    def start(self, seed: int) -> None:
        self.harness = Harness(seed)
        self.clients: list[Client] = []
        self.highest_epoch = 0

    def _any(self, data: st.DataObject) -> Client:
        return data.draw(st.sampled_from([client for client in self.clients if not client.is_gone]))

    def _has_clients(self) -> bool:
        return any(not client.is_gone for client in self.clients)

    # What members do

    @rule(
        instance=st.sampled_from([None, None, None, "i1", "i2"]),
        topics=st.sampled_from([("a",), ("b",), ("a", "b"), ("a", "c")]),
        regex=st.sampled_from([None, None, "a|c", "b.*"]),
    )
    def appear(self, instance: str | None, topics: tuple[str, ...], regex: str | None) -> None:
        if len(self.clients) < 8:
            self.clients.append(Client(f"m{len(self.clients)}", instance, topics, regex))

    @precondition(_has_clients)
    @rule(data=st.data())
    def beat(self, data: st.DataObject) -> None:
        """It has done by now what it was told: let go of what is not its any more, begun with what is new."""
        self._do_as_told(self._any(data))

    def _do_as_told(self, client: Client) -> None:
        client.owned = {topic_id: set(indexes) for topic_id, indexes in client.target.items()}
        self._beat(client)

    def _beat(self, client: Client) -> None:
        is_joining = client.epoch == JOINING
        if is_joining:
            client.drop()
        request = consumer_beat(
            GROUP,
            client.member_id,
            client.epoch,
            topics=client.topics if is_joining else None,
            regex=client.regex if is_joining else None,
            owned={topic_id: sorted(indexes) for topic_id, indexes in client.owned.items()},
            instance=client.instance,
            rebalance=500 if is_joining else None,
        )
        self._learn(client, self.harness.ask(request, VERSION, client.member_id))

    def _learn(self, client: Client, answer: ConsumerGroupHeartbeatResponse) -> None:
        match ErrorCode(answer.error_code):
            case ErrorCode.NONE:
                self._follow(client, answer)
            case ErrorCode.FENCED_MEMBER_EPOCH | ErrorCode.UNKNOWN_MEMBER_ID:
                client.drop()
            case ErrorCode.FENCED_INSTANCE_ID:
                client.is_gone = True
            case ErrorCode.UNRELEASED_INSTANCE_ID:
                assert client.epoch == JOINING
            case ErrorCode.GROUP_ID_NOT_FOUND:
                assert self.harness.group is None
                client.drop()
            case unexpected:
                raise AssertionError(unexpected)

    def _follow(self, client: Client, answer: ConsumerGroupHeartbeatResponse) -> None:
        assert answer.member_epoch >= client.epoch
        client.epoch, client.is_member = answer.member_epoch, True
        told = assigned(answer)
        if told is not None:
            client.target = {topic_id: set(indexes) for topic_id, indexes in told.items()}
            # What it still has and should not it works on until its next heartbeat; what is new it may begin with now.
            for topic_id, indexes in client.target.items():
                client.owned.setdefault(topic_id, set()).update(indexes)

    @precondition(_has_clients)
    @rule(data=st.data())
    def be_slow(self, data: st.DataObject) -> None:
        """A heartbeat before it has let go of anything."""
        self._beat(self._any(data))

    @precondition(_has_clients)
    @rule(rounds=st.integers(1, 12))
    def go_on(self, rounds: int) -> None:
        """Everybody does what it is told for a while."""
        for _ in range(rounds):
            self.harness.advance(100)
            self._let_go_of_lost_sessions()
            for client in self.clients:
                if not client.is_gone:
                    self._do_as_told(client)

    @precondition(_has_clients)
    @rule(data=st.data(), for_a_while=st.booleans())
    def leave(self, data: st.DataObject, for_a_while: bool) -> None:
        client = self._any(data)
        if client.is_classic:
            return
        epoch = LEAVING_FOR_A_WHILE if for_a_while and client.instance else LEAVING
        request = consumer_beat(GROUP, client.member_id, epoch, instance=client.instance)
        client.drop()
        self.harness.ask(request, VERSION)
        client.is_gone = True

    @precondition(_has_clients)
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        self._any(data).is_gone = True

    @precondition(_has_clients)
    @rule(data=st.data(), topics=st.sampled_from([("a",), ("b",), ("a", "b"), ()]))
    def subscribe(self, data: st.DataObject, topics: tuple[str, ...]) -> None:
        client = self._any(data)
        if client.is_member and not client.is_classic:
            client.topics = topics
            request = consumer_beat(GROUP, client.member_id, client.epoch, topics=topics, instance=client.instance)
            self._learn(client, self.harness.ask(request, VERSION))

    # What happens around them

    @rule(ms=st.sampled_from([1, 60, 200, 600, 1_100]))
    def pass_time(self, ms: int) -> None:
        """Whoever the coordinator has removed finds out before it is too late: its session is over for itself too."""
        self.harness.advance(ms)
        self._let_go_of_lost_sessions()

    def _let_go_of_lost_sessions(self) -> None:
        group = self.harness.group
        for client in self.clients:
            if client.is_member and (group is None or client.member_id not in group.members):
                client.drop()

    @rule(name=st.sampled_from(["a", "b", "c"]), count=st.integers(1, 3))
    def change_topic(self, name: str, count: int) -> None:
        topics = self.harness.topics
        topic_id = topics.topic_id(name)
        if topic_id is None:
            topics.create(name, count)
        else:
            topics.grow(name, topics.partition_count(topic_id) + count)
        self.harness.shard.on_topics_changed([name])

    @rule()
    def restart(self) -> None:
        """Another broker takes over."""
        self.harness.shard = self.harness.read_back()
        self.harness.take(self.harness.shard.start_timers(self.harness.now_ms, self.harness.now_ms))
        self.highest_epoch = 0 if self.harness.group is None else self.highest_epoch

    # What holds

    @invariant()
    def no_partition_is_two_members(self) -> None:
        worked_on = [each for client in self.clients for each in client.works_on]
        assert len(worked_on) == len(set(worked_on))

    @invariant()
    def epochs_only_grow(self) -> None:
        group = self.harness.group
        if group is not None:
            assert group.group_epoch >= self.highest_epoch
            assert group.assignment_epoch <= group.group_epoch
            assert all(member.member_epoch <= group.assignment_epoch for member in group.members.values())
            self.highest_epoch = group.group_epoch

    @invariant()
    def nobody_is_waited_for_without_end(self) -> None:
        """Who has left for a while is only waited for by its session: as in Kafka, its next self revokes nothing."""
        group, deadlines = self.harness.group, self.harness.shard._deadlines
        for member in group.members.values() if group is not None else ():
            assert SessionTimeout(GROUP, member.member_id) in deadlines
            is_away = member.member_epoch < 0
            if member.state is UNREVOKED_PARTITIONS and not member.uses_classic_protocol and not is_away:
                assert RevocationTimeout(GROUP, member.member_id, member.member_epoch) in deadlines

    @invariant()
    def what_was_written_survives_a_restart(self) -> None:
        self._check_read_back(self.harness.read_back())

    @invariant()
    def compaction_may_overtake_a_load(self) -> None:
        """KAFKA-19862, KAFKA-16147: no partition is free because a record is missing that took it from a member."""
        length = len(self.harness.log)
        self._check_read_back(self.harness.read_back(overtaken_at=Random(length).randint(0, length)))

    def _check_read_back(self, shard: GroupShard) -> None:
        group, again = self.harness.group, shard.groups.get(GROUP)
        assert isinstance(again, ConsumerGroup) == (group is not None)
        if group is None:
            return
        assert isinstance(again, ConsumerGroup)
        for name in LASTING:
            assert getattr(again, name) == getattr(group, name), name
        for topic_id in map(self.harness.topics.topic_id, self.harness.topics.names):
            assert topic_id is not None
            for index in range(self.harness.topics.partition_count(topic_id)):
                assert again.owner_of(topic_id, index) == group.owner_of(topic_id, index)

    def teardown(self) -> None:
        """Members that go on, and do what they are told, end with all partitions of their topics in equal shares."""
        if not hasattr(self, "harness"):
            return
        self._let_go_of_lost_sessions()
        staying = {client.instance or id(client): client for client in self.clients if not client.is_gone}
        for client in self.clients:
            client.is_gone |= client not in staying.values()
        for _ in range(ROUNDS_TO_SETTLE):
            self.harness.advance(100)
            self._let_go_of_lost_sessions()
            for client in staying.values():
                self._do_as_told(client)
            self.no_partition_is_two_members()
        self._check_end(list(staying.values()))

    def _check_end(self, staying: list[Client]) -> None:
        group = self.harness.shard.groups.get(GROUP)
        working = [client for client in staying if not client.is_gone]
        member_ids = set() if group is None else set(group.members)
        assert member_ids == {client.member_id for client in working}
        if not working:
            return
        assert isinstance(group, ClassicGroup) == all(client.is_classic for client in working)
        subscribed = {
            (topic_id, index)
            for name in (set(CLASSIC_TOPICS) if isinstance(group, ClassicGroup) else group.topic_names)
            if (topic_id := self.harness.topics.topic_id(name)) is not None
            for index in range(self.harness.topics.partition_count(topic_id))
        }
        assert set().union(*(client.works_on for client in working)) == subscribed
        if isinstance(group, ClassicGroup) or group.is_homogeneous:
            counts = [len(client.works_on) for client in working]
            assert max(counts) - min(counts) <= 1


LASTING = (
    "members",
    "static_members",
    "target_assignment",
    "group_epoch",
    "assignment_epoch",
    "assignment_timestamp_ms",
    "metadata_hash",
    "resolved_regexes",
    "subscribed_topic_names",
    "subscribed_regexes",
)

TestConsumerGroup = ConsumerMachine.TestCase
TestConsumerGroup.settings = examples(40, stateful_step_count=30)
