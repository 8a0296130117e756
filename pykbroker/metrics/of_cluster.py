"""The metrics of the metadata quorum, and of the cluster as controllers tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykbroker.metadata.partition_state import NO_LEADER
from pykbroker.raft.states import Role
from pykbroker.server.runtime.turns import Turn, portions

from .readings import Readings

if TYPE_CHECKING:
    from pykbroker.server.node.broker import ClusterNode
    from pykbroker.server.node.node import Node

_STARTING, _RUNNING, _SHUTTING_DOWN = 1, 3, 6
_STATES = {
    Role.UNATTACHED: "unattached",
    Role.PROSPECTIVE: "prospective",
    Role.CANDIDATE: "candidate",
    Role.LEADER: "leader",
    Role.FOLLOWER: "follower",
    Role.RESIGNED: "resigned",
}


def read_quorum(node: ClusterNode, readings: Readings) -> None:
    raft, add, name = node.raft, readings.add, "kafka_server_raft_metrics_{}"
    add(name.format("current_leader"), -1 if raft.leader_id is None else raft.leader_id)
    add(name.format("current_epoch"), raft.epoch)
    add(name.format("high_watermark"), raft.high_watermark if raft.knows_high_watermark else -1)
    add(name.format("log_end_offset"), raft.log_end_offset)
    add(name.format("current_state"), 1, _STATES[raft.role])
    applied = node.metadata.applied_offset - 1
    add("kafka_server_broker_metadata_metrics_last_applied_record_offset", applied)
    errors = node.metadata.errors
    add("kafka_server_broker_metadata_metrics_metadata_load_error_count", errors.load)
    add("kafka_server_broker_metadata_metrics_metadata_apply_error_count", errors.apply)
    if node.controller is not None:
        add("kafka_controller_kafkacontroller_metadataerrorcount", errors.load + errors.apply)


def read_state(node: Node, readings: Readings) -> None:
    state = _SHUTTING_DOWN if node.is_stopping else _RUNNING if node.serves else _STARTING
    readings.add("kafka_server_kafkaserver_brokerstate", state)


async def read_controller(node: ClusterNode, readings: Readings, turn: Turn) -> None:
    """Read the cluster's image in turns: it may change meanwhile, and nothing is counted twice for that."""
    if node.controller is None:
        return
    add, name = readings.add, "kafka_controller_kafkacontroller_{}"
    brokers = list(node.image.brokers.values())
    fenced = sum(each.fenced for each in brokers)
    topics = list(node.image.topics.values())
    partitions = offline = imbalanced = 0
    for topic in topics:
        for portion in portions(list(topic.partitions.values())):
            partitions += len(portion)
            for each in portion:
                offline += each.leader == NO_LEADER
                imbalanced += each.leader != each.replicas[0]
            await turn.took(1 + len(portion) // 5)
    add(name.format("activecontrollercount"), int(node.controller.is_active))
    add(name.format("activebrokercount"), len(brokers) - fenced)
    add(name.format("fencedbrokercount"), fenced)
    add(name.format("globaltopiccount"), len(topics))
    add(name.format("globalpartitioncount"), partitions)
    add(name.format("offlinepartitionscount"), offline)
    add(name.format("preferredreplicaimbalancecount"), imbalanced)
