"""Changes of partitions when a broker comes, leaves, or loses a disk: the records for each of these.

Kafka has them as `handleBrokerFenced`, `handleBrokerUnfenced` and so on in `ReplicationControlManager`. Not here: when
they are due (`heartbeats`, `brokers`).
"""

from __future__ import annotations

from collections.abc import Iterable

from pykbroker.long_work import LongWork
from pykbroker.protocol.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    UnregisterBrokerRecord,
)
from pykbroker.protocol.schema import Message

from .controller_state import ControllerState
from .elections import leader_and_isr_records
from .registrations import BrokerRegistration

FENCE, UNFENCE, ENTER = 1, -1, 1


def fenced(state: ControllerState, broker: BrokerRegistration) -> LongWork[list[Message]]:
    """Fence a broker: it leads nothing and is in sync with nothing any more."""
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE)
    return [*(yield from _out_of_isrs(state, broker.id)), change]


def unfenced(state: ControllerState, broker: BrokerRegistration) -> LongWork[list[Message]]:
    """Unfence a broker: it leads what nobody leads, if it may."""
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCE)
    led = yield from leader_and_isr_records(state, state.partitions.leaderless, back=broker.id)
    return [change, *led]


def shutting_down(state: ControllerState, broker: BrokerRegistration) -> LongWork[list[Message]]:
    """Shut a broker down: it hands over what it leads, and stays until the others know."""
    records: list[Message] = []
    if not broker.in_controlled_shutdown:
        records.append(
            BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=ENTER)
        )
    return [*records, *(yield from _out_of_isrs(state, broker.id))]


def unregistered(state: ControllerState, broker: BrokerRegistration) -> LongWork[list[Message]]:
    gone = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    in_sync = yield from _out_of_isrs(state, broker.id)
    eligible = yield from _out_of_elrs(state, broker.id, unclean=False)
    return [*in_sync, *eligible, gone]


def restarted(state: ControllerState, broker_id: int, *, cleanly: bool) -> LongWork[list[Message]]:
    """Another process has the broker's id now; without a clean shutdown its logs may have lost their ends.

    Where eligible leader replicas are kept, it is none of them then, since nobody may count on what it had.
    """
    if cleanly or not state.elr_enabled:
        return [*(yield from _out_of_isrs(state, broker_id))]
    in_sync = yield from leader_and_isr_records(
        state, state.partitions.in_sync(broker_id), gone=broker_id, unclean=True
    )
    return [*in_sync, *(yield from _out_of_elrs(state, broker_id, unclean=True))]


def directories_offline(
    state: ControllerState, broker: BrokerRegistration, offline: Iterable[bytes]
) -> LongWork[list[Message]]:
    """The replicas in these directories are gone, the broker stays."""
    known = [each for each in broker.directories if each in {bytes(directory) for directory in offline}]
    online = [each for each in broker.directories if each not in known]
    if not known or not online:
        return []  # A registration without directories cannot be recorded; who has none left is fenced.
    records: list[Message] = []
    for directory in known:
        there = state.partitions.in_directory(directory)
        records += yield from leader_and_isr_records(state, there, gone=broker.id)
    records.append(BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=online))
    return records


def directories_cordoned(
    broker: BrokerRegistration, cordoned: Iterable[bytes] | None
) -> list[BrokerRegistrationChangeRecord]:
    """No new replicas are to lie there (KIP-1066). None: the broker does not say."""
    if cordoned is None:
        return []
    told = [bytes(each) for each in cordoned]
    if broker.cordoned_log_dirs is not None and set(told) == set(broker.cordoned_log_dirs):
        return []
    return [BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=told)]


def _out_of_isrs(state: ControllerState, broker_id: int) -> LongWork[list[PartitionChangeRecord]]:
    return leader_and_isr_records(state, state.partitions.in_sync(broker_id), gone=broker_id)


def _out_of_elrs(state: ControllerState, broker_id: int, *, unclean: bool) -> LongWork[list[PartitionChangeRecord]]:
    return leader_and_isr_records(state, state.partitions.eligible(broker_id), gone=broker_id, unclean=unclean)
