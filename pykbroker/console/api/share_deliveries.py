"""`GET /api/group/share/deliveries?id=&topic=&partition=`: records of a share partition behind its start, and how often
they were delivered, as the share coordinator keeps them (ReadShareGroupState, KIP-932).

A delivery of which nobody has said anything yet is known to the leader alone. The request is one of brokers among each
other: it takes the right of CLUSTER_ACTION.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.client.errors import BadInput, check
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.protocol.messages.share_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateRequestPartitionData,
    ReadShareGroupStateResponse,
    ReadStateData,
)
from pykbroker.sharing.coordinator_key import coordinator_key
from pykbroker.sharing.persister import NO_LEADER_EPOCH, SharePartitionKey

from .group import group_id

MOST_RUNS: Final = 500
_SHARE_COORDINATOR: Final = 2
_STATES: Final = {0: "available", 2: "acknowledged", 4: "archived"}
_INT_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class DeliveredRun:
    """Consecutive records in one state. deliveries: how often each was delivered."""

    first: int
    last: int
    state: str
    deliveries: int


@dataclass(frozen=True, slots=True)
class Deliveries:
    """The persisted state of a share partition. start: None where nobody has read there yet. run_count: of all."""

    start: int | None
    runs: Sequence[DeliveredRun]
    run_count: int


async def deliveries(asking: Asking, given: Arguments) -> Deliveries:
    """Raises BadInput, KafkaError, ClientError."""
    name, topic = group_id(given), given.text("topic")
    partition = given.whole("partition", least=0, most=_INT_MAX)
    known = (await asking.cluster.refresh([topic])).topics.get(topic)
    if known is None or partition not in known.partitions:
        raise BadInput(f"there is no partition {partition} of '{topic}'")

    def verify(response: ReadShareGroupStateResponse) -> None:
        for each in response.results:
            for row in each.partitions:
                check(row.error_code, row.error_message)

    asked = ReadShareGroupStateRequestPartitionData(partition=partition, leader_epoch=NO_LEADER_EPOCH)
    response = await asking.cluster.coordinator_request(
        coordinator_key(SharePartitionKey(name, known.topic_id, partition)),
        ReadShareGroupStateRequest(group_id=name, topics=[ReadStateData(topic_id=known.topic_id, partitions=[asked])]),
        ReadShareGroupStateResponse,
        key_type=_SHARE_COORDINATOR,
        verify=verify,
    )
    (row,) = (row for each in response.results for row in each.partitions)
    runs = [
        DeliveredRun(
            first=batch.first_offset,
            last=batch.last_offset,
            state=_STATES.get(batch.delivery_state, str(batch.delivery_state)),
            deliveries=batch.delivery_count,
        )
        for batch in row.state_batches[:MOST_RUNS]
    ]
    return Deliveries(row.start_offset if row.start_offset >= 0 else None, runs, len(row.state_batches))
