"""Sessions of brokers: when each was last heard of, and how far it had read the metadata log, as heartbeats tell.

The models are Kafka's `BrokerHeartbeatTracker` and `BrokerHeartbeatManager`. Nothing of it is recorded: a new
controller gives every broker a whole session, and hears from it before that is over. The broker in the controller's own
process needs no heartbeats to stay: if it hangs, the controller hangs with it, and it reads what the controller writes.

A session counts from the arrival of the latest heartbeat, not from its turn with the controller. A controller that
notices the end of a session too late was stopped meanwhile, or had no processor: what brokers sent lies in its sockets.
So the session goes on once, for as long as the notice was late and no longer than `LONGEST_EXCUSE_MS`. Apache Kafka,
which reads sockets in threads of their own, has no such rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

NOT_HEARD_OF: Final = -1
LONGEST_EXCUSE_MS: Final = 1000
"""To read what lies in sockets does not take longer, be the controller stopped for ever so long."""


@dataclass(slots=True)
class Session:
    """The session of one broker.

    epoch: of its registration; NOT_HEARD_OF where only an earlier controller heard of it.
    shutdown_offset: where the log ended when it began a controlled shutdown with this controller.
    excused: since the last heartbeat, for a notice that came late.
    """

    contact_ms: int
    epoch: int
    metadata_offset: int = -1
    shutdown_offset: int | None = None
    excused: bool = False


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
        session.excused = False
        return session

    def heartbeat_arrived(self, broker_id: int, now_ms: int) -> None:
        """A heartbeat of the broker's latest registration waits for its turn with the controller."""
        session = self._sessions.get(broker_id)
        if session is not None:
            session.contact_ms, session.excused = now_ms, False

    def forget(self, broker_id: int) -> None:
        self._sessions.pop(broker_id, None)

    def is_valid(self, broker_id: int, epoch: int, now_ms: int) -> bool:
        """Tell whether a broker with that epoch was heard of by this controller, and may be there still."""
        session = self._sessions.get(broker_id)
        return session is not None and session.epoch == epoch and now_ms - session.contact_ms < self._timeout_ms

    def take_expired(self, now_ms: int) -> int | None:
        """One that was silent for too long; it is forgotten. Those that are excused from now on are not among them."""
        for broker_id, session in self._sessions.items():
            late_ms = now_ms - session.contact_ms - self._timeout_ms
            if broker_id == self._node_id or late_ms < 0:
                continue
            if late_ms and not session.excused:
                session.contact_ms += late_ms + min(late_ms, LONGEST_EXCUSE_MS)
                session.excused = True
                continue
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
