"""Stories of streams groups (KIP-1071)."""

from __future__ import annotations

from typing import Any, Final

from pykbroker.protocol.api_keys import ApiKey

from .sequences import Step, Tree
from .share_stories import share_beat
from .stories import (
    A_GROUP,
    DELETING_GROUP,
    DESCRIBING_CONSUMERS,
    DESCRIBING_GROUP,
    LISTING_GROUPS,
    acl,
    altering,
    committing,
    consumer_beat,
    creating,
    deleting,
    describing,
    fetching_offsets,
    joining,
    metadata,
    step,
)


def subtopology(number: str = "0", *sources: str, **more: Any) -> Tree:
    tree: Tree = {
        "subtopology_id": number,
        "source_topics": list(sources) or ["~t1"],
        "source_topic_regex": [],
        "state_changelog_topics": [],
        "repartition_sink_topics": [],
        "repartition_source_topics": [],
        "copartition_groups": [],
    }
    return tree | more


def internal(name: str, partitions: int = 0, **configs: str) -> Tree:
    rows = [{"key": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {"name": name, "partitions": partitions, "replication_factor": 0, "topic_configs": rows}


def topology(*subtopologies: Tree, epoch: int = 0) -> Tree:
    return {"epoch": epoch, "subtopologies": list(subtopologies) or [subtopology()]}


def streams_beat(member: Any, epoch: int, of: Tree | None = None, **more: Any) -> Step:
    joins = epoch == 0
    tree: Tree = {
        "group_id": "~g1",
        "member_id": member,
        "member_epoch": epoch,
        "endpoint_information_epoch": 0,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": 30_000 if joins else -1,
        "topology": (of or topology()) if joins else of,
        "active_tasks": [] if joins else None,
        "standby_tasks": [] if joins else None,
        "warmup_tasks": [] if joins else None,
        "process_id": f"{member}-process" if joins else None,
        "user_endpoint": None,
        "client_tags": [] if joins else None,
        "task_offsets": None,
        "task_end_offsets": None,
        "shutdown_application": False,
    }
    return step(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, **(tree | more))


def tasks(*partitions: int, of: str = "0") -> list[Tree]:
    return [{"subtopology_id": of, "partitions": list(partitions)}]


DESCRIBING_STREAMS: Final = step(
    ApiKey.STREAMS_GROUP_DESCRIBE, 0, group_ids=["~g1", "~missing"], include_authorized_operations=False
)
APPLICATION: Final = (
    streams_beat("~m1", 0),
    streams_beat("~m1", 1, active_tasks=tasks(0, 1), standby_tasks=[], warmup_tasks=[]),
    DESCRIBING_STREAMS,
    LISTING_GROUPS,
    streams_beat("~m2", 0),
    streams_beat("~m1", 1),
    streams_beat("~m1", 1, active_tasks=tasks(0), standby_tasks=[], warmup_tasks=[]),
    streams_beat("~m2", 2),
    DESCRIBING_STREAMS,
    committing("~m1", 2, 9),
    committing("~m1", 1, 9),
    committing("~nobody", 1, 9),
    committing(),
    fetching_offsets(9, member="~m1", epoch=2),
    fetching_offsets(9, member="~m1", epoch=7),
    fetching_offsets(9, member="~nobody", epoch=2),
    DESCRIBING_GROUP,
    DESCRIBING_CONSUMERS,
    DELETING_GROUP,
    joining(),
    consumer_beat("~m3", 0),
    share_beat("~m3", 0),
    streams_beat("~m2", -1),
    streams_beat("~m1", -1),
    DESCRIBING_STREAMS,
    DELETING_GROUP,
    DESCRIBING_STREAMS,
)
INTERNAL_TOPICS: Final = (
    streams_beat(
        "~m1",
        0,
        topology(
            subtopology("0", "~t1", repartition_sink_topics=["~app-repartition"]),
            subtopology(
                "1",
                source_topics=[],
                repartition_source_topics=[internal("~app-repartition", 3)],
                state_changelog_topics=[internal("~app-changelog", cleanup_policy="compact")],
            ),
        ),
    ),
    metadata("~app-repartition", "~app-changelog"),
    streams_beat("~m1", 1),
    streams_beat("~m1", 2),
    DESCRIBING_STREAMS,
    streams_beat("~m2", 0, topology()),
    streams_beat("~m2", 0, topology(epoch=1)),
    DESCRIBING_STREAMS,
    streams_beat("~m1", -1),
)
MISSING: Final = (
    streams_beat("~m1", 0, topology(subtopology("0", "~t9"))),
    streams_beat("~m1", 1),
    DESCRIBING_STREAMS,
    creating("~t9", 2),
    streams_beat("~m1", 1),
    streams_beat("~m1", 2),
    DESCRIBING_STREAMS,
    deleting("~t9", 1),
    streams_beat("~m1", 2),
    streams_beat("~m1", 3),
    DESCRIBING_STREAMS,
)
COPARTITIONED: Final = (
    streams_beat(
        "~m1",
        0,
        topology(
            subtopology(
                "0",
                "~t1",
                "~t2",
                copartition_groups=[
                    {"source_topics": [0, 1], "source_topic_regex": [], "repartition_source_topics": []}
                ],
            )
        ),
    ),
    DESCRIBING_STREAMS,
    streams_beat(
        "~m2",
        0,
        topology(
            subtopology(
                "0",
                "~t1",
                copartition_groups=[{"source_topics": [5], "source_topic_regex": [], "repartition_source_topics": []}],
            )
        ),
    ),
)
_ENDPOINT: Final = {"host": "localhost", "port": 9090}
ENDPOINTS: Final = (
    altering(A_GROUP, "~g1", "streams.num.standby.replicas", "1"),
    streams_beat("~m1", 0, user_endpoint=_ENDPOINT, rack_id="r", client_tags=[{"key": "zone", "value": "a"}]),
    streams_beat("~m1", 1, active_tasks=tasks(0, 1), standby_tasks=[], warmup_tasks=[]),
    streams_beat(
        "~m2",
        0,
        topology(subtopology("0", "~t1", state_changelog_topics=[internal("~app-changelog")])),
        user_endpoint=_ENDPOINT | {"port": 9091},
    ),
    streams_beat("~m1", 1, endpoint_information_epoch=-1),
    streams_beat("~m1", 1, shutdown_application=True),
    streams_beat("~m2", 2),
    DESCRIBING_STREAMS,
    altering(A_GROUP, "~g1", "streams.num.standby.replicas", "99"),
    altering(A_GROUP, "~g1", "streams.session.timeout.ms", "50000"),
    altering(A_GROUP, "~g1", "streams.session.timeout.ms", "1"),
    altering(A_GROUP, "~g1", "streams.heartbeat.interval.ms", "1"),
    altering(A_GROUP, "~g1", "streams.initial.rebalance.delay.ms", "-1"),
    describing(A_GROUP, "~g1", None),
)
BAD_STREAMS: Final = (
    streams_beat("", 0),
    streams_beat("~m1", 0, group_id=""),
    streams_beat("~m1", 0, topology=None),
    streams_beat("~m1", 0, active_tasks=None),
    streams_beat("~m1", 0, standby_tasks=tasks(0)),
    streams_beat("~m1", 0, warmup_tasks=None),
    streams_beat("~m1", 0, active_tasks=tasks(0)),
    streams_beat("~m1", 0, process_id=None),
    streams_beat("~m1", 0, process_id=""),
    streams_beat("~m1", 0, rebalance_timeout_ms=-1),
    streams_beat("~m1", 0, rebalance_timeout_ms=0),
    streams_beat("~m1", 0, instance_id=""),
    streams_beat("~m1", 0, instance_id="~i1"),
    streams_beat("~m1", -2),
    streams_beat("~m1", -3),
    streams_beat("~m1", 5),
    streams_beat("~m1", 0, rack_id=""),
    streams_beat("~m1", 0, topology(subtopology("0", "~t1", source_topic_regex=["~t.*"]))),
    streams_beat("~m1", 0, topology(subtopology(), subtopology())),
    streams_beat("~m1", 0, topology(subtopology("", "~t1"))),
    streams_beat("~m1", 0, topology(subtopology("0", "a b"))),
    streams_beat("~m1", 0, topology(subtopology("0", "~t1", repartition_source_topics=[internal("~r")]))),
    streams_beat("~m1", 0, topology(subtopology("0", "~t1", state_changelog_topics=[internal("~c", 3)]))),
    streams_beat("~m1", 0, topology(epoch=-1)),
    streams_beat("~m1", 0, {"epoch": 0, "subtopologies": []}),
    streams_beat("~m1", 0),
    streams_beat("~m1", 1, topology()),
    streams_beat("~m1", 1, active_tasks=tasks(0)),
    streams_beat("~m1", 1, active_tasks=tasks(0, 0), standby_tasks=[], warmup_tasks=[]),
    streams_beat("~m1", 1, active_tasks=tasks(0, of="9"), standby_tasks=[], warmup_tasks=[]),
    streams_beat("~m1", 99),
    streams_beat("~nobody", 1),
    step(ApiKey.STREAMS_GROUP_DESCRIBE, 0, group_ids=["", "~g1"], include_authorized_operations=True),
    step(ApiKey.LIST_GROUPS, 5, states_filter=["NotReady", "Stable"], types_filter=["streams"]),
)
STREAMS_OF_OTHERS: Final = (
    consumer_beat("~m1", 0),
    streams_beat("~m2", 0),
    DESCRIBING_STREAMS,
    consumer_beat("~m1", -1),
    streams_beat("~m2", 0),
    committing(group="~g2"),
    streams_beat("~m2", 0, group_id="~g2"),
    fetching_offsets(9, "~g2"),
)
STREAMS_RIGHTS: Final = (
    streams_beat("~m1", 0),
    acl("User:ANONYMOUS", 8, 2),
    streams_beat("~m2", 0),
    DESCRIBING_STREAMS,
    acl("User:ANONYMOUS", 3, 2, 3, "~g1"),
    streams_beat("~m1", 1),
    acl("User:ANONYMOUS", 8, 2, 3, "~g1"),
    DESCRIBING_STREAMS,
)
BAD_TOPOLOGIES: Final = (
    streams_beat("~m1", 0, topology(subtopology("0", "a b"))),
    streams_beat("~m1", 0, topology(subtopology("0", "~t1", state_changelog_topics=[internal("~c", 3)]))),
    streams_beat("~m1", 0, topology(subtopology("0", "~t1", repartition_source_topics=[internal("~r")]))),
    streams_beat("~m1", 0, topology(epoch=3)),
    streams_beat("~m2", 0, topology(epoch=2)),
    streams_beat("~m2", 0, topology(epoch=4)),
    streams_beat("~m2", 0, topology(subtopology("0", "~t2"), epoch=3)),
    DESCRIBING_STREAMS,
)
STREAMS_ERRORS: Final = (BAD_TOPOLOGIES,)
"""Stories that are there for errors."""

STREAMS_STORIES: Final = (
    APPLICATION,
    INTERNAL_TOPICS,
    MISSING,
    COPARTITIONED,
    ENDPOINTS,
    BAD_STREAMS,
    STREAMS_OF_OTHERS,
)
