"""What a follower of Apache Kafka 4.3.1 sends, recorded between two of its brokers, is what ours sends, byte by byte.

There the follower (broker 2) was killed when it had three records of `apples`, whose leader then got one more; it came
back, caught up, and the topic `pears` was deleted while nothing else happened.
"""

from __future__ import annotations

from random import Random

from pykbroker.protocol.framing import decode_request_header, encode_request
from pykbroker.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.replication.fetch_settings import FetchSettings
from pykbroker.replication.follower import Follower
from pykbroker.replication.partition import Partition
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.log.log import Log, LogConfig

from .brokers import Proposals
from .replicas import NOW_MS, VERSION, State

APPLES, PEARS = bytes.fromhex("01659bd901824724a6303c99592793d2"), bytes.fromhex("b451cbebd76b47d5ac2aac2b0f21d0b9")
SESSION_ID = 474631388
BROKER_EPOCH = 84

EVERYTHING = bytes.fromhex(
    "0001001200000000001262726f6b65722d322d666574636865722d3000000001f40000000100a0000000000000000000000003b451cbebd7"
    "6b47d5ac2aac2b0f21d0b90400000001000000000000000000000000ffffffff000000000000000000100000000000000200000001000000"
    "0000000000ffffffff0000000000000000001000000000000000000000010000000000000000ffffffff0000000000000000001000000000"
    "01659bd901824724a6303c99592793d20200000000000000010000000000000003000000000000000000000000001000000000010101010d"
    "00000002000000000000005400"
)
AFTER_RECORDS = bytes.fromhex(
    "0001001200000001001262726f6b65722d322d666574636865722d3000000001f40000000100a00000001c4a4cdc000000010201659bd90182"
    "4724a6303c99592793d20200000000000000010000000000000004000000010000000000000000001000000000010101010d00000002000000"
    "000000005400"
)
NOTHING_NEW = bytes.fromhex(
    "0001001200000002001262726f6b65722d322d666574636865722d3000000001f40000000100a00000001c4a4cdc000000020101010101"
    "0d00000002000000000000005400"
)
PEARS_GONE = bytes.fromhex(
    "000100120000000b001262726f6b65722d322d666574636865722d3000000001f40000000100a00000001c4a4cdc0000000b0102b451cbebd7"
    "6b47d5ac2aac2b0f21d0b9030000000100000000000101010d00000002000000000000005400"
)


class KafkasPlace:
    """Our follower, in the place of Kafka's."""

    def __init__(self) -> None:
        self.follower = Follower(2, FetchSettings(), lambda _, failure: None)
        self.pears = [
            self.partition("pears", PEARS, index, leader_epoch) for index, leader_epoch in ((1, 0), (2, 1), (0, 1))
        ]
        self.apples = self.partition("apples", APPLES, 0, 1, records=3)
        for each in (*self.pears, self.apples):
            self.follower.follow(each)

    def partition(self, topic: str, topic_id: bytes, index: int, leader_epoch: int, records: int = 0) -> Partition:
        log = Log.open(SimulatedDisk(Random(1)), f"/{topic}-{index}", LogConfig(), now_ms=NOW_MS)
        for offset in range(records):
            log.append_as_follower(batch(offset, 0))
        partition = Partition(topic, topic_id, index, log, 2, Proposals().rules())
        partition.apply_state(State(1, leader_epoch, leader_epoch, (1, 2), (1, 2)), 0)
        return partition

    def request(self, correlation_id: int) -> bytes:
        """Without its size."""
        request = self.follower.next_request(0, BROKER_EPOCH)
        assert isinstance(request, FetchRequest)
        return encode_request(request, VERSION, correlation_id, "broker-2-fetcher-0")[4:]

    def answered(self, *partitions: tuple[bytes, PartitionData]) -> None:
        topics = [FetchableTopicResponse(topic_id=topic_id, partitions=[data]) for topic_id, data in partitions]
        self.follower.answered(FetchResponse(session_id=SESSION_ID, responses=topics), 0, NOW_MS)


def batch(offset: int, leader_epoch: int) -> bytes:
    records = [Record(key=None, value=b"a", timestamp=NOW_MS)]
    return encode_batch(records, base_offset=offset, partition_leader_epoch=leader_epoch)


def test_the_requests_of_a_follower_are_kafkas() -> None:
    ours = KafkasPlace()
    assert ours.request(0) == EVERYTHING
    data = PartitionData(partition_index=0, high_watermark=4, log_start_offset=0, records=batch(3, 1))
    ours.answered((APPLES, data))
    assert ours.request(1) == AFTER_RECORDS
    ours.answered()
    assert ours.request(2) == NOTHING_NEW
    for correlation_id in range(3, 11):
        ours.answered()
        ours.request(correlation_id)
    ours.answered()
    for each in (ours.pears[0], ours.pears[2]):
        ours.follower.unfollow(each)
    gone = ours.pears[1]
    assert ours.request(11) == PEARS_GONE
    assert gone in ours.follower


def test_a_fetch_of_kafkas_follower_has_the_header_of_a_broker() -> None:
    header, _ = decode_request_header(EVERYTHING)
    assert (header.api_key, header.api_version, header.client_id) == (1, 18, "broker-2-fetcher-0")
