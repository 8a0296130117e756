"""The answers as far as Kafka's own protocol tells them, of any broker, Apache Kafka's included.

It tells states, assignments, offsets, transactions and quotas. It tells no causes, no fetches and no rates: those are
asked of a broker's control alone, and where an answer would need them it says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import KafkaError
from pykbroker.client.group_offsets import fetch_offsets
from pykbroker.client.groups import GroupDescription, describe_group
from pykbroker.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, READ_COMMITTED, list_offsets
from pykbroker.client.quotas import describe_quotas
from pykbroker.client.share_groups import SHARE, ShareOffset, fetch_share_offsets
from pykbroker.client.streams_groups import STREAMS, describe_streams_group
from pykbroker.client.transactions import describe_producers, describe_transaction, list_transactions
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transaction_admin import (
    DescribeTransactionsResponseTransactionState,
    ProducerState,
)
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.server.runtime.log_lines import printable

from .answers import (
    GETS_NOTHING,
    AppliedQuota,
    ConsumerAnswer,
    GroupAnswer,
    Lag,
    LsoAnswer,
    Member,
    OpenTransaction,
    PartitionAnswer,
    SharedPartition,
    ThrottleAnswer,
)
from .precedence import KEYS, client_name, name_of, winning
from .wording import client, counted, duration, moment

_MOST_TRANSACTIONS: Final = 20
_STABLE: Final = "Stable"
_EMPTY: Final = "Empty"
_NOT_READY: Final = "NotReady"
_MOST_MISSING: Final = 100
_NOT_TOLD: Final = "Kafka's protocol does not tell"


class NotTold(ValueError):
    """Kafka's protocol has no answer to the question."""


async def group(cluster: Cluster, group_id: str) -> GroupAnswer:
    """Return a group's state, members and lag, without causes. Raises KafkaError."""
    described = await _described(cluster, group_id)
    if described is None:
        return GroupAnswer(verdict=f"There is no group {printable(group_id)}.", reason="no-such-group", group=group_id)
    partitions: list[Lag] = []
    shared: list[SharedPartition] = []
    facts = [f"{_NOT_TOLD} why it last rebalanced."]
    if described.group_type == SHARE:
        shared = await _shared(cluster, group_id)
        facts = [f"{_NOT_TOLD} which member has acquired which records."]
    else:
        partitions = await _lag(cluster, group_id, described)
    missing = await _missing_topics(cluster, described)
    if missing:
        facts.insert(0, f"Topics of its topology are missing: {', '.join(map(printable, missing))}.")
    lags = [*(each.lag for each in partitions), *(each.lag for each in shared)]
    known = [each for each in lags if each is not None]
    reason, words = _state(described)
    return GroupAnswer(
        verdict=f"Group {printable(group_id)} {words}.",
        reason=reason,
        facts=tuple(facts),
        group=group_id,
        type=described.group_type.lower(),
        state=described.state,
        coordinator=described.coordinator.node_id,
        members=tuple(_members(described)),
        member_count=len(described.members),
        partitions=tuple(partitions),
        shared=tuple(shared),
        partition_count=len(partitions) + len(shared),
        lag=sum(known) if known else None,
        missing_topics=tuple(missing),
    )


async def consumer(
    cluster: Cluster, group_id: str | None, topic: str | None = None, partition: int | None = None
) -> ConsumerAnswer:
    """Return what assignments and offsets tell of a group's consumers. Raises NotTold, KafkaError."""
    if not group_id:
        raise NotTold(f"name a group: {_NOT_TOLD} what a client without one fetches")
    if partition is not None and topic is None:
        raise NotTold("a partition goes with its topic")
    described = await _described(cluster, group_id)
    answers = await _Partitions(cluster, group_id, described).answers(topic, partition)
    if answers:
        reason, verdict, facts = answers[0].reason, answers[0].verdict, answers[0].facts
    else:
        reason, words = ("no-such-group", "does not exist") if described is None else _state(described)
        verdict, facts = f"Group {printable(group_id)} {words}, and no partition is known of it.", ()
    return ConsumerAnswer(
        verdict=verdict,
        reason=reason,
        facts=facts,
        group=group_id,
        partitions=tuple(answers),
        partition_count=len(answers),
    )


async def lso(cluster: Cluster, topic: str, index: int) -> LsoAnswer:
    """Return the open transactions of a partition. Raises KafkaError."""
    at, place = TopicPartition(topic, index), f"{printable(topic)}-{index}"
    absent = (await _absent(cluster, [at])).get(at)
    if absent is not None:
        has_no_leader = absent[0] == "no-leader"
        return LsoAnswer(
            verdict=absent[1] if has_no_leader else f"There is no partition {place}.",
            reason="no-leader" if has_no_leader else "no-such-partition",
            topic=topic,
            partition=index,
        )
    producers = await describe_producers(cluster, at)
    stable = (await list_offsets(cluster, {at: LATEST_TIMESTAMP}, isolation_level=READ_COMMITTED))[at].offset
    high = (await list_offsets(cluster, {at: LATEST_TIMESTAMP}))[at].offset
    found = sorted(
        (each for each in producers if each.current_txn_start_offset >= 0),
        key=lambda each: each.current_txn_start_offset,
    )
    transactions = tuple([await _open(cluster, at, each) for each in found[:_MOST_TRANSACTIONS]])
    if any(each.is_hanging for each in transactions):
        # One that has ended meanwhile seems to hang: its coordinator knows nothing of it any more.
        still = {(each.producer_id, each.current_txn_start_offset) for each in await describe_producers(cluster, at)}
        found = [each for each in found if (each.producer_id, each.current_txn_start_offset) in still]
        transactions = tuple(each for each in transactions if (each.producer_id, each.first_offset) in still)
    reason, words = _held_by(transactions)
    return LsoAnswer(
        verdict=f"The last stable offset of {place} is {stable}, the high watermark {high}: {words}.",
        reason=reason,
        facts=tuple(f"Nobody but an operator ends it: {each.command}" for each in transactions if each.command),
        topic=topic,
        partition=index,
        last_stable_offset=stable,
        high_watermark=high,
        transactions=transactions,
        transaction_count=len(found),
    )


async def throttle(cluster: Cluster, user: str, client_id: str) -> ThrottleAnswer:
    """Return which quotas apply to a client, without its rates. Raises KafkaError."""
    described = {each.entity: each.values for each in await describe_quotas(cluster, {}, only_these_types=False)}
    quotas = []
    for key in KEYS:
        found = winning(described, key, user, client_id)
        if found is not None:
            entity, limit, passed_over = found
            quota = AppliedQuota(
                key=key, entity=name_of(entity), limit=limit, rate=None, throttle_ms=0, passed_over=passed_over
            )
            quotas.append(quota)
    who = client_name(user, client_id)
    applied = ", ".join(f"{each.key} {each.limit:g} of {each.entity}" for each in quotas)
    return ThrottleAnswer(
        verdict=f"To {who} applies {applied}." if quotas else f"No quota applies to {who}.",
        reason="quota-applies" if quotas else "no-quota",
        facts=(f"{_NOT_TOLD} what the client's rate is, and whether it is throttled now.",) if quotas else (),
        user=user,
        client_id=client_id,
        quotas=tuple(quotas),
    )


async def ask(cluster: Cluster, question: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a question as JSON, as a broker's control does. Raises ValueError, ClientError."""
    given = {name: value for name, value in arguments.items() if value is not None}
    match question:
        case "group":
            return (await group(cluster, given["group"])).to_json()
        case "consumer":
            if "client_id" in given:
                raise NotTold(f"{_NOT_TOLD} what a client of an id fetches")
            return (await consumer(cluster, given.get("group"), given.get("topic"), given.get("partition"))).to_json()
        case "lso":
            return (await lso(cluster, given["topic"], given["partition"])).to_json()
        case "throttle":
            return (await throttle(cluster, given.get("user", "ANONYMOUS"), given.get("client_id", ""))).to_json()
    raise NotTold(f"nobody can ask why {question}")


# Groups


async def _described(cluster: Cluster, group_id: str) -> GroupDescription | None:
    try:
        return await describe_group(cluster, group_id)
    except KafkaError as error:
        if error.error_code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise


def _state(group: GroupDescription) -> tuple[str, str]:
    """The word for programs, and those for a sentence."""
    members = counted(len(group.members), "member")
    if group.state == _STABLE:
        return "stable", f"is stable with {members}"
    if group.state == _EMPTY or not group.members:
        return "no-members", "has no members"
    if group.state == _NOT_READY:
        return "not-ready", f"is not ready, with {members}: its topics do not fit its topology, or are missing"
    return "rebalancing", f"rebalances with {members} ({group.state})"


def _members(group: GroupDescription) -> list[Member]:
    members = []
    for each in group.members:
        assignment: dict[str, list[int]] = {}
        for topic, index in each.partitions:
            assignment.setdefault(topic, []).append(index)
        members.append(
            Member(
                member_id=each.member_id,
                instance_id=each.group_instance_id,
                client_id=each.client_id,
                host=each.client_host.lstrip("/"),
                state="",
                epoch=each.epoch,
                subscription=(),
                assignment={topic: tuple(sorted(indexes)) for topic, indexes in assignment.items()},
                session_timeout_ms=None,
                last_sign_ago_ms=None,
            )
        )
    return members


async def _shared(cluster: Cluster, group_id: str) -> list[SharedPartition]:
    offsets = await fetch_share_offsets(cluster, group_id)
    absent = await _absent(cluster, offsets)
    ends = await _offsets(cluster, [at for at in offsets if at not in absent], LATEST_TIMESTAMP)
    return [
        SharedPartition(
            topic=at.topic,
            partition=at.partition,
            state="",
            start_offset=each.start_offset,
            high_watermark=ends.get(at),
            lag=each.lag,
        )
        for at, each in sorted(offsets.items())
    ]


async def _missing_topics(cluster: Cluster, group: GroupDescription) -> list[str]:
    """Return the topics of a streams group's topology that are not there, up to a bound."""
    if group.group_type != STREAMS or group.state != _NOT_READY:
        return []
    described = await describe_streams_group(cluster, group.group_id)
    needed = described.source_topics.union(described.internal_topics)
    metadata = await cluster.refresh(needed)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return sorted(
        name for name in needed if name not in metadata.topics and metadata.errors.get(name, unknown) is unknown
    )[:_MOST_MISSING]


async def _lag(cluster: Cluster, group_id: str, group: GroupDescription) -> list[Lag]:
    committed = await fetch_offsets(cluster, group_id)
    owners = {at: each.member_id for each in group.members for at in each.partitions}
    places = sorted({*committed, *owners})
    absent = await _absent(cluster, places)
    ends = await _offsets(cluster, [at for at in places if at not in absent], LATEST_TIMESTAMP)
    return [
        Lag(
            topic=at.topic,
            partition=at.partition,
            committed=committed[at].offset if at in committed else None,
            committed_timestamp_ms=None,
            end_offset=ends.get(at),
            lag=max(ends[at] - committed[at].offset, 0) if at in committed and at in ends else None,
            member_id=owners.get(at),
        )
        for at in places
    ]


async def _offsets(
    cluster: Cluster, places: Sequence[TopicPartition], timestamp: int, **how: int
) -> dict[TopicPartition, int]:
    found = await list_offsets(cluster, dict.fromkeys(places, timestamp), **how) if places else {}
    return {at: each.offset for at, each in found.items()}


async def _absent(cluster: Cluster, places: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[str, str]]:
    """Return why nobody reads some of the places, as a word and a sentence. A member may have what is deleted."""
    topics = {at.topic for at in places}
    metadata = await cluster.refresh(topics) if topics else cluster.metadata
    absent = {}
    for at in places:
        name, topic = printable(at.topic), metadata.topics.get(at.topic)
        if topic is None:
            error = metadata.errors.get(at.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise KafkaError(error, f"Topic '{at.topic}': {error.description}")
            absent[at] = "topic-does-not-exist", f"Topic {name} does not exist."
        elif at.partition not in topic.partitions:
            words = f"There is no partition {at.partition} of {name}, which has 0 to {len(topic.partitions) - 1}."
            absent[at] = "partition-does-not-exist", words
        elif metadata.leader(at) is None:
            absent[at] = "no-leader", f"{name}-{at.partition} has no leader: nobody can read it now."
    return absent


def _of_absent(absent: Mapping[TopicPartition, tuple[str, str]]) -> list[PartitionAnswer]:
    return [
        PartitionAnswer(topic=at.topic, partition=at.partition, reason=reason, verdict=words)
        for at, (reason, words) in absent.items()
    ]


class _Partitions:
    def __init__(self, cluster: Cluster, group_id: str, group: GroupDescription | None) -> None:
        self._cluster = cluster
        self._id = group_id
        self._group = group
        self._owners = {} if group is None else {at: each for each in group.members for at in each.partitions}

    async def answers(self, topic: str | None, partition: int | None) -> list[PartitionAnswer]:
        if self._group is not None and self._group.group_type == SHARE:
            return await self._of_share_group(topic, partition)
        committed = {} if self._group is None else await fetch_offsets(self._cluster, self._id)
        places = sorted({*committed, *self._owners})
        if topic is not None:
            places = await self._named(topic, partition)
        absent = await _absent(self._cluster, places)
        there = [at for at in places if at not in absent]
        starts = await _offsets(self._cluster, there, EARLIEST_TIMESTAMP)
        ends = await _offsets(self._cluster, there, LATEST_TIMESTAMP)
        stable = await _offsets(self._cluster, there, LATEST_TIMESTAMP, isolation_level=READ_COMMITTED)
        answers = _of_absent(absent)
        for at in there:
            offset = committed[at].offset if at in committed else None
            answers.append(self._answer(at, offset, (starts[at], stable[at], ends[at])))
        return sorted(answers, key=lambda each: GETS_NOTHING.index(each.reason))

    async def _named(self, topic: str, partition: int | None) -> list[TopicPartition]:
        known = (await self._cluster.refresh([topic])).topics.get(topic)
        indexes = [0] if known is None else list(known.partitions)
        return [TopicPartition(topic, index) for index in (indexes if partition is None else [partition])]

    async def _of_share_group(self, topic: str | None, partition: int | None) -> list[PartitionAnswer]:
        offsets = await fetch_share_offsets(self._cluster, self._id)
        places = sorted({*offsets, *self._owners}) if topic is None else await self._named(topic, partition)
        absent = await _absent(self._cluster, places)
        answers = _of_absent(absent)
        for at in places:
            if at not in absent:
                answers.append(self._said(at, *self._of_share(at, offsets.get(at))))
        return sorted(answers, key=lambda each: GETS_NOTHING.index(each.reason))

    def _of_share(self, at: TopicPartition, offset: ShareOffset | None) -> tuple[str, str]:
        assert self._group is not None
        name, place = printable(self._id), f"{printable(at.topic)}-{at.partition}"
        state, words = _state(self._group)
        if state != "stable":
            return state, f"Group {name} {words}."
        if at not in self._owners:
            why = "" if offset is not None else ": there is no state of it"
            return "not-assigned", f"{place} is assigned to no member of group {name}{why}."
        if offset is None or offset.lag is None:
            return "not-told", f"The lag of group {name} in {place} is not known: nobody has read there yet."
        if offset.lag == 0:
            return "end-of-log", f"Group {name} has settled all records of {place}."
        waiting = f"{counted(offset.lag, 'record')} of {place} are not settled by group {name}"
        return "not-told", f"{waiting}. {_NOT_TOLD} whether they are in somebody's hands, or wait to be fetched."

    def _answer(self, at: TopicPartition, committed: int | None, offsets: tuple[int, int, int]) -> PartitionAnswer:
        start, stable, end = offsets
        return replace(
            self._said(at, *self._reason(at, committed, offsets)),
            committed=committed,
            log_start_offset=start,
            last_stable_offset=stable,
            high_watermark=end,
        )

    def _said(self, at: TopicPartition, reason: str, verdict: str) -> PartitionAnswer:
        """The answer with the member that has the partition."""
        owner = self._owners.get(at)
        return PartitionAnswer(
            topic=at.topic,
            partition=at.partition,
            reason=reason,
            verdict=verdict,
            member_id=None if owner is None else owner.member_id,
            client_id=None if owner is None else owner.client_id,
            host=None if owner is None else owner.client_host.lstrip("/"),
        )

    def _reason(self, at: TopicPartition, committed: int | None, offsets: tuple[int, int, int]) -> tuple[str, str]:
        group, name, place = self._group, printable(self._id), f"{printable(at.topic)}-{at.partition}"
        start, stable, end = offsets
        if group is None:
            return "no-such-group", f"There is no group {name}."
        state, words = _state(group)
        if state != "stable":
            return "group-rebalances" if state == "rebalancing" else state, f"Group {name} {words}."
        owner = self._owners.get(at)
        if owner is None:
            return "not-assigned", f"{place} is assigned to no member of group {name}, which is stable."
        whose = f"{printable(owner.member_id)} ({client(owner.client_id, owner.client_host)})"
        if committed is None:
            begin = f"earliest: {start}, latest: {end}, none: an error"
            words = f"where {whose} begins is its auto.offset.reset ({begin})"
            return "not-told", f"Group {name} has no committed offset in {place}: {words}."
        if not start <= committed <= end:
            words = f"is out of range: the log has {start} to {end}"
            return "offset-out-of-range", f"The committed offset {committed} of group {name} in {place} {words}."
        if committed == end:
            return "end-of-log", f"Group {name} has committed {place} to its end at {end}."
        if committed >= stable:
            words = f"the last stable offset is {stable}: read_committed does not pass it, though the end is {end}"
            return "behind-last-stable-offset", f"Group {name} has committed {place} to {committed}, and {words}."
        behind = (
            f"Group {name} has committed {place} to {committed}, {counted(end - committed, 'offset')} before its end"
        )
        return "not-told", f"{behind}. {_NOT_TOLD} whether {whose} fetches them."


# Transactions


async def _open(cluster: Cluster, at: TopicPartition, producer: ProducerState) -> OpenTransaction:
    first_offset = producer.current_txn_start_offset
    for listed in await list_transactions(cluster, producer_ids=[producer.producer_id]):
        try:
            _, described = await describe_transaction(cluster, listed.transactional_id)
        except KafkaError as error:
            if error.retriable:
                raise
            continue  # it is gone by now
        if _is_about(described, at):
            return OpenTransaction(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                first_offset=first_offset,
                last_timestamp_ms=producer.last_timestamp,
                transactional_id=listed.transactional_id,
                coordinator=listed.coordinator_id,
                state=described.transaction_state,
                started_timestamp_ms=described.transaction_start_time_ms,
                timeout_ms=described.transaction_timeout_ms,
            )
    return OpenTransaction(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        first_offset=first_offset,
        last_timestamp_ms=producer.last_timestamp,
        is_hanging=True,
        command=(
            f"pykbroker transactions --bootstrap-server HOST:PORT abort --topic {at.topic} --partition {at.partition} "
            f"--start-offset {first_offset}"
        ),
    )


def _is_about(described: DescribeTransactionsResponseTransactionState, at: TopicPartition) -> bool:
    return any(topic.topic == at.topic and at.partition in topic.partitions for topic in described.topics)


def _held_by(transactions: tuple[OpenTransaction, ...]) -> tuple[str, str]:
    if not transactions:
        return "nothing-holds-it", "no transaction is open"
    oldest = transactions[0]
    producer = f"producer {oldest.producer_id} at epoch {oldest.producer_epoch}, from offset {oldest.first_offset} on"
    if oldest.is_hanging:
        return "hanging-transaction", f"the transaction of {producer} hangs, no coordinator will end it"
    name, state = printable(oldest.transactional_id), oldest.state
    since = "" if oldest.started_timestamp_ms is None else f" since {moment(oldest.started_timestamp_ms)}"
    until = f", of at most {duration(oldest.timeout_ms or 0)}" if oldest.timeout_ms is not None else ""
    return "open-transaction", f"the transaction of {name} ({producer}) is {state}{since}{until}"
