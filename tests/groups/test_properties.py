"""What holds for a shard whatever clients do and whenever they do it."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pykbroker.groups.classic.classic_group import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    ClassicGroup,
)
from pykbroker.groups.common.config import GroupConfig
from pykbroker.groups.common.deadlines import RebalanceTimeout, SessionTimeout, SyncTimeout
from pykbroker.groups.common.records import decode_record
from pykbroker.groups.common.requests import DeleteGroup
from pykbroker.groups.shard import GroupRequest, GroupShard
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_offsets import OffsetCommitRequest, OffsetDeleteRequest
from pykbroker.protocol.messages.groups import JoinGroupResponse, SyncGroupResponse
from pykbroker.state_machine import CoordinatorContext, Result, Token
from tests.examples import examples
from tests.trials import Trials

from .scenarios import beat, commit, forget, join, leave, subscription, sync

GROUPS = ("g1", "g2")
CONFIG = GroupConfig(initial_rebalance_delay_ms=100, min_session_timeout_ms=10, max_size=5)


@dataclass
class Client:
    """One consumer: what it knows from its answers, and what it waits for."""

    name: str
    group: str
    instance: str | None
    version: int
    member_id: str = ""
    generation: int = -1
    waits_for: str | None = None
    members: list[str] = field(default_factory=list)


class Harness:
    """A shard, its log, and the answers it owes."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        self.shard = GroupShard(CONFIG, rng)
        self._trials = Trials.of_random(rng)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.now_ms = 0
        self.owed: dict[Token, Client] = {}
        self.answers: list[tuple[Client, Any]] = []
        self._tokens = 0

    def submit(self, client: Client, request: GroupRequest) -> None:
        self._tokens += 1
        token = Token(self._tokens)
        self.owed[token] = client
        context = CoordinatorContext(api_version=client.version, client_id=client.name)
        handled = self._trials.make(
            self.shard, lambda: self.shard.handle(request, token, self.now_ms, context, self.now_ms + 1_000)
        )
        self._take(handled)

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        self._take(self._trials.make(self.shard, lambda: self.shard.expire(self.now_ms, self.now_ms + 1_000)))

    def _take(self, result: Result[Any]) -> None:
        self.log.extend(record.encode() for record in result.records)
        assert result.cause or not result.records
        for completion in result.completed:
            client = self.owed.pop(completion.token)  # a KeyError is a second answer
            self.answers.append((client, completion.response))

    def replayed(self) -> GroupShard:
        shard = GroupShard(CONFIG, Random(0))
        for key, value in self.log:
            record = decode_record(key, value)
            shard.replay(record.key, record.value)
        return shard


def classic_groups(shard: GroupShard) -> dict[str, ClassicGroup]:
    """The machines below speak the classic protocol only."""
    groups: dict[str, ClassicGroup] = {}
    for group_id, group in shard.groups.items():
        assert isinstance(group, ClassicGroup)
        groups[group_id] = group
    return groups


def lasting(group: ClassicGroup) -> Any:
    """What of a group must survive a restart. Of the protocols that members offer, the chosen one counts."""
    return (
        group.state,
        group.generation_id,
        group.protocol_type,
        group.protocol_name,
        group.leader_id,
        group.static_members,
        group.topics if group.members else None,
        [
            (m.member_id, m.group_instance_id, m.client_id, m.rebalance_timeout_ms, m.session_timeout_ms, m.assignment)
            for m in group.members.values()
        ],
    )


class ShardMachine(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 1000))
    def start(self, seed: int) -> None:
        self.harness = Harness(seed)
        self.clients: list[Client] = []
        self.generations: dict[str, int] = {}

    def _learn(self) -> None:
        for client, response in self.harness.answers:
            match response:
                case JoinGroupResponse():
                    client.waits_for = None
                    self._learn_join(client, response)
                case SyncGroupResponse():
                    client.waits_for = None
                    if response.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                        client.member_id = ""
        self.harness.answers.clear()

    def _learn_join(self, client: Client, response: JoinGroupResponse) -> None:
        match response.error_code:
            case ErrorCode.NONE | ErrorCode.MEMBER_ID_REQUIRED:
                client.member_id = response.member_id
                client.generation = response.generation_id
                client.members = [member.member_id for member in response.members]
                assert (response.leader == response.member_id) == bool(response.members) or response.skip_assignment
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.FENCED_INSTANCE_ID | ErrorCode.GROUP_MAX_SIZE_REACHED:
                client.member_id = ""

    # What clients do

    @rule(
        group=st.sampled_from(GROUPS),
        instance=st.sampled_from([None, None, "i1", "i2"]),
        version=st.sampled_from([3, 5, 8, 9]),
    )
    def appear(self, group: str, instance: str | None, version: int) -> None:
        name = f"c{len(self.clients)}"
        self.clients.append(Client(name, group, instance if version >= 5 else None, version))

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), topic=st.sampled_from(["a", "b"]), session=st.sampled_from([50, 400]))
    def join(self, data: st.DataObject, topic: str, session: int) -> None:
        client = data.draw(st.sampled_from(self.clients))
        client.waits_for = "join"
        protocols = {"range": subscription(topic), "sticky": subscription("a")}
        self.harness.submit(
            client,
            join(
                client.group,
                client.member_id,
                instance=client.instance,
                session=session,
                rebalance=200,
                protocols=protocols,
            ),
        )
        self._learn()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def sync(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from(self.clients))
        assignments = {member_id: member_id.encode() for member_id in client.members}
        client.waits_for = "sync"
        self.harness.submit(
            client,
            sync(client.group, client.generation, client.member_id, assignments, type=None, protocol=None)
            if client.version < 5
            else sync(client.group, client.generation, client.member_id, assignments, instance=client.instance),
        )
        self._learn()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def beat(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from(self.clients))
        self.harness.submit(client, beat(client.group, client.generation, client.member_id, client.instance))

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from(self.clients))
        self.harness.submit(client, leave(client.group, (client.member_id, client.instance)))
        self._learn()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), offset=st.integers(0, 9), alone=st.booleans())
    def commit(self, data: st.DataObject, offset: int, alone: bool) -> None:
        client = data.draw(st.sampled_from(self.clients))
        request: OffsetCommitRequest = commit(client.group, {"a": {offset % 3: (offset, "")}})
        if not alone:
            request.generation_id_or_member_epoch, request.member_id = client.generation, client.member_id
        self.harness.submit(client, request)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from(self.clients))
        request: OffsetDeleteRequest = forget(client.group, {"a": [0, 1], "b": [0]})
        self.harness.submit(client, request)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from(self.clients))
        self.harness.submit(client, DeleteGroup(group_id=client.group))
        if client.group not in self.harness.shard.groups:
            self.generations.pop(client.group, None)

    @rule(ms=st.sampled_from([1, 30, 60, 100, 250, 1000]))
    def advance(self, ms: int) -> None:
        self.harness.advance(ms)
        self._learn()

    # What holds

    @invariant()
    def one_leader_which_is_a_member(self) -> None:
        for group in classic_groups(self.harness.shard).values():
            assert (group.leader_id in group.members) == bool(group.members)

    @invariant()
    def generations_only_grow(self) -> None:
        for group_id, group in classic_groups(self.harness.shard).items():
            assert group.generation_id >= self.generations.get(group_id, 0)
            self.generations[group_id] = group.generation_id

    @invariant()
    def members_fit_their_state(self) -> None:
        for group in classic_groups(self.harness.shard).values():
            # Members may leave while a rebalance waits for others to come.
            without_members = (EMPTY, PREPARING_REBALANCE)
            assert group.state is not EMPTY if group.members else group.state in without_members
            assert set(group.pending_sync_members) <= set(group.members)
            assert not set(group.pending_join_members) & set(group.members)
            # A rebalance counts the members that have rejoined; at its end it removes the others, but for static ones.
            assert sum(member.awaiting_join is not None for member in group.members.values()) <= CONFIG.max_size
            if group.state is not PREPARING_REBALANCE:
                assert sum(not member.is_static for member in group.members.values()) <= CONFIG.max_size
            for instance, member_id in group.static_members.items():
                assert group.members[member_id].group_instance_id == instance
            for member in group.members.values():
                assert member.awaiting_join is None or group.state is PREPARING_REBALANCE
                assert member.awaiting_sync is None or group.state is COMPLETING_REBALANCE

    @invariant()
    def nobody_waits_for_ever(self) -> None:
        """Every state that waits for a member has a deadline, and every parked request is known to the group."""
        deadlines = self.harness.shard._deadlines
        parked = set()
        for group in classic_groups(self.harness.shard).values():
            if group.state is PREPARING_REBALANCE:
                assert RebalanceTimeout(group.group_id) in deadlines
            if group.state is COMPLETING_REBALANCE:
                assert SyncTimeout(group.group_id, group.generation_id) in deadlines
            for member in group.members.values():
                assert member.keeps_session or SessionTimeout(group.group_id, member.member_id) in deadlines
                parked |= {member.awaiting_join, member.awaiting_sync} - {None}
            for member_id in group.pending_join_members:
                assert SessionTimeout(group.group_id, member_id) in deadlines
        assert parked == set(self.harness.owed)

    @invariant()
    def what_was_written_survives_a_restart(self) -> None:
        shard, replayed = self.harness.shard, self.harness.replayed()
        assert set(replayed.groups) == set(shard.groups)
        found = classic_groups(replayed)
        for group_id, group in classic_groups(shard).items():
            assert list(replayed.offsets.committed.of_group(group_id)) == list(
                shard.offsets.committed.of_group(group_id)
            )
            if group.state in (EMPTY, STABLE):
                assert lasting(found[group_id]) == lasting(group)


TestShard = ShardMachine.TestCase
TestShard.settings = examples(60, stateful_step_count=50)


class Consumer:
    """A consumer that does what the protocol says, one step whenever it gets its turn."""

    def __init__(self, harness: Harness, number: int) -> None:
        self.client = Client(f"c{number}", "g", None, version=9 if number % 2 else 3)
        self.harness = harness
        self.assignment: bytes | None = None
        self._answer: Any = None

    def answered(self, response: Any) -> None:
        self._answer = response
        self.client.waits_for = None

    def step(self) -> None:
        client, answer = self.client, self._answer
        if client.waits_for is not None:
            return
        self._answer = None
        if answer is None and self.assignment is not None:
            self._ask("beat", beat(client.group, client.generation, client.member_id))
            return
        code = ErrorCode.NONE if answer is None else ErrorCode(answer.error_code)
        assert code is not ErrorCode.UNKNOWN_MEMBER_ID, f"{client.name} is alive"
        match answer:
            case JoinGroupResponse() if code is ErrorCode.NONE:
                client.member_id, client.generation = answer.member_id, answer.generation_id
                parts = {member.member_id: member.member_id.encode() for member in answer.members}
                self._ask("sync", sync(client.group, client.generation, client.member_id, parts))
            case SyncGroupResponse() if code is ErrorCode.NONE:
                self.assignment = answer.assignment
            case JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED):
                client.member_id = answer.member_id
                self._join()
            case _ if code is ErrorCode.NONE and answer is not None:
                pass
            case _:
                self._join()

    def _join(self) -> None:
        self.assignment = None
        self._ask("join", join(self.client.group, self.client.member_id, session=1_000, rebalance=2_000))

    def _ask(self, what: str, request: GroupRequest) -> None:
        self.client.waits_for = what
        self.harness.submit(self.client, request)


@examples(60)
@given(turns=st.lists(st.integers(0, 4), max_size=200), seed=st.integers(0, 100))
def test_members_that_join_at_the_same_time_all_stay(turns: list[int], seed: int) -> None:
    harness = Harness(seed)
    consumers = [Consumer(harness, number) for number in range(5)]
    by_client = {id(consumer.client): consumer for consumer in consumers}

    def take_turn(number: int) -> None:
        consumers[number].step()
        harness.advance(2)
        for client, response in harness.answers:
            by_client[id(client)].answered(response)
        harness.answers.clear()

    for number in turns:
        take_turn(number)
    for number in list(range(5)) * 200:
        take_turn(number)
    group = classic_groups(harness.shard)["g"]
    assert group.state is STABLE
    assert {consumer.client.member_id for consumer in consumers} == set(group.members)
    assert {consumer.client.generation for consumer in consumers} == {group.generation_id}
    assert [consumer.assignment for consumer in consumers] == [c.client.member_id.encode() for c in consumers]
