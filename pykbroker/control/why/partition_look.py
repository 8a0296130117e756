"""One partition of a consumer, looked at from the outside in: the rights, the partition, the group, the assignment, the
Fetch, its position. The first reason that holds is the answer.

What the wire does not tell is said to be unknown: a client that is paused and one that is busy both send no Fetch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from pykbroker.groups.offsets.committed_offsets import CommittedOffset
from pykbroker.protocol.errors import ErrorCode
from pykbroker.replication.partition import Partition
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.denials import Denial
from pykbroker.server.replicas.fetch_sightings import FetchedPartition, FetchingClient
from pykbroker.server.runtime.log_lines import printable

from .answers import GroupAnswer, Member, PartitionAnswer, SharedPartition
from .lso import why_lso
from .rights import decided_by, denials_of_group, denials_of_topic, group_is_denied
from .sources import Sources, Turns
from .throttle import why_throttle
from .wording import capital, client, counted, duration, moment

QUIET_MS: Final = 1_000
"""A client without a Fetch for so long does not fetch: one that reads sends the next one behind an answer."""


SHARE: Final = "share"
WITHOUT_MEMBERS: Final = frozenset({"no-such-group", "no-coordinator", "coordinated-elsewhere", "no-members"})
"""The reasons of a group by which no member of it is known."""
_MOST_NAMED: Final = 20
_MOST_COMPARED: Final = 10


class Sighting(NamedTuple):
    """A client's fetches of a partition, at a broker. last_ms: of the newest one, monotonic."""

    broker: Broker
    client: FetchingClient
    fetched: FetchedPartition
    last_ms: int

    @property
    def ago_ms(self) -> int:
        return max(self.broker.clock.monotonic_ms() - self.last_ms, 0)


@dataclass(slots=True)
class Asked:
    """The part of a question that is the same for all of its partitions."""

    group: GroupAnswer | None
    client_id: str | None
    committed: Mapping[tuple[str, int], CommittedOffset] = field(default_factory=dict)
    has_members: bool = False
    owners: dict[tuple[str, int], Member] = field(default_factory=dict)
    sharers: dict[tuple[str, int], list[Member]] = field(default_factory=dict)
    """The members of a share group that have a partition."""
    subscribers: Counter[str] = field(default_factory=Counter)
    """How many members subscribe to a topic."""
    clients: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many members have a client id and a host."""
    client_ids: set[str] = field(default_factory=set)

    async def take_members(self, members: Iterable[Member], turns: Turns) -> None:
        """Take what partitions ask of the group's members."""
        is_shared = self.group is not None and self.group.type == SHARE
        for member in members:
            self.has_members = True
            self.subscribers.update(member.subscription)
            self.clients[member.client_id, member.host] += 1
            self.client_ids.add(member.client_id)
            for topic, indexes in member.assignment.items():
                self.owners.update(dict.fromkeys(((topic, index) for index in indexes), member))
                for index in indexes if is_shared else ():
                    self.sharers.setdefault((topic, index), []).append(member)
                await turns.took(len(indexes) // 10)
            await turns.took(1 + len(member.subscription) // 10)

    @property
    def named_topics(self) -> str:
        """The topics that members subscribe to, as far as a sentence has room."""
        return ", ".join(map(printable, sorted(self.subscribers)[:_MOST_NAMED]))


class PartitionLook:
    """One partition, looked at from the outside in."""

    def __init__(self, sources: Sources, asked: Asked, topic: str, index: int) -> None:
        self._sources = sources
        self._asked = asked
        self._topic = topic
        self._index = index
        self._place = f"{printable(topic)}-{index}"
        self._owner = asked.owners.get((topic, index))
        self._committed = asked.committed.get((topic, index))
        self._log = sources.led(topic, index)
        self._sightings = self._alike()
        self._sighting = self._sightings[0] if self._sightings else None
        self._facts: list[str] = []

    async def answer(self) -> PartitionAnswer:
        """Return the first reason that holds, with what is known beside it."""
        reason, verdict = await self._reason()
        return self._answer(reason, verdict)

    def _answer(self, reason: str, verdict: str, shared: SharedPartition | None = None) -> PartitionAnswer:
        log, sighting, owner = self._log, self._sighting, self._owner
        return PartitionAnswer(
            topic=self._topic,
            partition=self._index,
            reason=reason,
            verdict=verdict,
            facts=tuple(self._facts),
            member_id=None if owner is None else owner.member_id,
            client_id=owner.client_id if owner is not None else self._asked.client_id,
            host=owner.host if owner is not None else None if sighting is None else sighting.client.host,
            committed=None if self._committed is None else self._committed.offset,
            position=None if sighting is None else sighting.fetched.offset,
            log_start_offset=None if log is None else log.log.log_start_offset,
            last_stable_offset=None if log is None else log.last_stable_offset,
            high_watermark=None if log is None else log.high_watermark,
            log_end_offset=None if log is None else log.log.log_end_offset,
            is_fetching=sighting is not None and self._is_fetching(sighting),
            last_fetch_ago_ms=None if sighting is None else sighting.ago_ms,
            shared=shared,
        )

    def _alike(self) -> list[Sighting]:
        """Return the sightings that may be the client's, the newest first, and that one alone where none is open.

        Clients of one host and client id look alike, of one group or of several. Those of this group have had the
        partition before, maybe.
        """
        found = self._of_client()
        if not found:
            return []
        newest = min(found, key=lambda each: each.ago_ms)
        place, owner = (self._topic, self._index), self._owner
        has_namesakes = owner is not None and self._asked.clients[owner.client_id, owner.host] > 1
        alike = [
            each
            for each in found
            if each.broker is newest.broker
            and each.client.is_open
            and (not has_namesakes or place in each.client.current)
        ]
        return sorted(alike, key=lambda each: each.ago_ms)[:_MOST_COMPARED] or [newest]

    def _of_client(self) -> list[Sighting]:
        owner = self._owner
        client_id = owner.client_id if owner is not None else self._asked.client_id
        if client_id is None or (self._asked.group is not None and owner is None and self._asked.client_id is None):
            return []
        host = None if owner is None else owner.host
        place = self._topic, self._index
        found = []
        for broker in self._sources.brokers:
            for each in broker.fetch_sightings or ():
                if each.client_id != client_id[:250] or (host is not None and each.host != host):
                    continue
                fetched = each.fetched(place)
                if fetched is not None:
                    found.append(Sighting(broker, each, *fetched))
        return found

    def _is_fetching(self, sighting: Sighting) -> bool:
        return sighting.client.waiting > 0 and (self._topic, self._index) in sighting.client.current

    # From the outside in

    async def _reason(self) -> tuple[str, str]:
        return self._of_rights() or self._of_partition() or self._of_group() or await self._of_reading()

    async def _of_reading(self) -> tuple[str, str]:
        """Look at the client's fetches; where they may be of several clients, at all of them."""
        facts, looks = self._facts, []
        candidates: Sequence[Sighting | None] = self._sightings or [None]
        for each in candidates:
            self._sighting, self._facts = each, []
            looks.append((await self._of_fetch() or await self._of_position(), self._facts))
        reasons = {reason for (reason, _), _ in looks}
        self._sighting = self._sightings[0] if self._sightings else None
        if len(reasons) == 1:
            self._facts = [*facts, *looks[0][1]]
            return looks[0][0]
        self._facts = [*facts, *dict.fromkeys(verdict for (_, verdict), _ in looks)]
        first = self._sightings[0].client
        verdict = (
            f"{len(looks)} connections of {client(first.client_id, first.host)} have fetched {self._place}, and fare "
            f"differently: the broker cannot tell which one it is about, unless each client has a client.id of its own."
        )
        return "not-told", verdict

    def _of_rights(self) -> tuple[str, str] | None:
        asked, owner = self._asked, self._owner
        whose = None if asked.group is not None and not asked.has_members else asked.client_ids
        if owner is not None:
            whose = {owner.client_id}
        denials = list(islice(denials_of_topic(self._sources, self._topic, whose), 5))
        self._facts += [sentence for sentence, _ in denials]
        still = next((sentence for sentence, is_denied in denials if is_denied), None)
        if still is None and self._sighting is not None:
            still = self._denied_now(self._sighting)
        group = asked.group
        if (
            still is None
            and group is not None
            and not asked.has_members
            and group_is_denied(self._sources, group.group)
        ):
            still = next(denials_of_group(self._sources, group.group))
        return None if still is None else ("not-authorized", still)

    def _denied_now(self, sighting: Sighting) -> str | None:
        authorizer, reader = sighting.broker.authorizer, sighting.client
        if authorizer is None:
            return None
        denial = Denial(
            reader.principal, reader.host, reader.client_id, Operation.READ, ResourceType.TOPIC, self._topic
        )
        question = denial.principal, denial.address, denial.operation, denial.resource_type, denial.name
        if authorizer.verdict(*question).is_allowed:
            return None
        decides = decided_by(self._sources, sighting.broker, denial)
        whose = client(reader.client_id, reader.host)
        return f"{printable(reader.principal)} ({whose}) may not READ TOPIC {printable(self._topic)}: {decides}."

    def _of_partition(self) -> tuple[str, str] | None:
        leader_id = self._sources.leader_id(self._topic, self._index)
        if leader_id is None or leader_id < 0:
            return "no-leader", f"{self._place} has no leader: nobody can read it now."
        return None

    def _of_group(self) -> tuple[str, str] | None:
        group = self._asked.group
        if group is None:
            return None
        if group.reason in WITHOUT_MEMBERS:
            self._tell_committed(None)
            return group.reason, group.verdict
        if group.reason == "not-ready":
            self._facts += group.facts
            return group.reason, group.verdict
        if group.reason == "rebalancing" and (self._owner is None or group.type == "classic"):
            self._facts += group.facts
            return "group-rebalances", group.verdict
        if self._owner is not None:
            return self._of_other_client(self._owner)
        subscribers = self._asked.subscribers[self._topic]
        if not subscribers:
            named = self._asked.named_topics or "nothing that is known"
            self._facts.append(f"Its members subscribe to {named}.")
            name = printable(group.group)
            return "not-subscribed", f"No member of group {name} subscribes to {printable(self._topic)}."
        self._facts.append(f"{counted(subscribers, 'member subscribes', 'members subscribe')} to it.")
        words = f"{self._place} is assigned to no member of group {printable(group.group)}"
        return "not-assigned", f"{words}, which is {group.state} at {group.epoch}."

    def _of_other_client(self, owner: Member) -> tuple[str, str] | None:
        """Look whether the partition is another client's, where one client of the group is asked for."""
        whose = client(owner.client_id, owner.host)
        self._facts.append(f"{self._place} is assigned to {printable(owner.member_id)} ({whose}).")
        same = self._asked.clients[owner.client_id, owner.host]
        if same > 1:
            words = f"{same} members have this client id and host: their Fetches look alike"
            self._facts.append(f"{words}, but for their partitions.")
        if self._asked.client_id is None or owner.client_id == self._asked.client_id:
            return None
        asker = printable(self._asked.client_id)
        has_it = f"{self._place} is assigned to {printable(owner.member_id)} ({whose})"
        return "not-assigned", f"{has_it}, not to client {asker}."

    async def _of_fetch(self) -> tuple[str, str] | None:
        leader_id = self._sources.leader_id(self._topic, self._index)
        if self._log is None:
            return "led-elsewhere", f"Broker {leader_id} leads {self._place}, and was not asked."
        sighting, log = self._sighting, self._log
        who = self._who()
        if sighting is None:
            return self._never_fetched(log, who)
        now_ms = sighting.broker.clock.monotonic_ms()
        reader = sighting.client
        self._tell_reader(sighting)
        until_ms = reader.throttled_until_ms
        if until_ms is not None and until_ms > now_ms:
            user = reader.principal.partition(":")[2]
            throttle = await why_throttle(self._sources, user, reader.client_id)
            self._facts += throttle.facts
            return "throttled", throttle.verdict
        fetched = sighting.fetched
        if fetched.error is ErrorCode.OFFSET_OUT_OF_RANGE and fetched.offset == fetched.error_offset:
            return self._out_of_range(sighting, log)
        if not self._is_fetching(sighting) and sighting.ago_ms > QUIET_MS:
            return self._no_fetch(sighting, who)
        return None

    def _who(self) -> str:
        owner = self._owner
        if owner is not None:
            return f"{printable(owner.member_id)} ({client(owner.client_id, owner.host)})"
        return capital(client(self._asked.client_id or "", ""))

    def _never_fetched(self, log: Partition, who: str) -> tuple[str, str]:
        self._tell_committed(log)
        leader = self._sources.broker(log.leader)
        if leader is None or leader.fetch_sightings is None:
            words = f"Fetches are not noted at broker {log.leader}"
            return "no-fetch", f"{words}: whether {who} reads {self._place} is unknown."
        if leader.fetch_sightings.has_forgotten:
            words = f"broker {log.leader} keeps fewer clients and partitions in mind than fetch there"
            return "not-told", f"Whether {who} has fetched {self._place} is not known any more: {words}."
        group = self._asked.group
        if group is not None and group.rebalances:
            began = moment(group.rebalances[0].timestamp_ms)
            self._facts.append(f"The last rebalance of the group began at {began}.")
        return "no-fetch", f"{who} has sent no Fetch for {self._place} since the broker started."

    def _no_fetch(self, sighting: Sighting, who: str) -> tuple[str, str]:
        self._tell_committed(self._log)
        owner = self._owner
        if owner is not None and owner.last_sign_ago_ms is not None:
            self._facts.append(f"Its last sign of life at the coordinator was {duration(owner.last_sign_ago_ms)} ago.")
        if sighting.client.waiting or sighting.broker.clock.monotonic_ms() - sighting.client.last_ms <= QUIET_MS:
            others = counted(len(sighting.client.current), "other partition")
            self._facts.append(f"Meanwhile it fetches {others}.")
        silent = f"{who} has sent no Fetch for {self._place} for {duration(sighting.ago_ms)}"
        if not sighting.client.is_open:
            return "no-fetch", f"{silent}, and has closed its connection."
        return "no-fetch", f"{silent}. The broker cannot tell paused from busy: neither asks for records."

    def _out_of_range(self, sighting: Sighting, log: Partition) -> tuple[str, str]:
        self._tell_committed(log)
        ago = duration(max(sighting.broker.clock.monotonic_ms() - sighting.fetched.error_ms, 0))
        asked, start, end = sighting.fetched.error_offset, log.log.log_start_offset, log.log.log_end_offset
        verdict = (
            f"{self._who()} asked for offset {asked} of {self._place} {ago} ago, which is out of range: the log has "
            f"{start} to {end}. What then is the client's auto.offset.reset."
        )
        return "offset-out-of-range", verdict

    async def _of_position(self) -> tuple[str, str]:
        log, sighting = self._log, self._sighting
        assert log is not None
        assert sighting is not None
        position, who = sighting.fetched.offset, self._who()
        start, end = log.log.log_start_offset, log.log.log_end_offset
        if not start <= position <= end:
            return self._out_of_range(sighting, log)
        self._tell_committed(log)
        stable, high_watermark = log.last_stable_offset, log.high_watermark
        if sighting.client.is_read_committed and position >= stable and stable < high_watermark:
            held = await why_lso(self._sources, self._topic, self._index)
            self._facts += (held.verdict, *held.facts)
            verdict = (
                f"{who} reads committed records alone, and waits at the last stable offset {stable} of {self._place}, "
                f"{counted(high_watermark - stable, 'offset')} before the high watermark."
            )
            return "behind-last-stable-offset", verdict
        if position >= high_watermark and high_watermark < end:
            return "behind-high-watermark", self._behind_high_watermark(log, who)
        if position >= high_watermark:
            return self._at_the_end(sighting, log, who)
        got = sighting.fetched.records_ms
        if got is not None:
            ago = duration(max(sighting.broker.clock.monotonic_ms() - got, 0))
            self._facts.append(f"It last got records {ago} ago.")
        verdict = f"{who} reads {self._place} at {position}, {high_watermark - position} before its high watermark."
        return "reads", verdict

    def _at_the_end(self, sighting: Sighting, log: Partition, who: str) -> tuple[str, str]:
        position, start = sighting.fetched.offset, log.log.log_start_offset
        first = min(each.fetched.first_offset for each in self._of_client())  # also by a connection of before
        if self._asked.group is not None and self._committed is None and first > start:
            verdict = (
                f"Group {printable(self._asked.group.group)} has no committed offset in {self._place}, and {who} began "
                f"at {first}, behind the {first - start} offsets that the log has before: where to begin is the "
                f"client's auto.offset.reset."
            )
            return "offset-reset", verdict
        return "end-of-log", f"{who} has read {self._place} to its end at {position}, and waits for more."

    def _behind_high_watermark(self, log: Partition, who: str) -> str:
        end = log.log.log_end_offset
        behind = [
            f"broker {each.replica_id} has {_up_to(each.log_end_offset)}"
            for each in log.in_sync.followers.values()
            if each.replica_id in log.in_sync.maximal and each.log_end_offset < end
        ]
        isr, replicas = (", ".join(map(str, ids)) for ids in (log.isr, log.replicas))
        self._facts.append(f"In sync are {isr} of {replicas}; {'; '.join(behind) or 'no one lags'}.")
        lacks = counted(end - log.high_watermark, "offset")
        where = f"the high watermark {log.high_watermark} of {self._place}"
        return f"{who} waits at {where}: not every in-sync replica has the {lacks} up to the log's end {end}."

    # Facts

    def _tell_reader(self, sighting: Sighting) -> None:
        reader = sighting.client
        level = "read_committed" if reader.is_read_committed else "read_uncommitted"
        last = f"its last Fetch was {duration(sighting.ago_ms)} ago"
        now = "a Fetch waits for records now" if self._is_fetching(sighting) else last
        self._facts.append(
            f"It fetches from offset {sighting.fetched.offset} with {level}, as {printable(reader.principal)}; {now}."
        )
        if sighting.fetched.error is not ErrorCode.NONE:
            ago = duration(max(sighting.broker.clock.monotonic_ms() - sighting.fetched.error_ms, 0))
            self._facts.append(
                f"{ago} ago its Fetch from {sighting.fetched.error_offset} was answered {sighting.fetched.error.name}."
            )

    def _tell_committed(self, log: Partition | None) -> None:
        if self._asked.group is None:
            return
        committed, name = self._committed, printable(self._asked.group.group)
        if committed is None:
            begin = ""
            if log is not None:
                begin = f" (earliest: {log.log.log_start_offset}, latest: {log.high_watermark}, none: an error)"
            self._facts.append(
                f"Group {name} has no committed offset in {self._place}: a member without a position of its own begins "
                f"where its auto.offset.reset says{begin}."
            )
            return
        words = f"Group {name} has committed offset {committed.offset} in {self._place}"
        if log is not None and committed.offset < log.log.log_start_offset:
            words += f", before the log's start {log.log.log_start_offset}: who begins there is out of range"
        elif log is not None and committed.offset > log.log.log_end_offset:
            words += f", behind the log's end {log.log.log_end_offset}: who begins there is out of range"
        self._facts.append(f"{words}.")


def _up_to(log_end_offset: int) -> str:
    return "told nothing yet" if log_end_offset < 0 else f"up to {log_end_offset}"
