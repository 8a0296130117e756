"""Groups of the classic protocol: joins that wait for each other, static members, generations, committed offsets.

Requests that wait are on connections of their own. Where one of them is not seen by the coordinator yet when the next
step comes, the answers are the same: all orders of the two are alike by Kafka's rules.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, rule

from compat_tests.brokers import Broker
from compat_tests.waiting import until
from tests.examples import examples

from .client import GROUP
from .group_client import GroupClient, Joined, Synced, Waiting, joined, synced
from .machine import BrokerMachine, explore

DEAD, EMPTY, PREPARING, COMPLETING, STABLE = (
    "Dead",
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
)
PARTITIONS = 2
LIMIT = 3
"""Members at a time: what three of them do, more do as well."""

protocol_lists = st.sampled_from((["one"], ["one"], ["one", "two"], ["two", "one"], ["two"]))
generation_shifts = st.sampled_from((0, 0, 0, 0, -1, 1))


@dataclass(eq=False)
class Member:
    """A process that is or was a member, as the coordinator has it."""

    member_id: str
    instance_id: str | None
    protocols: list[str]
    waits_to_join: Waiting | None = None
    waits_to_sync: Waiting | None = None
    assignment: bytes = b""


@dataclass(eq=False)
class Model:
    state: str = DEAD
    generation: int = 0
    leader: str | None = None
    protocol: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)

    @property
    def common_protocols(self) -> set[str]:
        """Those that all members have, as they joined: one that joins anew must have one of them still."""
        lists = [set(each.protocols) for each in self.members.values()]
        return set.intersection(*lists) if lists else {"one", "two"}

    def selected_protocols(self) -> set[str]:
        """Each member votes for the first of its own that all have; two may have as many votes."""
        common = self.common_protocols
        votes = Counter(next(name for name in each.protocols if name in common) for each in self.members.values())
        return {name for name, count in votes.items() if count == max(votes.values())}

    def of_instance(self, instance_id: str) -> Member | None:
        return next((each for each in self.members.values() if each.instance_id == instance_id), None)


class ClassicGroupsMachine(BrokerMachine):
    known = Bundle("members")

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.model = Model()
        self.topic = self.name("topic")
        self.groups = GroupClient(self.client, self.name("group"))
        self.waiting: list[Waiting] = []

    def teardown(self) -> None:
        for each in self.waiting:
            each.close()
        try:
            for member in self.model.members.values():
                self.groups.leave(member.member_id, None)
        finally:
            super().teardown()

    @initialize(target=known, instance=st.sampled_from((None, "x")), protocols=protocol_lists)
    def begin(self, instance: str | None, protocols: list[str]) -> Member:
        self.client.create_topic(self.topic, PARTITIONS, {})
        self.client.wait_for_coordinator(self.groups.group, GROUP)
        return self._join_as_new(protocols) if instance is None else self._join_as_static(instance, protocols)

    # Joins

    @rule(target=known, protocols=protocol_lists)
    def join_as_new(self, protocols: list[str]) -> Member:
        """Without an id, and again with the one that the coordinator gave (KIP-394)."""
        return self._join_as_new(protocols)

    def _join_as_new(self, protocols: list[str]) -> Member:
        member = Member("nobody", None, protocols)
        if len(self.model.members) == LIMIT:
            return member
        first = joined(self._waiting(self.groups.join("", None, protocols)).answer())
        if not self.model.common_protocols & set(protocols):
            assert first.error == "INCONSISTENT_GROUP_PROTOCOL"
            return member
        assert first.error == "MEMBER_ID_REQUIRED"
        assert first.member_id
        member.member_id = first.member_id
        self._add(member)
        return member

    @rule(target=known, instance=st.sampled_from(("x", "y")), protocols=protocol_lists)
    def join_as_static(self, instance: str, protocols: list[str]) -> Member:
        """A process with an instance id (KIP-345): in the place of the one that had it before."""
        return self._join_as_static(instance, protocols)

    def _join_as_static(self, instance: str, protocols: list[str]) -> Member:
        before = self.model.of_instance(instance)
        member = Member("nobody", instance, protocols)
        if before is not None:
            self._replace(before, member)
        elif not self.model.common_protocols & set(protocols):
            answer = joined(self._waiting(self.groups.join("", instance, protocols)).answer())
            assert answer.error == "INCONSISTENT_GROUP_PROTOCOL"
        elif len(self.model.members) < LIMIT:
            self._add(member)
        return member

    def _add(self, member: Member) -> None:
        """A member that was not there before: everybody joins anew."""
        asked = member.member_id if member.instance_id is None else ""
        member.waits_to_join = self._waiting(self.groups.join(asked, member.instance_id, member.protocols))
        if member.instance_id is not None and self.model.members:
            until(lambda: self._id_of(member.instance_id) is not None, f"{member.instance_id} is a member")
            member.member_id = self._id_of(member.instance_id) or ""
        elif member.instance_id is None and self.model.members:
            until(lambda: member.member_id in self.groups.describe().members, f"{member.member_id} is a member")
        self.model.members[member.member_id] = member
        self._rebalance()

    def _id_of(self, instance_id: str | None) -> str | None:
        members = self.groups.describe().members
        return next((id for id, (instance, _) in members.items() if instance == instance_id), None)

    def _replace(self, before: Member, member: Member) -> None:
        """The group goes on without a rebalance if it is stable, and its protocol would be the same."""
        model = self.model
        protocol = model.protocol
        others = {id: each for id, each in model.members.items() if each is not before}
        if not model.common_protocols & set(member.protocols):
            answer = joined(self._waiting(self.groups.join("", member.instance_id, member.protocols)).answer())
            assert answer.error == "INCONSISTENT_GROUP_PROTOCOL"
            return
        waiting = self._waiting(self.groups.join("", member.instance_id, member.protocols))
        until(lambda: self._id_of(member.instance_id) not in (None, before.member_id), "the instance is replaced")
        member.member_id = self._id_of(member.instance_id) or ""
        if before.waits_to_join is not None:
            assert joined(before.waits_to_join.answer()).error == "FENCED_INSTANCE_ID"
        if before.waits_to_sync is not None:
            assert synced(before.waits_to_sync.answer()).error == "FENCED_INSTANCE_ID"
        before.waits_to_join = before.waits_to_sync = None
        model.members = {member.member_id: member, **others}
        member.assignment = before.assignment
        is_leader = model.leader == before.member_id
        if is_leader:
            model.leader = member.member_id
        if model.state == STABLE and model.selected_protocols() == {protocol}:
            answer = joined(waiting.answer())
            assert (answer.error, answer.generation, answer.member_id) == ("NONE", model.generation, member.member_id)
            assert (answer.leader, answer.protocol) == (model.leader, protocol)
            assert answer.skips_assignment == is_leader
            assert answer.members == (self._member_ids() if is_leader else frozenset())
            return
        member.waits_to_join = waiting
        self._rebalance()

    @rule(member=known, protocols=st.one_of(st.none(), protocol_lists))
    def join_again(self, member: Member, protocols: list[str] | None) -> None:
        """A member that joins anew, perhaps with other protocols than before."""
        if member.waits_to_join is not None or member.waits_to_sync is not None:
            return
        model = self.model
        asked = protocols or member.protocols
        if model.members.get(member.member_id) is not member:
            answer = joined(self._waiting(self.groups.join(member.member_id, member.instance_id, asked)).answer())
            assert answer.error == self._stranger_joins(member, asked)
            return
        if not model.common_protocols & set(asked):
            answer = joined(self._waiting(self.groups.join(member.member_id, member.instance_id, asked)).answer())
            assert answer.error == "INCONSISTENT_GROUP_PROTOCOL"
            return
        is_same = asked == member.protocols
        is_leader = model.leader == member.member_id
        waiting = self._waiting(self.groups.join(member.member_id, member.instance_id, asked))
        if is_same and (model.state == COMPLETING or (model.state == STABLE and not is_leader)):
            answer = joined(waiting.answer())
            self._check_joined(member, answer, model.protocol)
            return
        member.protocols = asked
        member.waits_to_join = waiting
        if model.state != PREPARING and len(model.members) > 1:
            until(lambda: self.groups.describe().state == PREPARING, "a rebalance")
        self._rebalance()

    def _stranger_joins(self, member: Member, protocols: list[str]) -> str:
        model = self.model
        if model.members and not model.common_protocols & set(protocols):
            return "INCONSISTENT_GROUP_PROTOCOL"
        return self._stranger(member)

    def _stranger(self, member: Member) -> str:
        """The error of a process that is no member any more."""
        if member.instance_id is not None and self.model.of_instance(member.instance_id) is not None:
            return "FENCED_INSTANCE_ID"
        return "UNKNOWN_MEMBER_ID"

    def _rebalance(self) -> None:
        """Everybody who waits for assignments is told; if all wait to join, the next generation begins."""
        model = self.model
        if model.state == COMPLETING:
            for member in model.members.values():
                member.assignment = b""
        model.state = PREPARING
        for member in model.members.values():
            if member.waits_to_sync is not None:
                assert synced(member.waits_to_sync.answer()).error == "REBALANCE_IN_PROGRESS"
                member.waits_to_sync = None
        if any(member.waits_to_join is None for member in model.members.values()):
            return
        model.generation += 1
        if not model.members:
            model.state, model.leader, model.protocol = EMPTY, None, None
            return
        model.state = COMPLETING
        answers: dict[Member, Joined] = {}
        for member in model.members.values():
            assert member.waits_to_join is not None
            answers[member] = joined(member.waits_to_join.answer())
            member.waits_to_join = None
        for member, answer in answers.items():
            if member.member_id == "nobody" or member.instance_id is not None:
                member.member_id = answer.member_id
        model.members = {member.member_id: member for member in answers}
        leaders = {answer.leader for answer in answers.values()}
        protocols = {answer.protocol for answer in answers.values()}
        assert len(leaders) == len(protocols) == 1
        assert protocols <= model.selected_protocols()
        if model.leader in model.members:
            assert leaders == {model.leader}
        (model.leader,) = leaders
        (model.protocol,) = protocols
        assert model.leader in model.members
        for member, answer in answers.items():
            self._check_joined(member, answer, model.protocol)

    def _check_joined(self, member: Member, answer: Joined, protocol: str | None) -> None:
        is_leader = member.member_id == self.model.leader
        assert answer == Joined(
            "NONE",
            self.model.generation,
            member.member_id,
            self.model.leader or "",
            protocol,
            self._member_ids() if is_leader else frozenset(),
            False,
        )

    def _member_ids(self) -> frozenset[tuple[str, str | None]]:
        return frozenset((each.member_id, each.instance_id) for each in self.model.members.values())

    # Members of a generation

    def _refusal(self, member: Member, generation: int) -> str:
        if self.model.members.get(member.member_id) is not member:
            return self._stranger(member)
        return "NONE" if generation == self.model.generation else "ILLEGAL_GENERATION"

    @rule(member=known, shift=generation_shifts)
    def sync(self, member: Member, shift: int) -> None:
        if member.waits_to_join is not None or member.waits_to_sync is not None:
            return
        model = self.model
        generation = model.generation + shift
        is_leader = member.member_id == model.leader
        assignments = {id: f"{generation} of {id}".encode() for id in model.members} if is_leader else {}
        waiting = self._waiting(self.groups.sync(member.member_id, member.instance_id, generation, assignments))
        error = self._refusal(member, generation)
        if error == "NONE" and model.state == COMPLETING and not is_leader:
            member.waits_to_sync = waiting
            return
        if error == "NONE" and model.state == PREPARING:
            error = "REBALANCE_IN_PROGRESS"
        if error == "NONE" and model.state == COMPLETING:
            model.state = STABLE
            for id, assignment in assignments.items():
                model.members[id].assignment = assignment
        answer = synced(waiting.answer())
        assert answer == Synced(error, member.assignment if error == "NONE" else b"")
        if model.state == STABLE:
            for each in model.members.values():
                if each.waits_to_sync is not None:
                    assert synced(each.waits_to_sync.answer()) == Synced("NONE", each.assignment)
                    each.waits_to_sync = None

    @rule(member=known, shift=generation_shifts)
    def heartbeat(self, member: Member, shift: int) -> None:
        generation = self.model.generation + shift
        error = self._refusal(member, generation)
        if error == "NONE" and self.model.state == PREPARING:
            error = "REBALANCE_IN_PROGRESS"
        assert self.groups.heartbeat(member.member_id, member.instance_id, generation) == error

    @rule(member=known)
    def leave(self, member: Member) -> None:
        model = self.model
        found = self.groups.leave(member.member_id, member.instance_id)
        if model.members.get(member.member_id) is not member:
            assert found == self._stranger(member)
            return
        assert found == "NONE"
        del model.members[member.member_id]
        if member.waits_to_join is not None:
            assert joined(member.waits_to_join.answer()).error == "UNKNOWN_MEMBER_ID"
            member.waits_to_join = None
        if member.waits_to_sync is not None:
            assert synced(member.waits_to_sync.answer()).error == "UNKNOWN_MEMBER_ID"
            member.waits_to_sync = None
        self._rebalance()

    # Offsets

    @rule(member=known, shift=generation_shifts, partition=st.integers(0, 1), offset=st.integers(0, 9))
    def commit_offset(self, member: Member, shift: int, partition: int, offset: int) -> None:
        generation = self.model.generation + shift
        if self.model.state == DEAD and generation >= 0:
            error = "GROUP_ID_NOT_FOUND"
        elif generation < 0:
            return
        else:
            error = self._refusal(member, generation)
        if error == "NONE" and self.model.state == COMPLETING:
            error = "REBALANCE_IN_PROGRESS"
        found = self.groups.commit_offset(
            self.topic, partition, offset, (member.member_id, generation), member.instance_id
        )
        assert found == error
        if error == "NONE":
            self.model.offsets[partition] = offset

    @rule(partition=st.integers(0, 1), offset=st.integers(0, 9))
    def commit_as_administrator(self, partition: int, offset: int) -> None:
        """Only where nobody is a member."""
        found = self.groups.commit_offset(self.topic, partition, offset)
        if self.model.members:
            assert found == "UNKNOWN_MEMBER_ID"
            return
        assert found == "NONE"
        self.model.offsets[partition] = offset
        if self.model.state == DEAD:
            self.model.state = EMPTY

    @rule(partition=st.integers(0, 1))
    def delete_offset(self, partition: int) -> None:
        found = self.groups.delete_offset(self.topic, partition)
        if self.model.state == DEAD:
            assert found[0] == "GROUP_ID_NOT_FOUND"
        elif self.model.members:
            assert found[0] == "NON_EMPTY_GROUP"
        else:
            assert found == ("NONE", "NONE")
            self.model.offsets.pop(partition, None)

    @rule()
    def delete_group(self) -> None:
        found = self.groups.delete()
        if self.model.state == DEAD:
            assert found == "GROUP_ID_NOT_FOUND"
        elif self.model.members:
            assert found == "NON_EMPTY_GROUP"
        else:
            assert found == "NONE"
            self.model = Model()

    # What is to be seen

    @invariant()
    def all_is_seen(self) -> None:
        model = self.model
        found = self.groups.describe()
        assert (found.error, found.state) == ("GROUP_ID_NOT_FOUND" if model.state == DEAD else "NONE", model.state)
        assert found.protocol == (model.protocol if model.state == STABLE else "")
        assert found.members == {each.member_id: (each.instance_id, each.assignment) for each in model.members.values()}
        assert self.groups.listed() == (None if model.state == DEAD else ("classic", model.state))
        assert self.groups.offsets(self.topic, PARTITIONS) == model.offsets

    def _waiting(self, waiting: Waiting) -> Waiting:
        self.waiting.append(waiting)
        return waiting


def test_classic_groups_are_those_of_the_model(broker: Broker) -> None:
    explore(ClassicGroupsMachine, broker, examples(60, stateful_step_count=25))
