"""Stories of share groups (KIP-932): their members, their offsets, the records that they are given, and their state.

No two members are subscribed to the same topic: which of its partitions each gets depends on the topic's id, which is
drawn.
"""

from __future__ import annotations

from typing import Any, Final

from pykbroker.protocol.api_keys import ApiKey

from .field_values import HUGE, LARGE
from .sequences import Step, Tree, ref
from .stories import (
    A_GROUP,
    DELETING_GROUP,
    DESCRIBING_GROUP,
    LISTING_GROUPS,
    acl,
    adding,
    altering,
    committing,
    consumer_beat,
    deleting,
    deleting_records,
    describing,
    ending,
    fetching_offsets,
    in_transaction,
    init_producer,
    joining,
    metadata,
    producing,
    step,
)

ACCEPT, RELEASE, REJECT, RENEW, GAP = 1, 2, 3, 4, 0
_SHARE: Final = 2


def share_beat(member: Any, epoch: int, *topics: str, group: str = "~g1", **more: Any) -> Step:
    tree: Tree = {"group_id": group, "member_id": member, "member_epoch": epoch, "rack_id": None}
    subscribed = list(topics) or (["~t1"] if epoch == 0 else None)
    return step(ApiKey.SHARE_GROUP_HEARTBEAT, 1, **(tree | {"subscribed_topic_names": subscribed} | more))


def batch(first: int, last: int, *types: int) -> Tree:
    return {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)}


def share_fetch(
    epoch: int, *batches: Tree, version: int = 1, member: Any = "~m1", partition: int | None = 0, **more: Any
) -> Step:
    rows = [] if partition is None else [{"partition_index": partition, "acknowledgement_batches": list(batches)}]
    tree: Tree = {
        "group_id": "~g1",
        "member_id": member,
        "share_session_epoch": epoch,
        "max_wait_ms": 300,
        "min_bytes": 1,
        "max_bytes": LARGE,
        "max_records": 500,
        "batch_size": 500,
        "topics": [{"topic_id": ref("topic id"), "partitions": rows}] if rows else [],
        "forgotten_topics_data": [],
    }
    return step(ApiKey.SHARE_FETCH, version, **(tree | more))


def share_acknowledge(
    epoch: int, *batches: Tree, version: int = 1, member: Any = "~m1", partition: int = 0, **more: Any
) -> Step:
    rows = [{"partition_index": partition, "acknowledgement_batches": list(batches)}]
    tree: Tree = {
        "group_id": "~g1",
        "member_id": member,
        "share_session_epoch": epoch,
        "topics": [{"topic_id": ref("topic id"), "partitions": rows}],
    }
    return step(ApiKey.SHARE_ACKNOWLEDGE, version, **(tree | more))


DESCRIBING_SHARE: Final = step(
    ApiKey.SHARE_GROUP_DESCRIBE, 1, group_ids=["~g1", "~missing"], include_authorized_operations=False
)


def share_offsets(topics: list[Tree] | None = None, group: str = "~g1", version: int = 0) -> Step:
    return step(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, version, groups=[{"group_id": group, "topics": topics}])


def with_share_offset(offset: int, partition: int = 0, name: str = "~t1", group: str = "~g1") -> Step:
    rows = [{"topic_name": name, "partitions": [{"partition_index": partition, "start_offset": offset}]}]
    return step(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id=group, topics=rows)


def without_share_offsets(*names: str, group: str = "~g1") -> Step:
    return step(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, group_id=group, topics=[{"topic_name": each} for each in names])


FROM_THE_START: Final = altering(A_GROUP, "~g1", "share.auto.offset.reset", "earliest")
_A_TOPIC_ID: Final = metadata("~t1")

MEMBERS: Final = (
    _A_TOPIC_ID,
    share_beat("~m1", 0),
    share_beat("~m1", 1),
    share_beat("~m1", 2),
    DESCRIBING_SHARE,
    LISTING_GROUPS,
    share_beat("~m2", 0, "~t2"),
    share_beat("~m2", 3),
    share_beat("~m1", 3),
    share_beat("~m1", 1),
    share_beat("~m1", 99),
    share_beat("~nobody", 2),
    DESCRIBING_SHARE,
    share_offsets(),
    DESCRIBING_GROUP,
    DELETING_GROUP,
    joining(),
    consumer_beat("~m3", 0),
    committing(),
    fetching_offsets(),
    share_beat("~m2", -1),
    share_beat("~m1", -1),
    DESCRIBING_SHARE,
    DELETING_GROUP,
    DESCRIBING_SHARE,
    share_offsets(),
)
BAD_BEATS: Final = (
    share_beat("", 0),
    share_beat("~m1", 0, group=""),
    share_beat("~m1", 0, subscribed_topic_names=None),
    share_beat("~m1", 0, subscribed_topic_names=[]),
    share_beat("~m1", -2),
    share_beat("~m1", -3),
    share_beat("~m1", 5),
    share_beat("~m1", 0, rack_id=""),
    share_beat("~m1", 0, "~missing"),
    share_beat("~m1", 1, "~t1"),
    share_beat("~m1", 0, "a b"),
    share_beat("~m1", -1, group="~g2"),
    DESCRIBING_SHARE,
    step(ApiKey.SHARE_GROUP_DESCRIBE, 1, group_ids=[""], include_authorized_operations=True),
    step(ApiKey.SHARE_GROUP_DESCRIBE, 1, group_ids=[], include_authorized_operations=False),
    step(ApiKey.FIND_COORDINATOR, 6, key_type=_SHARE, coordinator_keys=["~g1", "a:b:c", "~g1:x:0", ""]),
    step(ApiKey.LIST_GROUPS, 5, states_filter=[], types_filter=["share"]),
    step(ApiKey.LIST_GROUPS, 5, states_filter=["Stable", "Empty"], types_filter=["share", "consumer"]),
)
OTHER_GROUPS: Final = (
    consumer_beat("~m1", 0),
    share_beat("~m2", 0),
    DESCRIBING_SHARE,
    share_offsets(),
    with_share_offset(0),
    without_share_offsets("~t1"),
    consumer_beat("~m1", -1),
    share_beat("~m2", 0),
    committing(group="~g2"),
    share_beat("~m2", 0, group="~g2"),
    share_offsets(group="~g2"),
)
RECORDS: Final = (
    FROM_THE_START,
    _A_TOPIC_ID,
    producing({"values": ["a", "b", "c"]}),
    share_beat("~m1", 0),
    share_beat("~m1", 2),
    share_fetch(0),
    producing({"values": ["d"]}),
    share_fetch(1, batch(0, 0, ACCEPT), batch(1, 1, RELEASE), batch(2, 2, REJECT)),
    share_acknowledge(2, batch(1, 1, ACCEPT)),
    share_offsets(version=1),
    share_acknowledge(3, batch(1, 1, ACCEPT)),
    share_acknowledge(4, batch(3, 3, RELEASE)),
    share_fetch(5),
    share_acknowledge(6, batch(3, 3, RELEASE)),
    share_fetch(7),
    share_acknowledge(8, batch(3, 3, RELEASE)),
    share_fetch(9),
    share_acknowledge(10, batch(3, 3, RELEASE)),
    share_fetch(11),
    share_acknowledge(12, batch(3, 3, RELEASE)),
    share_fetch(13),
    share_offsets(version=1),
    share_fetch(-1, partition=None),
    share_beat("~m1", -1),
)
TWO_READERS: Final = (
    FROM_THE_START,
    _A_TOPIC_ID,
    producing({"values": [*"abcdef"]}),
    producing({"values": [*"ghijkl"]}),
    share_beat("~m1", 0),
    share_beat("~m2", 0, "~t2"),
    share_fetch(0, max_records=2, batch_size=2),
    share_fetch(0, member="~m2", max_records=3),
    share_fetch(1, batch(0, 5, ACCEPT)),
    share_acknowledge(1, batch(0, 0, ACCEPT), member="~m2"),
    share_fetch(2, version=2, share_acquire_mode=1, max_records=2),
    share_fetch(-1, partition=None),
    share_fetch(2, member="~m2"),
    share_acknowledge(-1, batch(6, 11, ACCEPT, ACCEPT, RELEASE, REJECT, ACCEPT, ACCEPT), member="~m2"),
    share_offsets(version=1),
)
SESSIONS: Final = (
    FROM_THE_START,
    _A_TOPIC_ID,
    producing({"values": ["a", "b"]}),
    share_beat("~m1", 0),
    share_fetch(1),
    share_fetch(-1),
    share_acknowledge(0, batch(0, 0, ACCEPT)),
    share_acknowledge(1, batch(0, 0, ACCEPT)),
    share_fetch(0, batch(0, 0, ACCEPT)),
    share_fetch(0),
    share_fetch(2),
    share_fetch(1, partition=9),
    share_fetch(2, topics=[{"topic_id": {"uuid": "unknown"}, "partitions": [{"partition_index": 0}]}]),
    share_fetch(3, topics=[{"topic_id": {"uuid": "none"}, "partitions": [{"partition_index": 0}]}]),
    share_fetch(4, partition=None, forgotten_topics_data=[{"topic_id": ref("topic id"), "partitions": [0, 9]}]),
    share_fetch(5, member=""),
    share_fetch(5, member=None),
    share_fetch(5, group_id=None),
    share_fetch(5, group_id=""),
    share_fetch(5, max_bytes=0, min_bytes=0, max_wait_ms=0),
    share_acknowledge(6, batch(5, 9, ACCEPT)),
    share_fetch(-1, partition=None),
    share_fetch(6),
)
BAD_BATCHES: Final = (
    FROM_THE_START,
    _A_TOPIC_ID,
    producing({"values": [*"abcdef"]}),
    share_beat("~m1", 0),
    share_fetch(0),
    share_acknowledge(1, batch(3, 1, ACCEPT)),
    share_acknowledge(2, batch(0, 1)),
    share_acknowledge(3, batch(0, 2, ACCEPT, ACCEPT)),
    share_acknowledge(4, batch(0, 1, 9)),
    share_acknowledge(5, batch(0, 1, -1)),
    share_acknowledge(6, batch(2, 3, ACCEPT), batch(0, 1, ACCEPT)),
    share_acknowledge(7, batch(0, 1, ACCEPT), batch(1, 2, ACCEPT)),
    share_acknowledge(8, batch(0, 1, RENEW)),
    share_acknowledge(9, batch(0, 1, RENEW), version=2, is_renew_ack=True),
    share_acknowledge(10, batch(0, 1, RENEW), version=2),
    share_acknowledge(11, batch(0, 1, ACCEPT), version=2, is_renew_ack=True),
    share_acknowledge(12, batch(0, 0, GAP)),
    share_acknowledge(13, batch(-1, 0, ACCEPT)),
    share_acknowledge(14, batch(0, HUGE, ACCEPT)),
    share_acknowledge(15),
    share_acknowledge(16, batch(4, 4, ACCEPT), partition=1),
    share_acknowledge(17, batch(4, 4, ACCEPT), partition=9),
    share_fetch(18, batch(4, 4, ACCEPT), version=2, is_renew_ack=True),
    share_fetch(18, batch(4, 4, RENEW), version=2, is_renew_ack=True, max_bytes=0, max_records=0, min_bytes=0),
    share_fetch(99, version=2, share_acquire_mode=7),
    share_fetch(18, version=2, share_acquire_mode=7),
    share_fetch(18, max_records=0),
    share_fetch(19, max_records=0),
    share_fetch(19, max_records=-1),
    share_fetch(20, max_records=-1),
    share_fetch(20, batch_size=0),
    share_fetch(21, batch_size=0),
    share_offsets(version=1),
)
ISOLATION: Final = (
    FROM_THE_START,
    altering(A_GROUP, "~g1", "share.isolation.level", "read_committed"),
    _A_TOPIC_ID,
    init_producer(),
    adding(),
    in_transaction(0),
    share_beat("~m1", 0),
    share_fetch(0),
    ending(commit=False),
    producing({"values": ["x"]}),
    share_fetch(1),
    share_acknowledge(2, batch(3, 3, ACCEPT)),
    share_offsets(version=1),
    deleting_records(-1),
    share_fetch(3),
)
START_OFFSETS: Final = (
    _A_TOPIC_ID,
    producing({"values": [*"abcd"]}),
    share_offsets(),
    with_share_offset(2),
    share_beat("~m1", 0),
    share_offsets(),
    with_share_offset(1),
    share_fetch(0),
    share_beat("~m1", -1),
    share_offsets([{"topic_name": "~t1", "partitions": [0, 1, 9]}, {"topic_name": "~missing", "partitions": [0]}]),
    with_share_offset(2),
    with_share_offset(0, 9),
    with_share_offset(0, 0, "~missing"),
    with_share_offset(-5),
    with_share_offset(0, group="~missing"),
    with_share_offset(0, group=""),
    share_offsets(version=1),
    share_offsets(group="~missing"),
    share_offsets(group=""),
    without_share_offsets("~missing"),
    without_share_offsets("~t1"),
    without_share_offsets("~t1", group="~missing"),
    without_share_offsets("~t1", group=""),
    without_share_offsets(),
    share_offsets(),
    DELETING_GROUP,
    share_offsets(),
)
DELETED_TOPIC: Final = (
    _A_TOPIC_ID,
    FROM_THE_START,
    producing({"values": ["a"]}),
    share_beat("~m1", 0),
    share_fetch(0),
    deleting("~t1", 1),
    share_fetch(1, partition=None),
    share_acknowledge(2, batch(0, 0, ACCEPT)),
    share_offsets(),
)
_STATE_EPOCH: Final[Tree] = {"state_epoch": 1, "start_offset": 0}


def of_state(api: ApiKey, *, group: str = "~g1", partition: int = 0, topic: Any = None, **row: Any) -> Step:
    topic_id = ref("topic id") if topic is None else topic
    rows = [{"topic_id": topic_id, "partitions": [{"partition": partition} | row]}]
    return step(api, 0, group_id=group, topics=rows)


def state_batch(first: int, last: int, state: int = 0, count: int = 1) -> Tree:
    return {"first_offset": first, "last_offset": last, "delivery_state": state, "delivery_count": count}


STATE: Final = (
    _A_TOPIC_ID,
    of_state(ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=0),
    of_state(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, leader_epoch=0),
    of_state(ApiKey.INITIALIZE_SHARE_GROUP_STATE, **_STATE_EPOCH),
    of_state(ApiKey.INITIALIZE_SHARE_GROUP_STATE, **_STATE_EPOCH),
    of_state(ApiKey.INITIALIZE_SHARE_GROUP_STATE, state_epoch=0, start_offset=0),
    of_state(
        ApiKey.WRITE_SHARE_GROUP_STATE,
        state_epoch=1,
        leader_epoch=1,
        start_offset=0,
        delivery_complete_count=2,
        state_batches=[state_batch(0, 4), state_batch(5, 6, 2), state_batch(7, 9, 4, 5)],
    ),
    of_state(ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=1),
    of_state(
        ApiKey.WRITE_SHARE_GROUP_STATE,
        state_epoch=1,
        leader_epoch=1,
        start_offset=6,
        state_batches=[state_batch(8, 12, 0, 2)],
    ),
    of_state(ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=2),
    of_state(
        ApiKey.WRITE_SHARE_GROUP_STATE, state_epoch=1, leader_epoch=1, start_offset=7, state_batches=[state_batch(8, 8)]
    ),
    of_state(
        ApiKey.WRITE_SHARE_GROUP_STATE, state_epoch=0, leader_epoch=2, start_offset=7, state_batches=[state_batch(8, 8)]
    ),
    of_state(ApiKey.WRITE_SHARE_GROUP_STATE, state_epoch=1, leader_epoch=2, start_offset=-1, state_batches=[]),
    of_state(ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=1),
    of_state(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, leader_epoch=2),
    of_state(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, leader_epoch=0),
    of_state(ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=-1),
    of_state(ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=0, partition=1),
    of_state(ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=0, partition=9),
    of_state(ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=0, topic={"uuid": "unknown"}),
    of_state(ApiKey.INITIALIZE_SHARE_GROUP_STATE, partition=9, **_STATE_EPOCH),
    of_state(ApiKey.INITIALIZE_SHARE_GROUP_STATE, partition=-1, **_STATE_EPOCH),
    of_state(ApiKey.INITIALIZE_SHARE_GROUP_STATE, topic={"uuid": "unknown"}, **_STATE_EPOCH),
    of_state(ApiKey.INITIALIZE_SHARE_GROUP_STATE, group="", **_STATE_EPOCH),
    of_state(ApiKey.DELETE_SHARE_GROUP_STATE),
    of_state(ApiKey.DELETE_SHARE_GROUP_STATE),
    of_state(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, leader_epoch=0),
    of_state(ApiKey.DELETE_SHARE_GROUP_STATE, partition=9),
    of_state(ApiKey.DELETE_SHARE_GROUP_STATE, group=""),
    step(ApiKey.READ_SHARE_GROUP_STATE, 0, group_id="~g1", topics=[]),
    step(ApiKey.WRITE_SHARE_GROUP_STATE, 1, group_id="~g1", topics=[]),
)
SHARE_CONFIGS: Final = (
    altering(A_GROUP, "~g1", "share.record.lock.duration.ms", "15000"),
    altering(A_GROUP, "~g1", "share.record.lock.duration.ms", "1"),
    altering(A_GROUP, "~g1", "share.auto.offset.reset", "by_duration:PT1H"),
    altering(A_GROUP, "~g1", "share.auto.offset.reset", "by_duration:x"),
    altering(A_GROUP, "~g1", "share.auto.offset.reset", "none"),
    altering(A_GROUP, "~g1", "share.isolation.level", "x"),
    altering(A_GROUP, "~g1", "share.session.timeout.ms", "50000"),
    altering(A_GROUP, "~g1", "share.heartbeat.interval.ms", "1"),
    altering(A_GROUP, "~g1", "share.delivery.count.limit", "3"),
    altering(A_GROUP, "~g1", "share.delivery.count.limit", "1"),
    altering(A_GROUP, "~g1", "share.partition.max.record.locks", "200"),
    altering(A_GROUP, "~g1", "share.partition.max.record.locks", "1"),
    altering(A_GROUP, "~g1", "share.renew.acknowledge.enable", "false"),
    altering(A_GROUP, "~g1", "share.renew.acknowledge.enable", "x"),
    describing(A_GROUP, "~g1", None),
    share_beat("~m1", 0),
)
SHARE_RIGHTS: Final = (
    FROM_THE_START,
    _A_TOPIC_ID,
    producing({"values": ["a"]}),
    share_beat("~m1", 0),
    share_fetch(0),
    acl("User:ANONYMOUS", 3, 2),
    share_beat("~m1", 2),
    share_beat("~m2", 0),
    DESCRIBING_SHARE,
    share_fetch(1),
    share_acknowledge(2, batch(0, 0, ACCEPT)),
    share_offsets(),
    with_share_offset(0),
    without_share_offsets("~t1"),
    acl("User:ANONYMOUS", 3, 2, 3, "~g1"),
    share_beat("~m1", 2),
    share_fetch(3),
    share_acknowledge(3, batch(0, 0, ACCEPT)),
    share_offsets(),
    acl("User:ANONYMOUS", 8, 2, 3, "~g1"),
    DESCRIBING_SHARE,
    share_offsets(),
    with_share_offset(0),
    without_share_offsets("~t1"),
    DELETING_GROUP,
)

NOT_ACQUIRED: Final = (
    FROM_THE_START,
    _A_TOPIC_ID,
    producing({"values": [*"abc"]}),
    share_beat("~m1", 0),
    share_fetch(0),
    share_beat("~m2", 0, "~t2"),
    share_fetch(0, member="~m2"),
    share_fetch(1, batch(0, 0, ACCEPT), member="~m2"),
    share_acknowledge(2, batch(1, 1, ACCEPT), member="~m2"),
    share_fetch(1, batch(0, 2, ACCEPT)),
    share_fetch(2, batch(2, 2, ACCEPT)),
    share_acknowledge(3, batch(0, 0, RELEASE)),
)
SHARE_ERRORS: Final = (NOT_ACQUIRED,)
"""Stories that are there for errors."""

SHARE_STORIES: Final = (
    MEMBERS,
    BAD_BEATS,
    OTHER_GROUPS,
    RECORDS,
    TWO_READERS,
    SESSIONS,
    BAD_BATCHES,
    ISOLATION,
    START_OFFSETS,
    DELETED_TOPIC,
    STATE,
    SHARE_CONFIGS,
)
