"""Static voters become dynamic ones (kraft.version 1, KIP-853), where all of them can."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from pykbroker.raft.leader_state import LeaderState

from .test_conversations import OurVoter
from .voter_scenarios import Situation, add_voter, update_voter


def upgrade(voter: OurVoter, level: int = 1, *, validate_only: bool = False) -> tuple[int, str | None]:
    update = FeatureUpdateKey(feature="kraft.version", max_version_level=level)
    answer = voter.ask(UpdateFeaturesRequest(feature_updates=[update], validate_only=validate_only), 2)
    assert isinstance(answer, UpdateFeaturesResponse)
    return answer.error_code, answer.error_message


def test_the_voters_move_to_the_log() -> None:
    voter = OurVoter(Situation())
    assert voter.ask(add_voter(), 1).error_code == ErrorCode.UNSUPPORTED_VERSION  # type: ignore[attr-defined]
    assert upgrade(voter, validate_only=True) == (0, None)
    assert voter.raft.kraft_version == 0
    assert upgrade(voter) == (0, None)
    assert voter.raft.kraft_version == 1
    [own] = voter.raft.voters
    assert (own.directory_id, own.kraft_versions) == (voter.directory_id, (0, 1))
    end_offset = voter.raft.log_end_offset
    assert upgrade(voter) == (0, None)
    assert voter.raft.log_end_offset == end_offset, "it is at that level already"
    assert voter.ask(add_voter(), 1).error_code == ErrorCode.REQUEST_TIMED_OUT  # type: ignore[attr-defined]


def test_a_level_that_not_all_voters_support_is_refused() -> None:
    voter = OurVoter(Situation())
    end_offset = voter.raft.log_end_offset
    error_code, message = upgrade(voter, 2)
    assert error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert message is not None
    assert "not all of the voters support it" in message
    assert voter.raft.log_end_offset == end_offset


def test_static_voters_tell_the_leader_of_themselves() -> None:
    voter = OurVoter(Situation())
    assert voter.ask(update_voter(1, 1, voter.directory_id), 0).error_code == ErrorCode.NONE  # type: ignore[attr-defined]
    assert voter.ask(update_voter(1, 2), 0).error_code == ErrorCode.VOTER_NOT_FOUND  # type: ignore[attr-defined]
    leader = voter.raft.leader_state
    assert isinstance(leader, LeaderState)
    assert [each.directory_id for each in leader.described.values()] == [voter.directory_id]
