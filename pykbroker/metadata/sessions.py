"""Sessions of brokers: when each was last heard of, and how far it had read the metadata log, as heartbeats tell.

The models are Kafka's `BrokerHeartbeatTracker` and `BrokerHeartbeatManager`. Nothing of it is recorded: a new
controller gives every broker a whole session, and hears from it before that is over. The broker in the controller's own
process needs no heartbeats to stay: if it hangs, the controller hangs with it, and it reads what the controller writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

NOT_HEARD_OF: Final = -1


@dataclass(slots=True)
class Session:
    """The session of one broker.

    epoch: of its registration; NOT_HEARD_OF where only an earlier controller heard of it.
    shutdown_offset: where the log ended when it began a controlled shutdown with this controller.
    """

    contact_ms: int
    epoch: int
    metadata_offset: int = -1
    shutdown_offset: int | None = None


class Sessions:
    """The sessions of all brokers. timeout_ms: `broker.session.timeout.ms`."""

    def __init__(self, node_id: int, timeout_ms: int) -> None:
        self._node_id = node_id
        self._timeout_ms = timeout_ms
        self._sessions: dict[int, Session] = {}

    def start(self, unfenced: Iterable[int], now_ms: int) -> None:
        """This node is the active controller from now on."""
        self._sessions = {broker_id: Session(now_ms, NOT_HEARD_OF) for broker_id in unfenced}

    def heard_of(self, broker_id: int, epoch: int, metadata_offset: int, now_ms: int) -> Session:
        session = self._sessions.setdefault(broker_id, Session(now_ms, epoch))
        session.contact_ms, session.epoch, session.metadata_offset = now_ms, epoch, metadata_offset
        return session

    def forget(self, broker_id: int) -> None:
        self._sessions.pop(broker_id, None)

    def is_valid(self, broker_id: int, epoch: int, now_ms: int) -> bool:
        """Tell whether a broker with that epoch was heard of by this controller, and may be there still."""
        session = self._sessions.get(broker_id)
        return session is not None and session.epoch == epoch and now_ms - session.contact_ms < self._timeout_ms

    def take_expired(self, now_ms: int) -> int | None:
        """One that was silent for too long; it is forgotten."""
        for broker_id, session in self._sessions.items():
            if broker_id != self._node_id and now_ms - session.contact_ms >= self._timeout_ms:
                del self._sessions[broker_id]
                return broker_id
        return None

    def next_deadline_ms(self) -> int | None:
        contacts = [each.contact_ms for broker_id, each in self._sessions.items() if broker_id != self._node_id]
        return min(contacts) + self._timeout_ms if contacts else None

    def have_read(self, offset: int, brokers: Iterable[int]) -> bool:
        """Tell whether all of these brokers know the metadata up to that offset, as far as they have told."""
        others = [self._sessions.get(each) for each in brokers if each != self._node_id]
        return all(each is not None and each.metadata_offset >= offset for each in others)
