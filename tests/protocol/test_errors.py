"""The error codes."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode


def test_the_codes_are_kafkas_without_a_gap() -> None:
    assert [int(code) for code in ErrorCode] == list(range(-1, 134))


def test_every_code_describes_itself() -> None:
    descriptions = [code.description for code in ErrorCode]
    assert all(text.endswith(".") for text in descriptions)
    assert len(set(descriptions)) == len(descriptions)


def test_clients_retry_what_may_pass_and_nothing_else() -> None:
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert ErrorCode.COORDINATOR_LOAD_IN_PROGRESS.retriable
    assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.retriable
    assert not ErrorCode.NONE.retriable
    assert not ErrorCode.UNKNOWN_SERVER_ERROR.retriable
    assert not ErrorCode.REBALANCE_IN_PROGRESS.retriable
    assert not ErrorCode.INVALID_TOPIC_EXCEPTION.retriable
