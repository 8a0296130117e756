"""One partition of a share group, looked at from the outside in: the rights, the partition, the group, its state, the
leader, the records. The first reason that holds is the answer.

A share consumer has no position. It gets what is available: records that nobody has in hand, that are not settled, and
that were not delivered too often. So a consumer that gets nothing waits for others to be done with theirs, or for more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pykbroker.groups.share.share_group import ShareGroup
from pykbroker.metadata.topic_names import SHARE_STATE_TOPIC
from pykbroker.replication.partition import Partition
from pykbroker.server.node.broker import Broker
from pykbroker.server.runtime.log_lines import printable
from pykbroker.sharing.persister import SharePartitionKey

from .answers import PartitionAnswer, SharedPartition
from .lso import why_lso
from .partition_look import PartitionLook
from .shared_partitions import SharedPartitions, facts_of, holder_of
from .sources import NoCoordinator
from .wording import client, counted, duration, moment

if TYPE_CHECKING:
    from pykbroker.server.sharing.led_share_partition import LedSharePartition
    from pykbroker.sharing.partition.share_partition import SharePartition

_MOST_SHARERS: Final = 100
_READ_COMMITTED: Final = "read_committed"


class ShareLook(PartitionLook):
    """One partition of a share group."""

    _shared: SharedPartition | None = None

    async def answer(self) -> PartitionAnswer:
        reason, verdict = await self._reason()
        if self._shared is not None:
            self._facts += facts_of(self._shared, self._sources.any.clock.now_ms())
        return self._answer(reason, verdict, self._shared)

    @property
    def _group_id(self) -> str:
        assert self._asked.group is not None
        return self._asked.group.group

    @property
    def _name(self) -> str:
        return printable(self._group_id)

    def _of_group(self) -> tuple[str, str] | None:
        sharers = self._asked.sharers.get((self._topic, self._index), [])
        asker = self._asked.client_id
        if sharers and asker is not None and all(each.client_id != asker for each in sharers):
            first = sharers[0]
            others = f" and {counted(len(sharers) - 1, 'other member')}" if len(sharers) > 1 else ""
            whose = f"{printable(first.member_id)} ({client(first.client_id, first.host)}){others}"
            return "not-assigned", f"{self._place} is assigned to {whose}, not to client {printable(asker)}."
        if sharers:
            names = ", ".join(printable(each.member_id) for each in sharers[:3])
            more = f" and {len(sharers) - 3} more" if len(sharers) > 3 else ""
            self._facts.append(f"{self._place} is assigned to {names}{more}.")
            return None
        return self._of_state() or super()._of_group()

    def _of_state(self) -> tuple[str, str] | None:
        """Look whether the partition waits for its state: no member gets it before."""
        group, subscribers = self._share_group(), self._asked.subscribers[self._topic]
        if group is None or not subscribers:
            return None
        state = SharedPartitions(self._sources, group).state_of(self._topic, self._index)
        if state == "initialized":
            return None
        words = f"Group {self._name} has no state of {self._place} yet, so no member is assigned it"
        if state == "initializing":
            words += ": the share coordinator is asked to create it"
        self._tell_coordinator()
        return "not-initialized", f"{words}."

    def _share_group(self) -> ShareGroup | None:
        found = self._sources.coordinator_of(self._group_id)
        group = None if isinstance(found, NoCoordinator) else found[1].groups.get(self._group_id)
        return group if isinstance(group, ShareGroup) else None

    def _tell_coordinator(self) -> None:
        """Say who coordinates the state of the partition, or that nobody does."""
        image = self._sources.image
        topic, states = image.topic(self._topic), image.topic(SHARE_STATE_TOPIC)
        if topic is None:
            return
        if states is None:
            self._facts.append(f"There is no topic {SHARE_STATE_TOPIC} yet: it is created when a share group needs it.")
            return
        key = SharePartitionKey(self._group_id, topic.topic_id, self._index)
        place = self._sources.any.share_coordinator.partition_of(key)
        leader_id = None if place is None else self._sources.leader_id(SHARE_STATE_TOPIC, place)
        if leader_id is None or leader_id < 0:
            words = "has no leader: nobody coordinates the state, and members get nothing until one is there"
            self._facts.append(f"{SHARE_STATE_TOPIC}-{place} {words}.")
        else:
            self._facts.append(f"Broker {leader_id} coordinates the state, in {SHARE_STATE_TOPIC}-{place}.")

    async def _of_reading(self) -> tuple[str, str]:
        group = self._share_group()
        if group is None:  # the group's coordinator has changed since
            return "not-told", f"Group {self._name} is coordinated elsewhere by now."
        look = SharedPartitions(self._sources, group)
        found = look.led(self._topic, self._index)
        if found is None:
            leader_id = self._sources.leader_id(self._topic, self._index)
            return "led-elsewhere", f"Broker {leader_id} leads {self._place}, and was not asked."
        broker, partition, led = found
        self._shared = look.look(self._topic, self._index, "initialized")
        silent = self._without_session(broker, partition)
        if led is None:
            words = (
                f"No member of group {self._name} has sent a ShareFetch for {self._place} to broker {partition.leader}"
            )
            return "no-fetch", f"{words}, or none that is still connected has."
        share = led.active
        if share is None:
            return self._loading(led)
        if silent is not None:
            return silent
        return await self._of_records(broker, partition, led, share)

    def _without_session(self, broker: Broker, partition: Partition) -> tuple[str, str] | None:
        """Look whether any of the members that have the partition reads it: by a session at its leader."""
        from pykbroker.sharing.sessions import TopicIdPartition

        shares, at = broker.share_partitions, TopicIdPartition(partition.topic_id, self._index)
        sharers = self._asked.sharers.get((self._topic, self._index), [])[:_MOST_SHARERS]
        wanted = [each for each in sharers if self._asked.client_id in (None, each.client_id)]
        for each in wanted:
            session = shares.session_of(self._group_id, each.member_id)
            if session is not None and at in session.partitions:
                return None
        if not wanted:
            return None
        first = wanted[0]
        whose = f"{printable(first.member_id)} ({client(first.client_id, first.host)})"
        others = f" nor {counted(len(wanted) - 1, 'other member')}" if len(wanted) > 1 else ""
        neither = "Neither " if others else ""
        verdict = f"{neither}{whose}{others} has a share session at broker {partition.leader} with {self._place}"
        if first.last_sign_ago_ms is not None:
            sign = duration(first.last_sign_ago_ms)
            self._facts.append(f"Its last sign of life at the group's coordinator was {sign} ago.")
        if not others:
            verdict = f"{whose} has no share session at broker {partition.leader} with {self._place}"
        return "no-fetch", f"{verdict}: it asks for no records there."

    def _loading(self, led: LedSharePartition) -> tuple[str, str]:
        self._tell_coordinator()
        if led.error is not None:
            self._facts.append(f"The last one who read the state was answered {led.error.code.name}.")
        words = f"Broker {led.partition.leader} reads the state of {self._place} for group {self._name}"
        return "state-loading", f"{words} from the share coordinator, and hands nothing out until it has it."

    async def _of_records(
        self, broker: Broker, partition: Partition, led: LedSharePartition, share: SharePartition
    ) -> tuple[str, str]:
        shared = self._shared
        assert shared is not None
        limits = broker.share_partitions.limits(self._group_id)
        next_offset, end = share.next_fetch_offset(), partition.log.log_end_offset
        if not share.can_acquire(limits):
            words = (
                f"Group {self._name} has {share.in_flight} offsets of {self._place} in flight, from "
                f"{share.start_offset} on, as many as it may (share.partition.max.record.locks is "
                f"{limits.max_record_locks})"
            )
            return "records-locked", f"{words}: more are handed out when the first of them are settled."
        committed = broker.share_partitions.group_values(self._group_id).str("share.isolation.level") == _READ_COMMITTED
        stable, high_watermark = partition.last_stable_offset, partition.high_watermark
        if next_offset < (stable if committed else high_watermark):
            return self._available(shared, next_offset, led)
        if committed and stable < high_watermark:
            held = await why_lso(self._sources, self._topic, self._index)
            self._facts += (held.verdict, *held.facts)
            verdict = (
                f"Group {self._name} reads committed records alone (share.isolation.level), and waits at the last "
                f"stable offset {stable} of {self._place}, {counted(high_watermark - stable, 'offset')} before the "
                "high watermark."
            )
            return "behind-last-stable-offset", verdict
        if next_offset >= high_watermark and high_watermark < end:
            return "behind-high-watermark", self._behind_high_watermark(partition, f"Group {self._name}")
        if shared.acquired:
            return self._locked(shared)
        if led.is_writing:
            self._tell_coordinator()
            words = f"What members of group {self._name} said of the last records of {self._place} is being written"
            return "state-writing", f"{words} to the share coordinator."
        verdict = f"Group {self._name} has settled all records of {self._place}, to its end at {high_watermark}"
        return "end-of-log", f"{verdict}, and waits for more."

    def _available(self, shared: SharedPartition, next_offset: int, led: LedSharePartition) -> tuple[str, str]:
        waiting = counted(len(led.watchers), "ShareFetch waits", "ShareFetches wait")
        self._facts.append(f"{waiting} for it now.")
        words = f"Records of {self._place} are available for group {self._name}, from offset {next_offset} on"
        return "reads", f"{words}: the next ShareFetch gets them."

    def _locked(self, shared: SharedPartition) -> tuple[str, str]:
        """All that there is, and that is not settled, is in somebody's hands."""
        first = shared.holders[0]
        others = f" and {counted(len(shared.holders) - 1, 'other member')}" if len(shared.holders) > 1 else ""
        verdict = (
            f"All {counted(shared.acquired, 'record')} of {self._place} that group {self._name} has not settled are "
            f"locked by {holder_of(first)}{others}, the first of them until {moment(first.until_timestamp_ms)}"
        )
        return "records-locked", f"{verdict}: then others get them, if nothing is said of them."
