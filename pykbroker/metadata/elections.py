"""Elections when brokers come and go: `generateLeaderAndIsrUpdates` of Kafka's `ReplicationControlManager`.

`partition_change` has the rules for a single partition; this module says what the state of the cluster allows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pykbroker.long_work import LongWork, ordered
from pykbroker.protocol.messages.metadata_records import PartitionChangeRecord

from .controller_state import ControllerState
from .image import TopicState
from .min_isr import MIN_ISR
from .partition_change import Election, PartitionChange
from .partition_index import PartitionKey
from .partition_state import PartitionState

UNCLEAN: Final = "unclean.leader.election.enable"
STEPS_PER_CHANGE: Final = 12
"""Of work on one partition (`long_work`)."""


class PartitionElections:
    """The facts that one operation looks up once, of the cluster and of each topic's configuration.

    gone: a broker that may not lead any more, though the image says it is active. back: one that may already.
    """

    def __init__(self, state: ControllerState, *, gone: int | None = None, back: int | None = None) -> None:
        self._state = state
        self._brokers = {
            broker.id: broker
            for broker in state.image.brokers.values()
            if broker.id != gone and (broker.id == back or state.is_active(broker.id))
        }
        self._defaults = state.topic_defaults()
        self._elr_enabled = state.elr_enabled
        self._topics: dict[str, tuple[int, bool]] = {}

    def change(self, topic: TopicState, index: int) -> PartitionChange:
        """Return the change of a partition that is there; the caller fills in what is wanted of it."""
        partition = topic.partitions[index]
        min_isr, unclean = self._of_topic(topic)
        return PartitionChange(
            topic.topic_id,
            index,
            partition,
            may_lead=lambda broker_id: self._may_lead(partition, broker_id),
            min_isr=min_isr,
            elr_enabled=self._elr_enabled,
            election=Election.UNCLEAN if unclean else Election.ONLINE,
            default_directory=self._state.default_directory,
        )

    def may_be_unclean(self, topic: TopicState) -> bool:
        return self._of_topic(topic)[1]

    def _may_lead(self, partition: PartitionState, broker_id: int) -> bool:
        broker = self._brokers.get(broker_id)
        if broker is None or broker_id not in partition.replicas:
            return False
        return broker.has_online(partition.directory(broker_id))

    def _of_topic(self, topic: TopicState) -> tuple[int, bool]:
        known = self._topics.get(topic.name)
        if known is None:
            configs = {**self._defaults, **self._state.image.topic_config(topic.name)}
            factor = len(topic.partitions[min(topic.partitions)].replicas)
            known = min(int(configs[MIN_ISR]), factor), configs[UNCLEAN].strip().lower() == "true"
            self._topics[topic.name] = known
        return known


def leader_and_isr_records(
    state: ControllerState,
    partitions: Iterable[PartitionKey],
    *,
    gone: int | None = None,
    back: int | None = None,
    unclean: bool = False,
) -> LongWork[list[PartitionChangeRecord]]:
    """Take the broker that is gone out of the ISRs, and elects where it led or nobody does.

    unclean: it is back after an unclean shutdown, and may have lost what it had in sync: nor is it eligible any more.
    """
    elections = PartitionElections(state, gone=gone, back=back)
    records = []
    for topic_id, index in (yield from ordered(partitions)):
        topic = state.image.topic_by_id(topic_id)
        assert topic is not None, "the index follows the image"
        change = elections.change(topic, index)
        change.isr = [each for each in change.partition.isr if each != gone]
        change.unclean_shutdown = gone if unclean else None
        record = change.record()
        if record is not None:
            records.append(record)
        yield STEPS_PER_CHANGE
    return records
