"""Requests as they are counted by API: their times and the errors of their answers."""

from __future__ import annotations

import pytest

from pykbroker.protocol.api_keys import ApiKey, response_type
from pykbroker.protocol.messages.groups import HeartbeatResponse
from pykbroker.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from pykbroker.server.network.request_metrics import RequestMetrics, collect_errors

PRODUCE = int(ApiKey.PRODUCE)


def answer(*codes: int) -> ProduceResponse:
    partitions = [PartitionProduceResponse(index=index, error_code=code) for index, code in enumerate(codes)]
    return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=partitions)])


def test_errors_are_counted_wherever_an_answer_has_them() -> None:
    requests = RequestMetrics()
    requests.note_errors(PRODUCE, answer(0, 6, 6, 7))
    requests.note_errors(PRODUCE, answer(0))
    requests.note_errors(int(ApiKey.HEARTBEAT), HeartbeatResponse(error_code=25))
    assert requests.of(PRODUCE).errors == {6: 2, 7: 1}
    assert requests.of(int(ApiKey.HEARTBEAT)).errors == {25: 1}


def test_of_a_large_answer_the_first_entries_count() -> None:
    requests = RequestMetrics()
    requests.note_errors(PRODUCE, answer(*[6] * 100_000))
    assert requests.of(PRODUCE).errors == {6: 100}


def test_entries_that_are_encoded_already_are_passed_over() -> None:
    response = answer(6)
    response.responses = object()  # type: ignore[assignment]  # as `EncodedStructs` stands there
    codes: list[int] = []
    collect_errors(ProduceResponse)(response, codes)
    assert codes == []


@pytest.mark.parametrize("api_key", list(ApiKey), ids=lambda each: each.name)
def test_an_answer_of_each_api_can_be_looked_through(api_key: ApiKey) -> None:
    response, codes = response_type(int(api_key))(), list[int]()
    collect_errors(type(response))(response, codes)
    assert codes == []


def test_versions_that_no_api_has_are_counted_together() -> None:
    requests = RequestMetrics()
    for version in range(-32768, 32768):
        requests.answered(int(ApiKey.API_VERSIONS), version, 1, handled_ns=1, sent_ns=0)
    versions = requests.of(int(ApiKey.API_VERSIONS)).versions
    assert sum(versions.values()) == 65536
    assert len(versions) < 100
    assert versions[4] == 1


def test_the_parts_of_a_requests_time_are_the_whole() -> None:
    requests = RequestMetrics()
    requests.answered(
        PRODUCE, 13, 100, 6_000_000, 2_000_000, waited_ns=3_000_000, queued_ns=1_000_000, held_ns=500_000, throttle_ms=7
    )
    requests.answered(PRODUCE, 13, 50, 1_000_000, 0)
    requests.answered(PRODUCE, 12, 50, 100_000, 90_000)
    produce = requests.of(PRODUCE)
    assert (produce.versions, produce.request_bytes) == ({13: 2, 12: 1}, 200)
    parts = (produce.request_queue, produce.local, produce.remote, produce.response_queue, produce.send)
    assert [each.sum_ns for each in parts] == [1_000_000, 3_100_000, 3_000_000, 500_000, 1_590_000]
    assert produce.total.sum_ns == 9_190_000 == sum(each.sum_ns for each in parts)
    assert produce.throttle.sum_ns == 7_000_000
    assert sum(produce.total.counts) == 3
    assert all(sum(each.among(3).counts) == 3 for each in parts)
    assert produce.send.among(3).counts[0] == 2, "two were shorter than the shortest bound"
