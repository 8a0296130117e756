"""Groups with very many offsets go in several steps; nobody joins meanwhile, and who asked hears of it at the end."""

from __future__ import annotations

import pytest

from pykbroker.groups import deletions
from pykbroker.groups.common.requests import DeleteGroup
from pykbroker.protocol.errors import ErrorCode

from .consumer_requests import consumer_beat
from .conversation import GROUP, Conversation
from .scenarios import commit, join
from .test_transactional_offsets import committing

MOST = 10


@pytest.fixture(autouse=True)
def _few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletions, "MOST_OFFSETS", MOST)


def of_many_offsets(number: int = 25) -> Conversation:
    talk = Conversation()
    talk.ask("commit", commit(GROUP, {"t": dict.fromkeys(range(number), (1, ""))}))
    return talk


def go_on(talk: Conversation) -> list[int]:
    """How many records each of the steps wrote that are due at once."""
    written = []
    while (deadline_ms := talk.shard.next_deadline_ms()) is not None and deadline_ms <= talk.now_ms:
        before = len(talk.written)
        talk.advance(0)
        written.append(len(talk.written) - before)
    return written


def test_a_group_with_very_many_offsets_goes_in_several_steps() -> None:
    talk = of_many_offsets()
    before = len(talk.written)
    assert talk.ask("delete", DeleteGroup(group_id=GROUP)) is None
    assert len(talk.written) - before == MOST
    assert go_on(talk) == [10, 6], "the group goes with the last of its offsets"
    assert talk.answers["delete"] is ErrorCode.NONE
    assert GROUP not in talk.shard.groups
    assert not talk.shard.offsets.committed.count(GROUP)


def test_one_with_few_goes_at_once() -> None:
    talk = of_many_offsets(MOST)
    assert talk.ask("delete", DeleteGroup(group_id=GROUP)) is ErrorCode.NONE
    assert GROUP not in talk.shard.groups


def test_nobody_joins_a_group_that_is_being_deleted() -> None:
    talk = of_many_offsets()
    talk.ask("delete", DeleteGroup(group_id=GROUP))
    assert talk.ask("join", join(GROUP)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    beat = consumer_beat(GROUP, "a", topics=["t"])
    assert talk.ask("beat", beat, 1).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    go_on(talk)
    assert talk.answers["delete"] is ErrorCode.NONE
    assert talk.ask("beat again", beat, 1).error_code == ErrorCode.NONE


def test_two_who_delete_one_group_are_both_answered() -> None:
    talk = of_many_offsets()
    for name in ("one", "two"):
        talk.ask(name, DeleteGroup(group_id=GROUP))
    go_on(talk)
    assert (talk.answers["one"], talk.answers["two"]) == (ErrorCode.NONE, ErrorCode.NONE)
    assert talk.ask("three", DeleteGroup(group_id=GROUP)) is ErrorCode.GROUP_ID_NOT_FOUND


def test_what_is_committed_and_what_is_pending_meanwhile_goes_too() -> None:
    talk = of_many_offsets()
    talk.ask("delete", DeleteGroup(group_id=GROUP))
    talk.ask("again", commit(GROUP, {"t": dict.fromkeys(range(5), (2, ""))}))
    assert committing(talk, dict.fromkeys(range(3), 9)) is ErrorCode.NONE
    go_on(talk)
    assert talk.answers["delete"] is ErrorCode.NONE
    assert GROUP not in talk.shard.groups
    assert GROUP not in talk.shard.offsets.pending


def test_a_part_that_was_refused_is_made_again() -> None:
    talk = of_many_offsets()
    talk.ask("delete", DeleteGroup(group_id=GROUP))
    talk.advance(0)
    for _ in range(2):
        talk.shard.begin_trial()
        result = talk.shard.expire(0, 0)
        talk.shard.end_trial(is_kept=False)
        assert (len(result.records), len(result.completed)) == (6, 1)
        assert talk.shard.offsets.committed.count(GROUP) == 5
    go_on(talk)
    assert talk.answers["delete"] is ErrorCode.NONE


def test_sessions_end_while_a_large_group_is_being_deleted() -> None:
    talk = of_many_offsets(100)
    talk.ask("join", join("other", session=10_000), 4)
    talk.ask("delete", DeleteGroup(group_id=GROUP))
    talk.now_ms += 10_000
    for _ in range(3):
        talk.advance(0)
    assert not talk.shard.groups["other"].pending_join_members  # type: ignore[union-attr]
    assert GROUP in talk.shard.groups
