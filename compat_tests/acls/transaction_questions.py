"""Questions about transactions and producer ids."""

from __future__ import annotations

from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.transaction_admin import DescribeTransactionsRequest, ListTransactionsRequest
from pykbroker.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

from .scene import GROUP, MISSING, TOPIC, TRANSACTIONAL_ID, Catalogue, Scene

NOBODY = 424242
"""A producer id that was never given out."""

catalogue = Catalogue()
asks = catalogue.asks


@asks("find the coordinator of transactions", 1, 3)
def find_coordinator(scene: Scene) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key=TRANSACTIONAL_ID, key_type=1)


@asks("find the coordinators of transactions", 4, 6)
def find_coordinators(scene: Scene) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=1, coordinator_keys=[TRANSACTIONAL_ID, MISSING])


@asks("a producer id")
def init_producer_id(scene: Scene) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)


@asks("a producer id for transactions", 0, 3, 5)
def init_transactions(scene: Scene) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=60_000)


def _topics() -> list[AddPartitionsToTxnTopic]:
    return [AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in (TOPIC, MISSING)]


@asks("add partitions", 0, 3)
def add_partitions(scene: Scene) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TRANSACTIONAL_ID,
        v3_and_below_producer_id=NOBODY,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=_topics(),
    )


@asks("add partitions that are there", 0, 3)
def add_existing_partitions(scene: Scene) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TRANSACTIONAL_ID,
        v3_and_below_producer_id=NOBODY,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=_topics()[:1],
    )


@asks("add partitions as a broker", 4, 5)
def add_partitions_as_broker(scene: Scene) -> AddPartitionsToTxnRequest:
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=TRANSACTIONAL_ID, producer_id=NOBODY, producer_epoch=0, verify_only=True, topics=_topics()
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


@asks("add offsets")
def add_offsets(scene: Scene) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=TRANSACTIONAL_ID, producer_id=NOBODY, producer_epoch=0, group_id=GROUP
    )


@asks("end a transaction")
def end_txn(scene: Scene) -> EndTxnRequest:
    return EndTxnRequest(transactional_id=TRANSACTIONAL_ID, producer_id=NOBODY, producer_epoch=0, committed=True)


@asks("commit offsets in a transaction", 0, 2, 3, 5)
def txn_offset_commit(scene: Scene) -> TxnOffsetCommitRequest:
    topics = [
        TxnOffsetCommitRequestTopic(
            name=name,
            partitions=[TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")],
        )
        for name in (TOPIC, MISSING)
    ]
    return TxnOffsetCommitRequest(
        transactional_id=TRANSACTIONAL_ID, group_id=GROUP, producer_id=NOBODY, producer_epoch=0, topics=topics
    )


@asks("write markers")
def write_txn_markers(scene: Scene) -> WriteTxnMarkersRequest:
    marker = WritableTxnMarker(
        producer_id=NOBODY,
        producer_epoch=0,
        transaction_result=True,
        topics=[WritableTxnMarkerTopic(name=MISSING, partition_indexes=[0, 1])],
        coordinator_epoch=0,
    )
    return WriteTxnMarkersRequest(markers=[marker])


@asks("describe transactions")
def describe_transactions(scene: Scene) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest(transactional_ids=[MISSING])


@asks("list transactions")
def list_transactions(scene: Scene) -> ListTransactionsRequest:
    return ListTransactionsRequest()
