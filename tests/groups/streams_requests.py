"""StreamsGroupHeartbeats as members send them, and topologies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pykbroker.protocol.messages.streams_groups import (
    CopartitionGroup,
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTopology,
    TaskIds,
    TopicInfo,
)

JOINING, LEAVING = 0, -1
VERSION = 0
Tasks = Mapping[str, Sequence[int]]


def topic_info(name: str, partitions: int = 0, **configs: str) -> TopicInfo:
    return TopicInfo(
        name=name,
        partitions=partitions,
        topic_configs=[KeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


def subtopology(
    subtopology_id: str,
    *sources: str,
    sinks: Sequence[str] = (),
    repartition: Sequence[TopicInfo] = (),
    changelogs: Sequence[TopicInfo] = (),
    copartition: Sequence[tuple[Sequence[int], Sequence[int]]] = (),
) -> StreamsGroupHeartbeatRequestSubtopology:
    """copartition: for each group the indexes of its sources and of its repartition topics."""
    return StreamsGroupHeartbeatRequestSubtopology(
        subtopology_id=subtopology_id,
        source_topics=list(sources),
        repartition_sink_topics=list(sinks),
        repartition_source_topics=list(repartition),
        state_changelog_topics=list(changelogs),
        copartition_groups=[
            CopartitionGroup(source_topics=list(of_sources), repartition_source_topics=list(of_repartition))
            for of_sources, of_repartition in copartition
        ],
    )


def topology(*subtopologies: StreamsGroupHeartbeatRequestSubtopology, epoch: int = 0) -> Any:
    return StreamsGroupHeartbeatRequestTopology(epoch=epoch, subtopologies=list(subtopologies))


ONE_TASK_A_PARTITION = topology(subtopology("0", "events"))
"""Three tasks without state."""
WITH_STORE = topology(subtopology("0", "events", changelogs=[topic_info("store-changelog", cleanup_policy="compact")]))


def streams_beat(
    group: str,
    member_id: str,
    epoch: int = JOINING,
    *,
    topology: StreamsGroupHeartbeatRequestTopology | None = None,
    active: Tasks | None = None,
    standby: Tasks | None = None,
    process: str | None = None,
    rebalance: int = -1,
    endpoint: tuple[str, int] | None = None,
    endpoint_epoch: int = -1,
    tags: Mapping[str, str] | None = None,
    **fields: Any,
) -> StreamsGroupHeartbeatRequest:
    """active, standby: what the member reports; None where it reports nothing."""
    reports = active is not None or standby is not None
    return StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        endpoint_information_epoch=endpoint_epoch,
        rebalance_timeout_ms=rebalance,
        topology=topology,
        active_tasks=_tasks(active or {}) if reports else None,
        standby_tasks=_tasks(standby or {}) if reports else None,
        warmup_tasks=[] if reports else None,
        process_id=process,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=None if tags is None else [KeyValue(key=key, value=value) for key, value in tags.items()],
        **fields,
    )


def streams_joining(
    group: str,
    member_id: str,
    topology: StreamsGroupHeartbeatRequestTopology = ONE_TASK_A_PARTITION,
    **fields: Any,
) -> StreamsGroupHeartbeatRequest:
    """A member that joins says all of it; its process is named after it where nothing else is said."""
    process = fields.pop("process", f"process-of-{member_id}")
    return streams_beat(
        group,
        member_id,
        topology=topology,
        active={},
        process=process,
        rebalance=fields.pop("rebalance", 30_000),
        tags=fields.pop("tags", {}),
        **fields,
    )


def _tasks(tasks: Tasks) -> list[TaskIds]:
    return [TaskIds(subtopology_id=name, partitions=list(partitions)) for name, partitions in tasks.items()]
