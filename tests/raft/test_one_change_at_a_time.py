"""Changes of the voters, one at a time, each committed by the new set before the next one begins (KIP-853)."""

from __future__ import annotations

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.api_versions import ApiVersionsResponse, SupportedFeatureKey
from pykbroker.protocol.messages.voters import (
    AddRaftVoterRequest,
    KRaftVersionFeature,
    Listener,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from pykbroker.raft.node import Role

from .one_voter import LISTENER, OneVoter, directory_of, of_dynamic_quorum


def leader_of(*node_ids: int) -> OneVoter:
    """It has committed a record of its epoch."""
    voter = of_dynamic_quorum(*node_ids)
    voter.lead()
    for node_id in node_ids[1:]:
        fetch_all(voter, node_id)
    return voter


def fetch_all(voter: OneVoter, node_id: int) -> None:
    """The replica has all that the leader has."""
    voter.fetch(node_id, voter.node.log_end_offset, voter.node.epoch, directory=directory_of(node_id))


def removal_of(node_id: int) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(voter_id=node_id, voter_directory_id=directory_of(node_id))


def addition_of(node_id: int, *, ack_when_committed: bool) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(
        voter_id=node_id,
        voter_directory_id=directory_of(node_id),
        listeners=[Listener(name=LISTENER, host=f"host{node_id}", port=9093)],
        ack_when_committed=ack_when_committed,
    )


def test_a_leader_that_has_committed_nothing_of_its_epoch_changes_no_voters() -> None:
    """A change that an earlier leader left may be in the log of a majority, and take effect beside this one."""
    voter = of_dynamic_quorum(1, 2, 3)
    voter.lead()
    assert voter.ask(removal_of(3)).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert voter.node.voters.ids == [1, 2, 3]
    fetch_all(voter, 2)
    voter.tell(removal_of(3))
    assert voter.node.voters.ids == [1, 2]


def test_a_change_waits_until_the_last_one_is_committed() -> None:
    """Also one that nobody waits for: a voter that tells of its endpoints is answered at once."""
    voter = leader_of(1, 2, 3)
    moved = UpdateRaftVoterRequest(
        current_leader_epoch=voter.node.epoch,
        voter_id=2,
        voter_directory_id=directory_of(2),
        listeners=[Listener(name=LISTENER, host="elsewhere", port=9093)],
        kraft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
    )
    assert voter.ask(moved).error_code == ErrorCode.NONE
    assert voter.ask(removal_of(3)).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert voter.node.voters.ids == [1, 2, 3]
    fetch_all(voter, 2)
    voter.tell(removal_of(3))
    assert voter.node.voters.ids == [1, 2]


def test_a_leader_that_is_removed_leads_until_the_others_have_that() -> None:
    voter = leader_of(1, 2, 3)
    voter.tell(removal_of(1))
    voter.carry_out()
    assert voter.node.voters.ids == [2, 3]
    fetch_all(voter, 2)
    assert voter.node.role is Role.LEADER, "one of the two that are left is no majority"
    fetch_all(voter, 3)
    assert voter.node.role is Role.RESIGNED


def test_a_leader_that_is_no_voter_does_not_count_itself() -> None:
    voter = leader_of(1, 2, 3)
    voter.tell(removal_of(1))
    voter.carry_out()
    before = voter.node.high_watermark
    fetch_all(voter, 2)
    assert voter.node.high_watermark == before


def test_the_last_voter_stays() -> None:
    voter = leader_of(1)
    assert voter.ask(removal_of(1)).error_code == ErrorCode.VOTER_NOT_FOUND
    assert voter.node.voters.ids == [1]


@pytest.mark.parametrize("ack_when_committed", [True, False])
def test_an_added_voter_is_told_of_when_the_requester_wants_that(ack_when_committed: bool) -> None:
    voter = leader_of(1)
    fetch_all(voter, 2)
    token = voter.tell(addition_of(2, ack_when_committed=ack_when_committed))
    voter.carry_out()
    supported = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
    voter.answer(2, ApiVersionsResponse(supported_features=[supported]))
    assert voter.node.voters.ids == [1, 2]
    assert (token in voter.responses) is not ack_when_committed
    fetch_all(voter, 2)
    assert voter.responses[token].response.error_code == ErrorCode.NONE  # type: ignore[attr-defined]
