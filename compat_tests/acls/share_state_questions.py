"""Questions about the state of share partitions, which brokers ask each other (KIP-932)."""

from __future__ import annotations

from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.share_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateRequestPartitionData,
    DeleteStateData,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateRequestPartitionData,
    InitializeStateData,
    ReadShareGroupStateRequest,
    ReadShareGroupStateRequestPartitionData,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryRequestPartitionData,
    ReadStateData,
    ReadStateSummaryData,
    WriteShareGroupStateRequest,
    WriteShareGroupStateRequestPartitionData,
    WriteStateData,
)

from .scene import GROUP, Catalogue, Scene

NO_TOPIC = bytes(range(16))
_NO_TOPIC_TEXT = "AAECAwQFBgcICQoLDA0ODw"

catalogue = Catalogue()
asks = catalogue.asks


@asks("initialize the state of share partitions")
def initialize(scene: Scene) -> InitializeShareGroupStateRequest:
    partitions = [
        InitializeShareGroupStateRequestPartitionData(partition=index, state_epoch=1, start_offset=0)
        for index in (0, 1)
    ]
    return InitializeShareGroupStateRequest(
        group_id=GROUP, topics=[InitializeStateData(topic_id=NO_TOPIC, partitions=partitions)]
    )


@asks("read the state of share partitions")
def read(scene: Scene) -> ReadShareGroupStateRequest:
    partitions = [ReadShareGroupStateRequestPartitionData(partition=index, leader_epoch=1) for index in (0, 1)]
    return ReadShareGroupStateRequest(group_id=GROUP, topics=[ReadStateData(topic_id=NO_TOPIC, partitions=partitions)])


@asks("write the state of share partitions", 0, 1)
def write(scene: Scene) -> WriteShareGroupStateRequest:
    partitions = [
        WriteShareGroupStateRequestPartitionData(partition=index, state_epoch=1, leader_epoch=1, start_offset=0)
        for index in (0, 1)
    ]
    return WriteShareGroupStateRequest(
        group_id=GROUP, topics=[WriteStateData(topic_id=NO_TOPIC, partitions=partitions)]
    )


@asks("delete the state of share partitions")
def delete(scene: Scene) -> DeleteShareGroupStateRequest:
    partitions = [DeleteShareGroupStateRequestPartitionData(partition=index) for index in (0, 1)]
    return DeleteShareGroupStateRequest(
        group_id=GROUP, topics=[DeleteStateData(topic_id=NO_TOPIC, partitions=partitions)]
    )


@asks("read summaries of the state of share partitions", 0, 1)
def read_summary(scene: Scene) -> ReadShareGroupStateSummaryRequest:
    partitions = [ReadShareGroupStateSummaryRequestPartitionData(partition=index, leader_epoch=1) for index in (0, 1)]
    return ReadShareGroupStateSummaryRequest(
        group_id=GROUP, topics=[ReadStateSummaryData(topic_id=NO_TOPIC, partitions=partitions)]
    )


@asks("the state of no group")
def no_group(scene: Scene) -> ReadShareGroupStateRequest:
    partitions = [ReadShareGroupStateRequestPartitionData(partition=0, leader_epoch=1)]
    return ReadShareGroupStateRequest(group_id="", topics=[ReadStateData(topic_id=NO_TOPIC, partitions=partitions)])


@asks("find the coordinator of what is no share partition", 6)
def find_no_coordinator(scene: Scene) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=2, coordinator_keys=[GROUP, f"{GROUP}:{_NO_TOPIC_TEXT}", f"{GROUP}:x:0"])


@asks("find the coordinator of a share partition, as it was before there were any", 5)
def find_early_coordinator(scene: Scene) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=2, coordinator_keys=[f"{GROUP}:{_NO_TOPIC_TEXT}:0"])
