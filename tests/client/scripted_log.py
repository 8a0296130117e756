"""A log of one partition that a fake broker serves: batches as a test writes them, and errors."""

from pykbroker.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.control import ControlRecordType, EndTransactionMarker, encode_end_transaction_batch
from pykbroker.protocol.topic_partition import TopicPartition
from tests.client.fake_broker import TOPIC_ID, FakeBroker

T0 = TopicPartition("t", 0)


def batch(base_offset: int, *values: bytes, producer_id: int = -1, transactional: bool = False) -> bytes:
    return encode_batch(
        [Record(None, value, timestamp=1_000) for value in values],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
        partition_leader_epoch=3,
        is_transactional=transactional,
    )


def marker(offset: int, producer_id: int, kind: ControlRecordType) -> bytes:
    encoded = encode_end_transaction_batch(
        EndTransactionMarker(kind, 0), producer_id=producer_id, producer_epoch=0, timestamp=1_000
    )
    return offset.to_bytes(8, "big") + encoded[8:]


class Log:
    """Partition 0 of `t`: batches by their base offset, and errors to be answered first."""

    def __init__(self, broker: FakeBroker, *batches: tuple[int, bytes], versions: tuple[int, int] = (4, 18)) -> None:
        self.errors: list[ErrorCode] = []
        self.aborted: list[AbortedTransaction] = []
        self.fetched_from: list[int] = []
        self.earliest, self.latest = 0, 0
        self._batches = batches
        broker.serve_topics(t=1)
        broker.serve(FetchRequest, self._fetch, versions)
        broker.serve(ListOffsetsRequest, self._list_offsets)

    def _fetch(self, request: FetchRequest, version: int) -> FetchResponse:
        [topic] = request.topics
        assert (topic.topic_id == TOPIC_ID) if version >= 13 else (topic.topic == "t")
        [wanted] = topic.partitions
        self.fetched_from.append(wanted.fetch_offset)
        data = PartitionData(partition_index=0, high_watermark=50)
        if self.errors:
            data.error_code = self.errors.pop(0)
        else:
            data.records = b"".join(encoded for end, encoded in self._batches if end > wanted.fetch_offset)
            data.aborted_transactions = self.aborted
        row = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[data])
        return FetchResponse(responses=[row])

    def _list_offsets(self, request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        place = request.topics[0].partitions[0].timestamp
        offset = {EARLIEST_TIMESTAMP: self.earliest, LATEST_TIMESTAMP: self.latest}.get(place, -1)
        row = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[row])])
