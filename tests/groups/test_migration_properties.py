"""Groups under any order of what members of both protocols do, next to a plain model.

The members are those of `test_consumer_properties`, and others that speak the classic protocol, eagerly: they let go of
everything before they join. The group changes its protocol whenever it may.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from pykbroker.groups.classic.classic_group import ClassicGroup
from pykbroker.groups.consumer.embedded_protocol import read_assignment
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import HeartbeatResponse, JoinGroupResponse, SyncGroupResponse
from tests.examples import examples

from .migration_scenarios import assignment, subscription
from .scenarios import beat, join, leave, sync
from .test_consumer_properties import CLASSIC_TOPICS, GROUP, Client, ConsumerMachine

JOIN_VERSION, SYNC_VERSION, BEAT_VERSION, LEAVE_VERSION = 3, 4, 3, 3
SESSION_MS, REBALANCE_MS = 1_000, 500


@dataclass(eq=False)
class ClassicClient(Client):
    """answer: to its last JoinGroup, as long as it has not synced. awaits: a request of it is parked.

    handed_out: what it shared out as a leader, which joins again when there is more.
    """

    answer: JoinGroupResponse | None = None
    handed_out: list[tuple[str, int]] | None = None
    awaits: bool = False
    is_classic: bool = True

    def drop(self) -> None:
        super().drop()
        self.answer = self.handed_out = None

    def forget_member_id(self) -> None:
        self.drop()
        self.member_id = ""


class MigrationMachine(ConsumerMachine):
    @initialize()
    def start_without_classic_members(self) -> None:
        self.owed: dict[int, ClassicClient] = {}

    # What classic members do

    @rule()
    def appear_with_the_classic_protocol(self) -> None:
        if len(self.clients) < 8:
            self.clients.append(ClassicClient("", None, CLASSIC_TOPICS, None))

    def _beat(self, client: Client) -> None:
        if not isinstance(client, ClassicClient):
            super()._beat(client)
        elif not client.awaits:
            self._step(client)
        self._hear()

    def _step(self, client: ClassicClient) -> None:
        """Whatever its protocol demands next."""
        if client.answer is not None:
            self._ask(
                client,
                sync(GROUP, client.epoch, client.member_id, self._shares(client), type=None, protocol=None),
                SYNC_VERSION,
            )
        elif client.is_member and client.handed_out in (None, self._everything()):
            self._ask(client, beat(GROUP, client.epoch, client.member_id), BEAT_VERSION)
        else:
            client.owned, client.target, client.is_member, client.handed_out = {}, {}, False, None
            protocols = {"range": subscription(*CLASSIC_TOPICS)}
            request = join(GROUP, client.member_id, protocols=protocols, session=SESSION_MS, rebalance=REBALANCE_MS)
            self._ask(client, request, JOIN_VERSION)

    def _everything(self) -> list[tuple[str, int]]:
        topics = self.harness.topics
        return [
            (name, index)
            for name in CLASSIC_TOPICS
            if (topic_id := topics.topic_id(name)) is not None
            for index in range(topics.partition_count(topic_id))
        ]

    def _shares(self, client: ClassicClient) -> dict[str, bytes]:
        """What a leader hands out: everything, in turns."""
        assert client.answer is not None
        member_ids = [member.member_id for member in client.answer.members]
        shares: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in member_ids}
        if member_ids:
            client.handed_out = self._everything()
        for number, (name, index) in enumerate(self._everything()):
            if member_ids:
                shares[member_ids[number % len(member_ids)]].setdefault(name, []).append(index)
        return {member_id: assignment(**part) for member_id, part in shares.items()}

    def _ask(self, client: ClassicClient, request: Any, version: int) -> None:
        token = self.harness.next_token
        answer = self.harness.ask(request, version, "c")
        if answer is None:
            client.awaits = True
            self.owed[token] = client
        else:
            self._learn_classic(client, answer)

    def _hear(self) -> None:
        """Answers that came with this step, to requests that were parked."""
        late, self.harness.late = self.harness.late, []
        for completion in late:
            client = self.owed.pop(completion.token)
            client.awaits = False
            if not client.is_gone:
                self._learn_classic(client, completion.response)

    def _learn_classic(self, client: ClassicClient, answer: Any) -> None:
        match ErrorCode(answer.error_code):
            case ErrorCode.NONE:
                self._follow_classic(client, answer)
            case ErrorCode.REBALANCE_IN_PROGRESS:
                client.drop()
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION:
                client.forget_member_id()
            case unexpected:
                raise AssertionError(unexpected)

    def _follow_classic(self, client: ClassicClient, answer: Any) -> None:
        match answer:
            case JoinGroupResponse():
                client.member_id, client.epoch, client.answer = answer.member_id, answer.generation_id, answer
            case SyncGroupResponse():
                partitions, _ = read_assignment(bytes(answer.assignment), self.harness.topics)
                client.owned = {topic_id: set(indexes) for topic_id, indexes in partitions.items()}
                client.target = {topic_id: set(indexes) for topic_id, indexes in partitions.items()}
                client.answer, client.is_member = None, True
            case HeartbeatResponse():
                assert client.is_member

    @precondition(lambda self: self._has_clients())
    @rule(data=st.data())
    def leave_with_the_classic_protocol(self, data: st.DataObject) -> None:
        client = self._any(data)
        if isinstance(client, ClassicClient) and client.member_id and not client.awaits:
            client.drop()
            client.is_gone = True
            self.harness.ask(leave(GROUP, (client.member_id, None)), LEAVE_VERSION)

    @rule()
    def restart(self) -> None:
        """Whoever waits for an answer loses its connection."""
        super().restart()
        for client in self.owed.values():
            client.awaits = False
            client.drop()
        self.owed = {}
        self._let_go_of_lost_sessions()

    @invariant()
    def every_late_answer_is_heard(self) -> None:
        self._hear()

    @invariant()
    def epochs_only_grow(self) -> None:
        """As long as the group has members: an empty one of the other protocol makes room for a new one."""
        group = self.harness.shard.groups.get(GROUP)
        if group is None or not group.members:
            self.highest_epoch = 0
        elif isinstance(group, ClassicGroup):
            assert group.generation_id >= self.highest_epoch
            self.highest_epoch = group.generation_id
        else:
            super().epochs_only_grow()

    def _let_go_of_lost_sessions(self) -> None:
        self._hear()
        group = self.harness.shard.groups.get(GROUP)
        for client in self.clients:
            if client.is_member and (group is None or client.member_id not in group.members):
                client.drop()


TestMigration = MigrationMachine.TestCase
TestMigration.settings = examples(40, stateful_step_count=30)
