"""The error codes."""

from __future__ import annotations

from pykbroker.protocol.errors import ApiError, ErrorCode


def test_the_codes_are_kafkas_without_a_gap() -> None:
    assert [int(code) for code in ErrorCode] == list(range(-1, 137))


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


def test_an_api_error_has_the_code_and_the_words_of_a_response() -> None:
    error = ApiError(ErrorCode.INVALID_CONFIG, "cleanup.policy is not valid")
    assert (error.code, error.message) == (ErrorCode.INVALID_CONFIG, "cleanup.policy is not valid")
    assert str(error) == "cleanup.policy is not valid"


def test_an_api_error_without_words_leaves_them_out_of_the_response_and_reads_as_its_code() -> None:
    error = ApiError(ErrorCode.NOT_CONTROLLER)
    assert error.message is None
    assert str(error) == ErrorCode.NOT_CONTROLLER.description
