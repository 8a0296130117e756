"""Fetch, ListOffsets and groups with arguments that make no sense: rows 64 to 69."""

from typing import Any

from compat_tests.cases import SILENT, code
from compat_tests.wire import SILENCE_S, Wire
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from pykbroker.protocol.messages.groups import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

from .record_cases import batch
from .scene import Case, Scene

LATEST = -1


def fetch_answer(partition: int = 0, offset: int = 0, version: int = 11, **of_request: Any) -> Any:
    """The error of the whole answer where there is one, else the partition's."""

    def run(scene: Scene) -> str:
        topic = scene.topic()
        assert scene.produce(batch(), topic) == "NONE"
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1024)
        topics = [FetchTopic(topic=topic, partitions=[wanted])]
        request = FetchRequest(max_wait_ms=100, min_bytes=1, topics=topics, **of_request)
        with scene.wire() as wire:
            answer = wire.call(request, version)
        assert isinstance(answer, FetchResponse)
        return code(answer.error_code or answer.responses[0].partitions[0].error_code)

    return run


def list_offsets_twice(scene: Scene) -> list[str]:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    topics = [ListOffsetsTopic(name=scene.topic(), partitions=[wanted, wanted])]
    with scene.wire() as wire:
        answer = wire.call(ListOffsetsRequest(replica_id=-1, topics=topics), 7)
    assert isinstance(answer, ListOffsetsResponse)
    return sorted({code(each.error_code) for topic in answer.topics for each in topic.partitions})


def join(wire: Wire, version: int = 5, **fields: Any) -> JoinGroupResponse:
    request: dict[str, Any] = {
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"\x00")],
    }
    answer = wire.call(JoinGroupRequest(**(request | fields)), version)
    assert isinstance(answer, JoinGroupResponse)
    return answer


def join_answer(**fields: Any) -> Any:
    def run(scene: Scene) -> str:
        with scene.wire() as wire:
            return code(join(wire, **({"group_id": scene.group()} | fields)).error_code)

    return run


def join_with_nonsense(scene: Scene) -> Any:
    """A subscription with a count that cannot be: Kafka never answers, and could not load such a group either."""
    with scene.wire() as wire:
        request = JoinGroupRequest(
            group_id=scene.group(),
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"metadata")],
        )
        answer = wire.call(request, 3, deadline_s=SILENCE_S)
    assert isinstance(answer, JoinGroupResponse)
    return code(answer.error_code)


def commit_answer(offset: int = 1, metadata: str = "") -> Any:
    """A commit by nobody in particular (generation -1), as tools and assigning consumers do it."""

    def run(scene: Scene) -> str:
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=metadata
        )
        topics = [OffsetCommitRequestTopic(name=scene.topic(), partitions=[partition])]
        with scene.wire() as wire:
            answer = wire.call(OffsetCommitRequest(group_id=scene.group(), topics=topics), 8)
        assert isinstance(answer, OffsetCommitResponse)
        return code(answer.topics[0].partitions[0].error_code)

    return run


CASES = [
    Case("64", "fetch at offset -5", fetch_answer(offset=-5), "OFFSET_OUT_OF_RANGE"),
    Case("64", "fetch beyond the end", fetch_answer(offset=2), "OFFSET_OUT_OF_RANGE"),
    Case("64", "fetch at the end", fetch_answer(offset=1), "NONE"),
    Case("64", "fetch partition 77", fetch_answer(partition=77), "UNKNOWN_TOPIC_OR_PARTITION"),
    Case("65", "fetch -1 bytes", fetch_answer(max_bytes=-1), "UNKNOWN_SERVER_ERROR", "INVALID_REQUEST"),
    Case("65", "isolation level 9", fetch_answer(isolation_level=9), "UNKNOWN_SERVER_ERROR", "INVALID_REQUEST"),
    Case("66", "fetch as a replica that there is not", fetch_answer(replica_id=5), "NOT_LEADER_OR_FOLLOWER"),
    Case("67", "a partition twice in ListOffsets", list_offsets_twice, ["INVALID_REQUEST"]),
    Case("68", "join a group without a name", join_answer(group_id=""), "INVALID_GROUP_ID"),
    Case("68", "join with a session of 0", join_answer(session_timeout_ms=0), "INVALID_SESSION_TIMEOUT"),
    Case("68", "join with a session of 10**9", join_answer(session_timeout_ms=10**9), "INVALID_SESSION_TIMEOUT"),
    Case("68", "join without protocols", join_answer(protocols=[]), "INCONSISTENT_GROUP_PROTOCOL"),
    Case("68", "join as an unknown member", join_answer(member_id="nobody"), "UNKNOWN_MEMBER_ID"),
    Case("68", "join for the first time", join_answer(), "MEMBER_ID_REQUIRED"),
    Case("68", "join for the first time, as before KIP-394", join_answer(version=3), "NONE"),
    Case("68", "join with a subscription of nonsense", join_with_nonsense, SILENT, "INCONSISTENT_GROUP_PROTOCOL"),
    Case("69", "commit with 5 kB of metadata", commit_answer(metadata="m" * 5000), "OFFSET_METADATA_TOO_LARGE"),
    Case("69", "commit with 4 kB of metadata", commit_answer(metadata="m" * 4096), "NONE"),
    Case("69", "commit offset -2, which means the earliest", commit_answer(offset=-2), "NONE"),
    Case("69", "commit offset -7", commit_answer(offset=-7), "NONE"),
]
