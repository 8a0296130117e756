"""Error answers beside those that Apache Kafka makes (`KafkasErrorAnswers.java`), byte for byte."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.apache_kafka import why_there_is_no_kafka
from pykbroker.control.faults.error_answers import OF_PARTITIONS, error_answer, has_place_for_errors
from pykbroker.protocol.api_keys import ApiKey, api_name, response_type
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchRequest
from pykbroker.protocol.messages.share_groups import ShareFetchRequest
from pykbroker.protocol.schema import Message, Struct
from tests.control.faults.record_error_answers import ask_kafka, recorded
from tests.control.faults.samples import FULL, Case, cases

NO_ANSWER = "-"
THROWN = "!"
BY_HASH = {(ApiKey.PRODUCE, 13), (ApiKey.WRITE_TXN_MARKERS, 1), (ApiKey.WRITE_TXN_MARKERS, 2)}
"""Kafka collects these in a hash map, and their order is its."""
SHARES = (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)


def in_normal_form(case: Case, body: bytes) -> bytes:
    """The body with one text in the place of each message, for Kafka's are its own, and without an order of hashes."""
    message, end = decode(response_type(case.api_key), case.version, body)
    assert end == len(body)
    _normalize(message, sort=(case.api_key, case.version) in BY_HASH)
    return encode(message, case.version)


def _normalize(part: Struct, *, sort: bool) -> None:
    for each in type(part).__schema__.fields:
        value: Any = getattr(part, each.name)
        if each.name == "error_message" and value:
            setattr(part, each.name, "a message")
        if each.is_array and each.element == "struct" and value:
            for entry in value:
                _normalize(entry, sort=sort)
            if sort:
                value.sort(key=repr)


def is_of_a_partition(case: Case) -> bool:
    """Kafka says these of the whole Fetch, ShareFetch or ShareAcknowledge, which no broker does."""
    is_as_a_whole = (case.api_key == ApiKey.FETCH and case.version >= 7) or case.api_key in SHARES
    return is_as_a_whole and case.sample == FULL and case.error in OF_PARTITIONS


@pytest.mark.parametrize("api_key", sorted({case.api_key for case in cases()}), ids=api_name)
def test_an_error_answer_is_kafkas(api_key: int) -> None:
    compared = 0
    for case, kafkas in recorded():
        if case.api_key != api_key or kafkas.startswith(THROWN) or is_of_a_partition(case):
            continue
        ours = error_answer(case.request(), case.version, case.error, "injected")
        compared += 1
        if kafkas == NO_ANSWER:
            assert ours is None, case
        else:
            assert ours is not None, case
            ours_in_bytes = in_normal_form(case, encode(ours, case.version))
            assert ours_in_bytes == in_normal_form(case, bytes.fromhex(kafkas)), case
    assert compared


def test_the_record_has_every_api_and_version_that_is_served() -> None:
    assert [case for case, _ in recorded()] == list(cases())


def test_kafka_refuses_next_to_none_of_the_samples() -> None:
    refused = {case for case, answer in recorded() if answer.startswith(THROWN)}
    assert {(case.api_key, case.sample) for case in refused} == {(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "bare")}


@pytest.mark.skipif(why_there_is_no_kafka() is not None, reason=str(why_there_is_no_kafka()))
def test_kafka_still_answers_as_is_recorded() -> None:
    some = [(case, answer) for number, (case, answer) in enumerate(recorded()) if not number % 23]
    assert ask_kafka([case for case, _ in some]) == [answer for _, answer in some]


def test_an_error_of_partitions_stands_in_every_partition_of_a_fetch() -> None:
    for version in range(4, 19):
        case = Case(ApiKey.FETCH, version, FULL, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        answer: Any = error_answer(case.request(), version, case.error, "injected")
        codes = [partition.error_code for topic in answer.responses for partition in topic.partitions]
        assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 4
        assert (answer.error_code, answer.session_id) == (ErrorCode.NONE, 0)
        encode(answer, version)


@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.INVALID_RECORD_STATE])
def test_an_error_of_partitions_stands_in_every_partition_of_a_share_fetch(error: ErrorCode) -> None:
    """One of records alone is said of those that are acknowledged."""
    of_partition = ErrorCode.NONE if error is ErrorCode.INVALID_RECORD_STATE else error
    for version in (1, 2):
        request: Any = Case(ApiKey.SHARE_FETCH, version, FULL, error).request()
        request.topics[0].partitions[0].acknowledgement_batches = []
        answer: Any = error_answer(request, version, error, "injected")
        partitions = [partition for topic in answer.responses for partition in topic.partitions]
        assert [each.error_code for each in partitions] == [of_partition] * 4
        assert [each.acknowledge_error_code for each in partitions] == [ErrorCode.NONE, *[error] * 3]
        assert {each.current_leader.leader_id for each in partitions} == {-1}
        assert answer.error_code == ErrorCode.NONE
        encode(answer, version)


def test_an_error_of_partitions_stands_in_every_partition_of_a_share_acknowledge() -> None:
    for version in (1, 2):
        case = Case(ApiKey.SHARE_ACKNOWLEDGE, version, FULL, ErrorCode.INVALID_RECORD_STATE)
        answer: Any = error_answer(case.request(), version, case.error, "injected")
        codes = [partition.error_code for topic in answer.responses for partition in topic.partitions]
        assert codes == [ErrorCode.INVALID_RECORD_STATE] * 4
        assert answer.error_code == ErrorCode.NONE
        encode(answer, version)


def test_an_error_of_a_share_session_that_names_nothing_new_is_of_the_whole_share_fetch() -> None:
    answer: Any = error_answer(ShareFetchRequest(), 2, ErrorCode.NOT_LEADER_OR_FOLLOWER, "injected")
    assert (answer.error_code, answer.responses) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, [])


def test_an_error_of_partitions_is_of_the_whole_fetch_that_names_none() -> None:
    answer: Any = error_answer(FetchRequest(session_id=5), 13, ErrorCode.NOT_LEADER_OR_FOLLOWER, "injected")
    assert (answer.error_code, answer.session_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 5)


def test_every_api_has_a_place_for_errors() -> None:
    assert all(has_place_for_errors(case.api_key) for case in cases())


def test_a_request_stays_as_it_is() -> None:
    for case in cases():
        request: Message = case.request()
        error_answer(request, case.version, case.error, "injected")
        assert request == case.request()
