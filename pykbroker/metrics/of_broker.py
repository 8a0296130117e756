"""The metrics of a broker's replicas, topics, logs and sessions: counts and sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykbroker.metric_labels import label
from pykbroker.replication.traffic import TopicTraffic
from pykbroker.server.runtime.turns import Turn, portions
from pykbroker.web.room import RoomLook, log_directories

from .readings import Readings

if TYPE_CHECKING:
    from pykbroker.replication.partition import Partition
    from pykbroker.server.node.broker_role import BrokerRole
    from pykbroker.server.node.composition.parts import NodeParts

_COUNTERS = {
    "messagesin": "messages_in",
    "bytesin": "bytes_in",
    "bytesout": "bytes_out",
    "totalproducerequests": "produce_requests",
    "failedproducerequests": "failed_produce",
    "failedfetchrequests": "failed_fetch",
    "replicationbytesin": "replication_bytes_in",
    "replicationbytesout": "replication_bytes_out",
}
_STEPS_OF_TOPIC = 6


async def read_broker(role: BrokerRole, readings: Readings, turn: Turn) -> None:
    """Read what needs no list of partitions."""
    replicas = role.broker.partitions
    add = readings.add
    add("kafka_server_replicamanager_isrshrinks", replicas.isr_changes.shrinks)
    add("kafka_server_replicamanager_isrexpands", replicas.isr_changes.expands)
    add("kafka_server_replicamanager_offlinereplicacount", replicas.offline_count)
    offline = sum(each is None for each in replicas.log_directories().values())
    add("kafka_log_logmanager_offlinelogdirectorycount", offline)
    waiting = role.broker.groups.waiting_members
    add("pykbroker_memory_bytes", waiting.held_bytes, "waiting members", "client")
    add("pykbroker_memory_limit_bytes", waiting.limit_bytes, "waiting members", "client")
    add("kafka_server_fetchsessioncache_numincrementalfetchsessions", len(role.broker.fetch_sessions))
    readings.add_histogram("kafka_log_logflushstats_logflushrateandtimems", replicas.flush_times)
    await turn.took()


async def read_directories(parts: NodeParts, look: RoomLook, readings: Readings) -> None:
    """Read which log directories can be used and written to. look: asks their volumes."""
    directories = log_directories(parts)
    rooms = await look.rooms(directories)
    for each in directories:
        name = label(each.path)
        readings.add("kafka_log_logmanager_logdirectoryoffline", each.space is None, name)
        room = rooms.get(each.path)
        if room is not None:
            readings.add("pykbroker_log_directory_full", bool(room.want), name)
            if room.usable_bytes is not None:
                readings.add("pykbroker_log_directory_usable_bytes", room.usable_bytes, name)


async def read_topics(role: BrokerRole, readings: Readings, turn: Turn, *, most: int) -> None:
    """Read the traffic of each topic, or the sum of all where there are more than `most`."""
    by_topic = role.broker.partitions.traffic
    traffic = list(by_topic.topics.items())
    if len(traffic) > most:
        readings.add("pykbroker_left_out", len(traffic), "topics")
        traffic = [("", await _sum([by_topic.gone, *(each for _, each in traffic)], turn))]
    columns = [
        (readings.of(f"kafka_server_brokertopicmetrics_{name}"), attribute) for name, attribute in _COUNTERS.items()
    ]
    for topic, each in traffic:
        for column, attribute in columns:
            column.append(((topic,), getattr(each, attribute)))
        await turn.took(_STEPS_OF_TOPIC)


async def _sum(traffic: list[TopicTraffic], turn: Turn) -> TopicTraffic:
    total = TopicTraffic()
    for each in traffic:
        total.add(each)
        await turn.took(_STEPS_OF_TOPIC)
    return total


async def read_replicas(partitions: list[Partition], readings: Readings, turn: Turn) -> None:
    """Count partitions by what is wrong with them."""
    led = under_replicated = under_min_isr = at_min_isr = reassigning = 0
    for portion in portions(partitions):
        for each in portion:
            if not each.is_leader:
                continue
            led += 1
            under_replicated += each.is_under_replicated
            under_min_isr += each.is_under_min_isr
            at_min_isr += each.is_at_min_isr
            reassigning += bool(each.adding_replicas)
        await turn.took(len(portion))
    add, name = readings.add, "kafka_server_replicamanager_{}"
    add(name.format("partitioncount"), len(partitions))
    add(name.format("leadercount"), led)
    add(name.format("underreplicatedpartitions"), under_replicated)
    add(name.format("underminisrpartitioncount"), under_min_isr)
    add(name.format("atminisrpartitioncount"), at_min_isr)
    add(name.format("reassigningpartitions"), reassigning)
