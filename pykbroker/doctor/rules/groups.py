"""Findings about groups, from two looks at each. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pykbroker.metadata.topic_names import SHARE_STATE_TOPIC

from ..facts import Facts, Group, ShareGroup
from ..findings import Finding, counted, error, some, warning

_REBALANCING: Final = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})
_WITHOUT_MEMBERS: Final = frozenset({"Empty", "Dead"})


_STABLE: Final = "Stable"
_NOT_READY: Final = "NotReady"


def of_groups(facts: Facts) -> Iterator[Finding]:
    """Findings about groups of consumers and of Kafka Streams, about share groups, and about what only Streams has."""
    yield from _of_consumers(facts)
    yield from _of_share_groups(facts)
    yield from _of_streams_groups(facts)


def _of_consumers(facts: Facts) -> Iterator[Finding]:
    within = f"within {facts.watched_s:g} s"
    rebalancing = [
        each for each in facts.groups if each.first.state == each.last.state and each.last.state in _REBALANCING
    ]
    if rebalancing:
        yield warning(
            "group-rebalancing",
            _count(rebalancing),
            f"in a rebalance, {within}: {some([f'{each.group_id} ({each.last.state})' for each in rebalancing])}",
            "A member that does not come to the rebalance holds up all others, up to max.poll.interval.ms: look for "
            "one that is busy with its records, or restarts again and again.",
        )
    abandoned = [each for each in facts.groups if _is_abandoned(each)]
    if abandoned:
        yield warning(
            "group-without-members",
            _count(abandoned),
            f"nobody reads, and records wait: {_lags(abandoned)}",
            "Start the consumers, or delete the group (`pykbroker groups --delete`) if it is not needed any more.",
        )
    growing = [each for each in facts.groups if _is_growing(each)]
    if growing:
        yield warning(
            "group-lag-growing",
            _count(growing),
            f"the lag has grown {within}: {some([_growth(each) for each in growing])}",
            "Consumers that commit less often than this look the same: look again with a longer --watch. If it goes "
            "on, more members, up to the number of partitions, or quicker ones are needed.",
        )


def _of_share_groups(facts: Facts) -> Iterator[Finding]:
    within = f"within {facts.watched_s:g} s"
    abandoned = [each for each in facts.share_groups if not each.first.members + each.last.members and each.last.lag]
    if abandoned:
        yield warning(
            "share-group-without-members",
            counted(len(abandoned), "share group"),
            f"nobody reads, and records wait: {_lags(abandoned)}",
            "Start the share consumers, or delete the group (`pykbroker share-groups delete`) if it is not needed any "
            "more.",
        )
    offline = [each for each in facts.share_groups if each.offline]
    if offline:
        yield error(
            "share-group-offline",
            counted(len(offline), "share group"),
            "partitions without a leader: "
            + some([f"{each.group_id} ({some([str(of) for of in each.offline])})" for each in offline]),
            "Nobody can read them: start a broker that has a replica in sync.",
        )
    stuck = [each for each in facts.share_groups if _is_stuck(each)]
    if stuck:
        yield warning(
            "share-group-stuck",
            counted(len(stuck), "share group"),
            f"members are there, and none of the records that wait was settled {within}: {_lags(stuck)}",
            "Records in a member's hands come back when their time is over (share.record.lock.duration.ms): look again "
            "with a longer --watch. If it goes on, see in whose hands they are: `pykbroker why --ctl HOST:PORT group "
            "NAME`.",
        )
    state = next((each for each in facts.topics if each.name == SHARE_STATE_TOPIC), None)
    gone = () if state is None else [each.of for each in state.partitions if each.leader is None]
    if gone and facts.share_groups:
        yield error(
            "share-coordinator-offline",
            counted(len(gone), "partition"),
            f"the state of share groups has no coordinator in {some(gone)}",
            "Members get no records of partitions whose state lives there: start a broker that has a replica in sync.",
        )
    elif SHARE_STATE_TOPIC in facts.absent_topics and any(each.last.members for each in facts.share_groups):
        yield error(
            "share-state-missing",
            SHARE_STATE_TOPIC,
            "share groups have members, and there is no topic for their state",
            "It is created when a group needs it, unless too few brokers are there for "
            "share.coordinator.state.topic.replication.factor: see the log of the brokers.",
        )


def _of_streams_groups(facts: Facts) -> Iterator[Finding]:
    waiting = [each for each in facts.streams_groups if each.first_state == each.last_state == _NOT_READY]
    if not waiting:
        return
    reasons = [
        f"{each.group_id} ({'missing: ' + some(each.missing) if each.missing else 'topics that do not fit'})"
        for each in waiting
    ]
    yield error(
        "streams-group-not-ready",
        counted(len(waiting), "group"),
        f"members are there and have no tasks: {some(reasons)}",
        "Create the source topics that are missing; internal ones are created by the broker, if the members may "
        "(CREATE). Topics that are read together need equally many partitions. `pykbroker why --ctl HOST:PORT group "
        "NAME` has the reason.",
    )


def _is_stuck(group: ShareGroup) -> bool:
    """Members are there throughout, and of no partition has anything been settled while records wait."""
    first, last = group.first, group.last
    if not (first.members and last.members and first.lag and last.lag) or last.state != _STABLE:
        return False
    return first.start_offsets == last.start_offsets and all(
        last.lags.get(of, 0) >= lag for of, lag in first.lags.items()
    )


def _is_abandoned(group: Group) -> bool:
    """Offsets that move without members are somebody's who commits without being one, as Spark and Flink do."""
    return (
        group.first.state in _WITHOUT_MEMBERS
        and group.last.state in _WITHOUT_MEMBERS
        and group.last.lag > 0
        and group.first.committed == group.last.committed
    )


def _is_growing(group: Group) -> bool:
    return group.last.state not in _WITHOUT_MEMBERS and group.last.lag > group.first.lag


def _count(groups: list[Group]) -> str:
    return counted(len(groups), "group")


def _lags(groups: Sequence[Group | ShareGroup]) -> str:
    return some([f"{each.group_id} (lag {each.last.lag})" for each in groups])


def _growth(group: Group) -> str:
    return f"{group.group_id} ({group.first.lag} to {group.last.lag})"
