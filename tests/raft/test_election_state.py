"""The text of `quorum-state` and the set of voters."""

from __future__ import annotations

import pytest

from pykbroker.protocol.uuids import uuid_from_text
from pykbroker.raft.election_state import ElectionState, InvalidQuorumState, stored_voters
from pykbroker.raft.voters import InvalidVoters, Voter, VoterSet


def test_quorum_state_is_written_as_kafka_writes_it() -> None:
    assert ElectionState(1, leader_id=1).to_json([1]) == (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )


@pytest.mark.parametrize("state", [ElectionState(0), ElectionState(7, leader_id=0), ElectionState(7, voted_id=3)])
def test_quorum_state_survives_a_round_trip(state: ElectionState) -> None:
    assert ElectionState.from_json(state.to_json([1, 2])) == state


def test_quorum_state_of_dynamic_voters_tells_the_directory_that_was_voted_for() -> None:
    text = b'{"leaderId":1,"leaderEpoch":5,"votedId":1,"votedDirectoryId":"wl_G4kmIMn5lNQgBhO-4Sg","data_version":1}'
    state = ElectionState.from_json(text)
    assert state == ElectionState(
        5, leader_id=1, voted_id=1, voted_directory_id=uuid_from_text("wl_G4kmIMn5lNQgBhO-4Sg")
    )
    assert state.to_json(None) == text


def test_static_voters_stand_in_the_quorum_state_and_dynamic_ones_do_not() -> None:
    assert stored_voters(ElectionState(1).to_json([2, 1])) == [1, 2]
    assert stored_voters(b'{"leaderId":1,"leaderEpoch":5,"votedId":1,"data_version":1}') is None
    with pytest.raises(InvalidQuorumState, match="voterId"):
        stored_voters(b'{"currentVoters":[1],"data_version":0}')


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"data_version":2}', "data_version 2"),
        (b'{"data_version":0}', "leaderEpoch"),
        (b'{"data_version":0,"leaderEpoch":true,"leaderId":1,"votedId":-1}', "leaderEpoch"),
        (b'{"data_version":0,"leaderEpoch":-1,"leaderId":1,"votedId":-1}', "negative"),
        (b"\xff\xfe", "not JSON"),
        (b'{"data_version":1,"leaderEpoch":1,"leaderId":1,"votedId":2,"votedDirectoryId":"?"}', "votedDirectoryId"),
    ],
)
def test_a_damaged_quorum_state_is_refused(text: bytes, complaint: str) -> None:
    with pytest.raises(InvalidQuorumState, match=complaint):
        ElectionState.from_json(text)


def test_a_majority_of_the_voters_decides() -> None:
    voters = VoterSet([Voter(2, "controller-2.example", 9093), Voter(1, "::1", 9094)])
    assert voters.ids == [1, 2]
    assert voters.majority == 2


def test_a_voter_named_twice_is_refused() -> None:
    with pytest.raises(InvalidVoters, match="named twice"):
        VoterSet([Voter(1, "a", 1), Voter(1, "b", 2)])


def test_a_quorum_without_voters_is_refused() -> None:
    with pytest.raises(InvalidVoters, match="at least one"):
        VoterSet([])
