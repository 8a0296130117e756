from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from pykbroker.control.journal.decoding import (
    MOST_HEADERS,
    MOST_RECORDS,
    MOST_SHOWN_BYTES,
    entry_values,
    request_values,
    response_values,
)
from pykbroker.control.journal.recorded_request import RecordedRequest
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from pykbroker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from pykbroker.protocol.messages.share_groups import (
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchResponsePartitionData,
)
from pykbroker.protocol.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from pykbroker.protocol.records.batch import assemble_batch, encode_batch
from pykbroker.protocol.records.compression import Compression
from pykbroker.protocol.records.record import Record
from pykbroker.protocol.uuids import uuid_to_text

from .entries import batch, begin, end, new_journal, record

NO_NAMES: dict[bytes, str] = {}
TOPIC_ID = bytes(range(16))


def produce(*topics: tuple[str, list[bytes]]) -> ProduceRequest:
    return ProduceRequest(
        acks=-1,
        topic_data=[
            TopicProduceData(
                name=name,
                partition_data=[PartitionProduceData(index=index, records=data) for index, data in enumerate(batches)],
            )
            for name, batches in topics
        ],
    )


def values_of(request: ProduceRequest, version: int = 9) -> dict[str, Any]:
    return request_values(record(new_journal(), request, None, version), NO_NAMES)


def records_of(values: dict[str, Any], topic: int = 0, partition: int = 0) -> Any:
    return values["topic_data"][topic]["partition_data"][partition]["records"]


def test_a_line_has_everything_and_is_json() -> None:
    journal = new_journal()
    exchange = begin(journal, produce(("orders", [batch(b"one", b"\xff")])), 9)
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="orders", partition_responses=[PartitionProduceResponse(index=0, error_code=6, base_offset=-1)]
            )
        ]
    )
    end(journal, exchange, response)
    exchange.caused_by, exchange.interference = 5, ["delayed by 1 s"]
    values = json.loads(json.dumps(entry_values(exchange, NO_NAMES)))
    assert values | {"request": 0, "response": 0} == {
        "kind": "exchange",
        "number": 1,
        "node": 1,
        "api": "Produce",
        "version": 9,
        "client_id": "app",
        "principal": "User:ANONYMOUS",
        "connection": 1,
        "client": "127.0.0.1:40000",
        "listener": "PLAINTEXT",
        "correlation_id": 7,
        "received_ms": 1_700_000_000_000.0,
        "took_ms": 1.0,
        "outcome": "answered",
        "caused_by": 5,
        "interference": ["delayed by 1 s"],
        "request": 0,
        "response": 0,
    }
    (partition,) = values["response"]["responses"][0]["partition_responses"]
    assert (partition["error_code"], partition["error"]) == (6, "NOT_LEADER_OR_FOLLOWER")
    (found,) = records_of(values["request"])
    assert [each["value"] for each in found["records"]] == ["one", "base64:/w=="]
    assert found["compression"] == "none"


def test_only_fields_of_the_version_are_there() -> None:
    fields = set(request_values(record(new_journal(), FetchRequest(), None, 4), NO_NAMES))
    assert "session_id" not in fields
    assert "session_id" in request_values(record(new_journal(), FetchRequest(), None, 7), NO_NAMES)


@pytest.mark.parametrize("version", [9, 8])
def test_of_a_long_produce_request_is_told_what_is_kept(version: int) -> None:
    request = produce(
        ("first", [batch(b"small"), batch(b"x" * 30_000)]),
        ("second", [batch(b"y" * 100_000)]),
        ("third", [batch(b"z")]),
    )
    values = values_of(request, version)
    assert values["not_shown"].endswith("of which 65536 are kept")
    assert [topic["name"] for topic in values["topic_data"]] == ["first", "second"]
    assert records_of(values)[0]["records"][0]["value"] == "small"
    assert len(records_of(values, 0, 1)[0]["records"][0]["value"]) == 30_000
    (cut,) = records_of(values, 1)
    assert cut["not_shown"].startswith("1000")
    assert " bytes of records, of which 3" in cut["not_shown"]


@pytest.mark.parametrize("size", [*range(65_380, 65_620, 7), 200_000])
def test_wherever_a_frame_is_cut_nothing_is_made_up(size: int) -> None:
    request = produce(("first", [batch(b"x" * size)]), ("second", [batch(b"y")]))
    values = values_of(request)
    topics = values["topic_data"]
    assert topics[0]["name"] == "first"
    for topic, name in zip(topics, ("first", "second"), strict=False):
        assert topic.get("name", name) == name
        assert topic.get("partition_data", []) in ([], [{}]) or topic["partition_data"][0]["index"] == 0
    for found in records_of(values):
        assert "not_shown" in found or found["records"][0]["value"] == "x" * size


def test_of_a_long_answer_to_a_fetch_is_told_what_is_kept() -> None:
    response = FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic_id=TOPIC_ID,
                partitions=[
                    PartitionData(partition_index=0, records=batch(b"a")),
                    PartitionData(partition_index=1, records=batch(b"x" * 70_000)),
                    PartitionData(partition_index=2, records=batch(b"b")),
                ],
            )
        ]
    )
    values = response_values(record(new_journal(), FetchRequest(), response, 13), {TOPIC_ID: "orders"})
    assert values is not None
    (topic,) = values["responses"]
    assert topic["topic"] == "orders"
    assert [each["partition_index"] for each in topic["partitions"]] == [0, 1]


def test_of_a_long_answer_to_a_share_fetch_is_told_what_is_kept() -> None:
    partitions = [
        ShareFetchResponsePartitionData(partition_index=number, acknowledge_error_code=121, records=records)
        for number, records in enumerate([batch(b"a"), batch(b"x" * 70_000), batch(b"b")])
    ]
    response = ShareFetchResponse(
        responses=[ShareFetchableTopicResponse(topic_id=TOPIC_ID, partitions=partitions)],
    )
    exchange = record(new_journal(), ShareFetchRequest(member_id="m"), response, 2)
    values = response_values(exchange, {TOPIC_ID: "orders"})
    assert values is not None
    (topic,) = values["responses"]
    assert topic["topic"] == "orders"
    assert [each["partition_index"] for each in topic["partitions"]] == [0, 1]
    assert topic["partitions"][0]["records"][0]["records"][0]["value"] == "a"
    assert RecordedRequest.of(exchange, {TOPIC_ID: "orders"}).errors == {"INVALID_RECORD_STATE"}


def test_errors_of_partitions_are_named_whatever_their_field_is_called() -> None:
    results = [
        AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=47),
        AddPartitionsToTxnPartitionResult(partition_index=1, partition_error_code=0),
    ]
    topics = [AddPartitionsToTxnTopicResult(name="orders", results_by_partition=results)]
    added = AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)
    exchange = record(new_journal(), AddPartitionsToTxnRequest(), added, 3)
    assert RecordedRequest.of(exchange, NO_NAMES).errors == {"INVALID_PRODUCER_EPOCH"}

    partitions = [ShareFetchResponsePartitionData(partition_index=0, error_code=6, records=b"")]
    fetched = ShareFetchResponse(responses=[ShareFetchableTopicResponse(topic_id=TOPIC_ID, partitions=partitions)])
    exchange = record(new_journal(), ShareFetchRequest(member_id="m"), fetched, 2)
    values = response_values(exchange, {TOPIC_ID: "orders"})
    assert values is not None
    assert values["responses"][0]["partitions"][0]["error"] == "NOT_LEADER_OR_FOLLOWER"
    assert RecordedRequest.of(exchange, {TOPIC_ID: "orders"}).errors == {"NOT_LEADER_OR_FOLLOWER"}


def test_another_long_message_is_not_shown() -> None:
    response = MetadataResponse(topics=[MetadataResponseTopic(name=f"topic-{n}") for n in range(5_000)])
    values = response_values(record(new_journal(), MetadataRequest(), response, 9), NO_NAMES)
    assert values is not None
    assert set(values) == {"not_shown"}


def test_topics_that_go_by_ids_have_names() -> None:
    request = FetchRequest(topics=[FetchTopic(topic_id=TOPIC_ID, partitions=[FetchPartition(partition=1)])])
    exchange = record(new_journal(), request, None, 15)
    (named,) = request_values(exchange, {TOPIC_ID: "orders"})["topics"]
    assert (named["topic"], named["topic_id"]) == ("orders", uuid_to_text(TOPIC_ID))
    (unknown,) = request_values(exchange, NO_NAMES)["topics"]
    assert "topic" not in unknown
    produced = ProduceRequest(topic_data=[TopicProduceData(topic_id=TOPIC_ID)])
    exchange = record(new_journal(), produced, None, 13)
    assert request_values(exchange, {TOPIC_ID: "orders"})["topic_data"][0]["name"] == "orders"


@pytest.mark.parametrize("version", [99, 4], ids=["of the future", "later than what is offered"])
def test_a_client_of_a_later_version_gets_the_oldest_answer(version: int) -> None:
    journal = new_journal()
    exchange = begin(journal, ApiVersionsRequest(), 3)
    exchange.api_version = 0
    end(journal, exchange, ApiVersionsResponse(error_code=35))
    exchange.api_version = version
    values = response_values(exchange, NO_NAMES)
    assert values is not None
    assert values["error"] == "UNSUPPORTED_VERSION"


def test_records_are_counted_beyond_the_bound() -> None:
    many = encode_batch([Record(None, b"%d" % number, timestamp=1) for number in range(MOST_RECORDS + 500)])
    values = values_of(produce(("t", [many, batch(b"x")])))
    (found,) = records_of(values)
    assert len(found["records"]) == MOST_RECORDS
    assert found["not_shown"] == "500 more records"
    assert records_of(values, 0, 1) == [{"not_shown": "more batches"}]


def test_a_batch_that_unpacks_to_too_much_is_not_shown() -> None:
    bomb = assemble_batch(
        gzip.compress(bytes(30 << 20)),
        base_offset=0,
        partition_leader_epoch=0,
        attributes=1,
        last_offset_delta=0,
        base_timestamp=0,
        max_timestamp=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=1,
    )
    (found,) = records_of(values_of(produce(("t", [bomb]))))
    assert (found["compression"], found["records_count"]) == ("gzip", 1)
    assert "not_shown" in found


@pytest.mark.parametrize(
    "record_",
    [
        Record(None, bytes(250_000), timestamp=1),
        Record(None, b"", headers=[("", None)] * 60_000, timestamp=1),
        Record(None, b"", headers=[("\0" * 250_000, b"")], timestamp=1),
    ],
    ids=["values", "headers", "keys of headers"],
)
def test_of_batches_that_unpack_to_much_a_bounded_part_is_shown(record_: Record) -> None:
    many = encode_batch([record_] * 15, compression=Compression.GZIP)
    assert len(many) < 8_000
    exchange = record(new_journal(), produce(("t", [many] * 8)), None, 9)
    values = request_values(exchange, NO_NAMES)
    first, *others = [records_of(values, 0, index) for index in range(8)]
    assert len(json.dumps(values)) < 8 * MOST_SHOWN_BYTES
    (found,) = first
    assert found["not_shown"] == f"{15 - len(found['records'])} more records"
    assert others == [[{"not_shown": "more batches"}]] * 7


def test_headers_are_counted_beyond_the_bound() -> None:
    many = encode_batch([Record(None, b"x", headers=[("k", b"v")] * (MOST_HEADERS + 3), timestamp=1)])
    (found,) = records_of(values_of(produce(("t", [many]))))
    (shown,) = found["records"]
    assert (len(shown["headers"]), shown["not_shown"]) == (MOST_HEADERS, "3 more headers")


def test_records_that_are_damaged_are_not_shown() -> None:
    damaged = bytearray(batch(b"one"))
    damaged[61:] = b"\xff" * (len(damaged) - 61)
    (found,) = records_of(values_of(produce(("t", [bytes(damaged)]))))
    assert "not_shown" in found
    (found,) = records_of(values_of(produce(("t", [b"\x07" * 100]))))
    assert "not_shown" in found


def test_a_frame_that_is_damaged_is_not_shown() -> None:
    exchange = record(new_journal(), produce(("orders", [batch(b"x")])), None, 9)
    exchange.request = exchange.request[:30] + b"\xff" * (len(exchange.request) - 30)
    assert set(request_values(exchange, NO_NAMES)) == {"not_shown"}


@pytest.mark.parametrize("version", [-1, 99])
def test_a_version_that_nobody_knows_is_not_shown(version: int) -> None:
    exchange = record(new_journal(), FetchRequest(), FetchResponse(), 12)
    exchange.api_version = version
    assert set(request_values(exchange, NO_NAMES)) == {"not_shown"}
    assert set(response_values(exchange, NO_NAMES) or ()) == {"not_shown"}
