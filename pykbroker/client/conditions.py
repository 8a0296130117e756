"""Conditions that a test or a script waits for: a topic is there, has records, a group is stable or has caught up.

Each is looked at again and again over the protocol, so it holds for any broker. What was seen last is part of the error
where it does not come true in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, Protocol, TypedDict, Unpack

import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .consumer import Consumer
from .errors import BadInput, ClientError, KafkaError, TimedOut, UnknownTopic
from .group_lag import group_lag
from .groups import DEAD, describe_group
from .offsets import EARLIEST_TIMESTAMP, READ_COMMITTED

_FIRST_PAUSE_S: Final = 0.005
_LONGEST_PAUSE_S: Final = 0.1
_FIRST_LOOK_S: Final = 5.0
_MAX_WAIT_MS: Final = 100
"""How long a broker may keep a Fetch of a count; records that come end it earlier."""

GROUP_STATES: Final = (
    "Stable",
    "Empty",
    "Dead",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "NotReady",
)


class ConditionNotMet(TimedOut):
    """Time is over; the message says what was waited for and what there was instead."""


class Condition(Protocol):
    def __str__(self) -> str:
        """Name the condition, as the end of "waited for"."""
        ...

    async def look(self, cluster: Cluster) -> str | None:
        """Return None where it holds, else what there is instead. Raises ClientError."""
        ...


async def wait_until(cluster: Cluster, conditions: Sequence[Condition], timeout_s: float) -> None:
    """Return when all conditions hold, each at its last look. Raises ConditionNotMet, and BadInput without any.

    The first look has five seconds however short the time is, so that 0 asks whether it is so now.
    """
    if not conditions:
        raise BadInput("there is nothing to wait for: name a topic or a group")
    first, instead = conditions[0], "the broker has not answered meanwhile"
    pause_s = _FIRST_PAUSE_S
    began = trio.current_time()
    with trio.move_on_at(began + max(timeout_s, _FIRST_LOOK_S)) as scope:
        while True:
            looks = [(condition, await _look(condition, cluster)) for condition in conditions]
            open_ = [(condition, state) for condition, state in looks if state is not None]
            if not open_:
                return
            first, instead = open_[0]
            scope.deadline = began + timeout_s
            await trio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    raise ConditionNotMet(f"waited {timeout_s:g} s for {first}; {instead}")


async def _look(condition: Condition, cluster: Cluster) -> str | None:
    try:
        return await condition.look(cluster)
    except ClientError as error:
        if not error.retriable:
            raise
        return str(error)


@dataclass(frozen=True, slots=True)
class TopicIsThere:
    """Every partition has a leader. partitions: at least so many."""

    topic: str
    partitions: int = 1

    def __str__(self) -> str:
        return f"topic {self.topic}" + (f" with {self.partitions} partitions" if self.partitions > 1 else "")

    async def look(self, cluster: Cluster) -> str | None:
        topic = (await cluster.refresh([self.topic])).topics.get(self.topic)
        if topic is None:
            return "it does not exist"
        if len(topic.partitions) < self.partitions:
            return f"it has {_count(len(topic.partitions), 'partition')}"
        leaderless = [str(index) for index, partition in topic.partitions.items() if partition.leader_id < 0]
        return f"partition {leaderless[0]} has no leader" if leaderless else None


@dataclass(slots=True)
class TopicHasRecords:
    """A consumer with read_committed has seen so many records from the beginning, or more.

    Counted as they come, so a topic that is compacted or deleted meanwhile counts what has been there.
    """

    topic: str
    records: int
    _count: int = field(default=0, init=False)
    _consumer: Consumer | None = field(default=None, init=False)

    def __str__(self) -> str:
        return f"{_count(self.records, 'record')} in topic {self.topic}"

    async def look(self, cluster: Cluster) -> str | None:
        try:
            if self._consumer is None:
                self._consumer = await self._open(cluster)
            while self._count < self.records and (found := len(await self._consumer.poll())):
                self._count += found
        except UnknownTopic:
            self._consumer, self._count = None, 0
            return "the topic does not exist"
        return None if self._count >= self.records else f"there are {self._count}"

    async def _open(self, cluster: Cluster) -> Consumer:
        consumer = Consumer(
            cluster, isolation_level=READ_COMMITTED, reset_to=EARLIEST_TIMESTAMP, max_wait_ms=_MAX_WAIT_MS
        )
        partitions = (await cluster.topic(self.topic)).partitions
        await consumer.assign_at({TopicPartition(self.topic, index): EARLIEST_TIMESTAMP for index in partitions})
        return consumer


@dataclass(frozen=True, slots=True)
class GroupIs:
    """A group is in a state and has so many members, where one of these is given. Who is not there is Dead."""

    group: str
    state: str | None = None
    members: int | None = None

    def __str__(self) -> str:
        wanted = [] if self.state is None else [f"to be {self.state}"]
        wanted += [] if self.members is None else [f"to have {_count(self.members, 'member')}"]
        return f"group {self.group} {' and '.join(wanted)}"

    async def look(self, cluster: Cluster) -> str | None:
        state, members = DEAD, 0
        try:
            group = await describe_group(cluster, self.group)
            state, members = group.state, len(group.members)
        except KafkaError as error:
            if error.error_code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
        if self.state in (None, state) and self.members in (None, members):
            return None
        return "it does not exist" if state == DEAD else f"it is {state}, with {_count(members, 'member')}"


@dataclass(frozen=True, slots=True)
class GroupLagsBy:
    """A group has committed offsets, and they are so far from the ends of their logs together, or less."""

    group: str
    lag: int
    topics: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"group {self.group} to have a lag of {self.lag} at most"

    async def look(self, cluster: Cluster) -> str | None:
        try:
            lags = await group_lag(cluster, self.group, self.topics)
        except UnknownTopic as error:
            return str(error)
        except KafkaError as error:
            if error.error_code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            return "it does not exist"
        if not lags:
            return "it has no committed offset"
        total = sum(lags.values())
        return None if total <= self.lag else f"its lag is {total}"


class Wanted(TypedDict, total=False):
    """The names of a wait. partitions, records, members: at least, at least, exactly so many. lag: at most."""

    topic: str
    partitions: int
    records: int
    group: str
    state: str
    members: int
    lag: int


def conditions_of(**wanted: Unpack[Wanted]) -> list[Condition]:
    """Return the conditions that these names mean together. Raises BadInput for what means nothing.

    A topic alone: it is there. A group alone: it is Stable. With a group, `topic` says which topic its lag is of.
    """
    unknown = [name for name in wanted if name not in Wanted.__annotations__]
    if unknown:
        raise BadInput(f"nothing can be waited for by '{unknown[0]}'; there are {', '.join(Wanted.__annotations__)}")
    topic, group = wanted.get("topic"), wanted.get("group")
    partitions, records = wanted.get("partitions"), wanted.get("records")
    state, members, lag = wanted.get("state"), wanted.get("members"), wanted.get("lag")
    found: list[Condition] = []
    _refuse({"partitions": partitions, "records": records}, topic is None, "a topic")
    _refuse({"state": state, "members": members, "lag": lag}, group is None, "a group")
    if topic is not None:
        found.append(TopicIsThere(topic, 1 if partitions is None else partitions))
        if records is not None:
            found.append(TopicHasRecords(topic, records))
    if group is not None:
        if state is None and members is None and lag is None:
            state = GROUP_STATES[0]
        if state is not None or members is not None:
            found.append(GroupIs(group, None if state is None else group_state(state), members))
        if lag is not None:
            found.append(GroupLagsBy(group, lag, () if topic is None else (topic,)))
    if not found:
        raise BadInput("there is nothing to wait for: name a topic or a group")
    return found


def group_state(text: str) -> str:
    """Return the state with Kafka's spelling; upper and lower case, dashes and underscores do not matter.

    Raises BadInput.
    """
    known = {state.lower(): state for state in GROUP_STATES}
    wanted = text.lower().replace("-", "").replace("_", "").replace(" ", "")
    if wanted in known:
        return known[wanted]
    close = get_close_matches(wanted, known, n=1)
    hint = f"did you mean {known[close[0]]}?" if close else f"there are {', '.join(GROUP_STATES)}"
    raise BadInput(f"'{text}' is no state of a group; {hint}")


def _refuse(values: dict[str, object], missing: bool, of: str) -> None:
    for name, value in values.items():
        if value is not None and missing:
            raise BadInput(f"'{name}' is waited for with {of}: name it, too")
        if isinstance(value, int) and value < 0:
            raise BadInput(f"'{name}' cannot be {value}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
