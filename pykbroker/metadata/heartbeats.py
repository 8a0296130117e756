"""A broker shows that it lives, and is told whether it may serve: Kafka's `BrokerHeartbeatManager`.

A broker registers fenced, is unfenced by a heartbeat once it has seen its own registration, and is fenced again when it
is silent for `broker.session.timeout.ms` or asks for it. One that wants to shut down hands over what it leads, and goes
when the others have read of it: nobody looks for a leader where there is none.
"""

from __future__ import annotations

from enum import Enum

from pykbroker.long_work import LongWork
from pykbroker.protocol.errors import ApiError
from pykbroker.protocol.messages.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from pykbroker.protocol.schema import Message

from . import broker_changes
from .brokers import check_epoch
from .controller_state import ControllerState
from .registrations import BrokerRegistration
from .sessions import Session


class BrokerState(Enum):
    """Kafka's `BrokerControlState`."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


def heartbeat(
    state: ControllerState, request: BrokerHeartbeatRequest, now_ms: int
) -> LongWork[tuple[list[Message], BrokerHeartbeatResponse]]:
    try:
        broker = check_epoch(state, request.broker_id, request.broker_epoch)
    except ApiError as error:
        return [], BrokerHeartbeatResponse(error_code=error.code)
    offset = request.current_metadata_offset
    session = state.sessions.heard_of(broker.id, broker.epoch, offset, now_ms)
    caught_up = offset >= state.registered_at.get(broker.id, broker.epoch)
    current = _current(broker, session)
    following = _next(state, broker, session, current, request, caught_up=caught_up)
    records = yield from _transition(state, broker, current, following)
    records += yield from broker_changes.directories_offline(state, broker, request.offline_log_dirs)
    records += broker_changes.directories_cordoned(broker, request.cordoned_log_dirs)
    if following is BrokerState.CONTROLLED_SHUTDOWN and session.shutdown_offset is None:
        session.shutdown_offset = state.next_offset + len(records) - 1
    elif following is BrokerState.FENCED:
        session.shutdown_offset = None
    elif following is BrokerState.SHUTDOWN_NOW:
        state.sessions.forget(broker.id)
    return records, BrokerHeartbeatResponse(
        is_caught_up=caught_up,
        is_fenced=following in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
        should_shut_down=following is BrokerState.SHUTDOWN_NOW,
    )


def _current(broker: BrokerRegistration, session: Session) -> BrokerState:
    if broker.fenced:
        return BrokerState.FENCED
    return BrokerState.UNFENCED if session.shutdown_offset is None else BrokerState.CONTROLLED_SHUTDOWN


def _next(
    state: ControllerState,
    broker: BrokerRegistration,
    session: Session,
    current: BrokerState,
    request: BrokerHeartbeatRequest,
    *,
    caught_up: bool,
) -> BrokerState:
    failed = set(broker.directories) & {bytes(each) for each in request.offline_log_dirs}
    match current:
        case BrokerState.FENCED:
            if request.want_shut_down:
                return BrokerState.SHUTDOWN_NOW
            # What lies in a directory that has just failed must not be led from here.
            stays = request.want_fence or not caught_up or failed
            return BrokerState.FENCED if stays else BrokerState.UNFENCED
        case BrokerState.UNFENCED if request.want_fence or (failed and len(failed) == len(broker.directories)):
            return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
        case BrokerState.UNFENCED if request.want_shut_down:
            leads = state.partitions.leads_any(broker.id)
            return BrokerState.CONTROLLED_SHUTDOWN if leads else BrokerState.SHUTDOWN_NOW
        case BrokerState.CONTROLLED_SHUTDOWN:
            is_known = session.shutdown_offset is not None and state.sessions.have_read(
                session.shutdown_offset, state.active_brokers()
            )
            if is_known and not state.partitions.leads_any(broker.id):
                return BrokerState.SHUTDOWN_NOW
            return BrokerState.CONTROLLED_SHUTDOWN
    return current


def _transition(
    state: ControllerState, broker: BrokerRegistration, current: BrokerState, following: BrokerState
) -> LongWork[list[Message]]:
    if following is current:
        return []
    match following:
        case BrokerState.UNFENCED:
            return (yield from broker_changes.unfenced(state, broker))
        case BrokerState.CONTROLLED_SHUTDOWN:
            return (yield from broker_changes.shutting_down(state, broker))
        case BrokerState.FENCED | BrokerState.SHUTDOWN_NOW:
            return [] if broker.fenced else (yield from broker_changes.fenced(state, broker))


def fence_silent_broker(state: ControllerState, now_ms: int) -> LongWork[list[Message]]:
    """Fence one that was not heard of for a session timeout; the next one's elections start from what that changed."""
    while (broker_id := state.sessions.take_expired(now_ms)) is not None:
        broker = state.image.brokers.get(broker_id)
        if broker is not None and not broker.fenced:
            return (yield from broker_changes.fenced(state, broker))
    return []
