"""Findings about groups, from two looks at each. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..facts import Facts, Group
from ..findings import Finding, counted, some, warning

_REBALANCING: Final = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})
_WITHOUT_MEMBERS: Final = frozenset({"Empty", "Dead"})


def of_groups(facts: Facts) -> Iterator[Finding]:
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


def _lags(groups: list[Group]) -> str:
    return some([f"{each.group_id} (lag {each.last.lag})" for each in groups])


def _growth(group: Group) -> str:
    return f"{group.group_id} ({group.first.lag} to {group.last.lag})"
