"""What two recordings have in common and what not: placeholders, order, repeats, and topics by name or id."""

from __future__ import annotations

from pykbroker.comparing.answers import answer_differences
from pykbroker.comparing.field_differences import MISSING
from pykbroker.comparing.recording import CLOSED, MOST_BYTES, MOST_EXCHANGES, Exchange, Recording
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from pykbroker.protocol.messages.groups import HeartbeatResponse, JoinGroupResponse, JoinGroupResponseMember
from pykbroker.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pykbroker.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from pykbroker.protocol.messages.topics import CreatableTopicResult, CreateTopicsResponse
from pykbroker.protocol.schema import Message

KEYS = {
    MetadataResponse: ApiKey.METADATA,
    HeartbeatResponse: ApiKey.HEARTBEAT,
    JoinGroupResponse: ApiKey.JOIN_GROUP,
    CreateTopicsResponse: ApiKey.CREATE_TOPICS,
    FetchResponse: ApiKey.FETCH,
    ProduceResponse: ApiKey.PRODUCE,
}


def recording(*answers: Message, version: int = 9) -> Recording:
    made = Recording()
    for answer in answers:
        made.keep(Exchange("client", KEYS[type(answer)], version, answer), 1)
    return made


def found(left: Recording, right: Recording) -> list[tuple[str, str, object, object]]:
    return [(each.api, each.field.path, each.field.left, each.field.right) for each in answer_differences(left, right)]


def metadata(node_id: int, port: int, topic_id: bytes = bytes(range(16)), *, leader_epoch: int = 0) -> MetadataResponse:
    partition = MetadataResponsePartition(
        partition_index=0, leader_id=node_id, leader_epoch=leader_epoch, replica_nodes=[node_id], isr_nodes=[node_id]
    )
    return MetadataResponse(
        throttle_time_ms=port,
        brokers=[MetadataResponseBroker(node_id=node_id, host=f"host-{node_id}", port=port)],
        cluster_id=f"cluster-{node_id}",
        controller_id=node_id,
        topics=[MetadataResponseTopic(name="t", topic_id=topic_id, partitions=[partition])],
    )


def heartbeat(code: ErrorCode = ErrorCode.NONE) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code)


def created(name: str, code: ErrorCode = ErrorCode.NONE, message: str | None = None) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[CreatableTopicResult(name=name, error_code=code, error_message=message)])


def test_places_and_what_is_drawn_are_no_differences() -> None:
    assert found(recording(metadata(1, 9092)), recording(metadata(7, 1234, bytes(16)[:15] + b"\1"))) == []


def test_a_field_is_named_with_its_topic_and_partition() -> None:
    path = "topics[t].partitions[0].leader_epoch"
    assert found(recording(metadata(1, 1)), recording(metadata(1, 1, leader_epoch=5))) == [("Metadata", path, 0, 5)]


def test_the_same_value_has_the_same_placeholder_and_another_one_has_not() -> None:
    def joined(leader: str, member: str) -> JoinGroupResponse:
        members = [JoinGroupResponseMember(member_id=leader)]
        return JoinGroupResponse(generation_id=1, leader=leader, member_id=member, members=members)

    assert found(recording(joined("a", "a")), recording(joined("b", "b"))) == []
    assert found(recording(joined("a", "a")), recording(joined("b", "c"))) == [
        ("JoinGroup", "member_id", "<member 1>", "<member 2>")
    ]


def test_how_often_a_client_asks_is_no_difference() -> None:
    assert found(recording(heartbeat()), recording(*[heartbeat()] * 9)) == []
    again = heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert found(recording(heartbeat()), recording(heartbeat(), again, heartbeat())) == []


def test_an_error_that_one_broker_gives_besides_is_a_difference() -> None:
    unknown = heartbeat(ErrorCode.UNKNOWN_MEMBER_ID)
    assert found(recording(heartbeat()), recording(heartbeat(), unknown)) == [
        ("Heartbeat", "answer", MISSING, {"error_code": "UNKNOWN_MEMBER_ID"})
    ]


def test_answers_that_all_ask_to_try_again_are_compared() -> None:
    one, other = heartbeat(ErrorCode.NOT_COORDINATOR), heartbeat(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert found(recording(one), recording(other)) == [
        ("Heartbeat", "error_code", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE")
    ]


def test_the_order_counts_where_it_is_the_scripts() -> None:
    one, other = created("a"), created("b", ErrorCode.TOPIC_ALREADY_EXISTS)
    assert found(recording(one, other), recording(one, other, other)) == []
    assert len(found(recording(one, other), recording(other, one))) == 4
    assert (
        found(
            recording(heartbeat(), heartbeat(ErrorCode.FENCED_INSTANCE_ID)),
            recording(heartbeat(ErrorCode.FENCED_INSTANCE_ID), heartbeat()),
        )
        == []
    )


def test_texts_count_as_there_or_not_there() -> None:
    code = ErrorCode.INVALID_CONFIG
    assert found(recording(created("a", code, "one")), recording(created("a", code, "other"))) == []
    assert found(recording(created("a", code, "one")), recording(created("a", code))) == [
        ("CreateTopics", "topics[a].error_message", "<text>", None)
    ]


def test_versions_are_told_once_for_an_api() -> None:
    assert found(recording(heartbeat(), version=4), recording(heartbeat(), version=3)) == [
        ("Heartbeat", "version", "4", "3")
    ]


def test_a_topic_goes_by_its_name_also_where_an_answer_has_its_id() -> None:
    def fetched(**topic: object) -> FetchResponse:
        row = FetchableTopicResponse(partitions=[PartitionData(partition_index=0, high_watermark=7)], **topic)  # type: ignore[arg-type]
        return FetchResponse(responses=[row])

    topic_id = bytes(range(16))
    left = recording(fetched(topic_id=topic_id), metadata(1, 1, topic_id))
    assert found(left, recording(fetched(topic="t"), metadata(1, 1, topic_id))) == []
    other = found(left, recording(fetched(topic="u"), metadata(1, 1, topic_id)))
    assert [each[1] for each in other] == [
        "responses[t].partitions[0]",
        "responses[t]",
        "responses[u].partitions[0]",
        "responses[u]",
    ]


def test_what_a_client_asks_for_together_is_no_difference() -> None:
    def produced(*codes: tuple[int, ErrorCode]) -> ProduceResponse:
        rows = [PartitionProduceResponse(index=index, error_code=code) for index, code in codes]
        return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=rows)])

    good, bad = ErrorCode.NONE, ErrorCode.MESSAGE_TOO_LARGE
    left = recording(produced((0, good), (1, bad)), produced((0, good)))
    assert found(left, recording(produced((1, bad)), produced((0, good)))) == []
    path = "responses[t].partition_responses[1].error_code"
    assert found(left, recording(produced((1, good), (0, good)))) == [("Produce", path, "MESSAGE_TOO_LARGE", "NONE")]


def test_what_one_side_alone_asks_and_a_closed_connection_are_differences() -> None:
    closed = Recording()
    closed.keep(Exchange("client", ApiKey.HEARTBEAT, 9, None), 0)
    assert found(recording(heartbeat()), recording()) == [("Heartbeat", "requests", "asked", MISSING)]
    assert found(recording(heartbeat()), closed) == [("Heartbeat", "answer", {"error_code": "NONE"}, CLOSED)]


def test_a_recording_is_bounded() -> None:
    made = recording(*[heartbeat()] * (MOST_EXCHANGES + 3))
    assert (len(made.exchanges), made.left_out) == (MOST_EXCHANGES, 3)
    huge = Recording()
    huge.keep(Exchange("client", ApiKey.HEARTBEAT, 4, heartbeat()), MOST_BYTES + 1)
    assert (huge.exchanges, huge.left_out) == ([], 1)
