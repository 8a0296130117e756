"""Nodes come, show that they live, and go: Kafka's `ClusterControlManager` and `BrokerHeartbeatManager`.

A broker registers fenced, is unfenced by a heartbeat once it has seen its own registration, and is fenced again when it
is silent for `broker.session.timeout.ms` or asks for it. The broker in the controller's own process needs no
heartbeats to stay: if it hangs, the controller hangs with it.
"""

from __future__ import annotations

from dataclasses import replace

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from pykbroker.protocol.messages.metadata_records import BrokerRegistrationChangeRecord
from pykbroker.protocol.schema import Message

from .controller_state import ControllerState
from .elections import fence_records, leads_any, unfence_records
from .image import METADATA_VERSION
from .refused import Refused
from .registrations import BrokerRegistration, ControllerRegistration, Endpoint

FENCE, UNFENCE, ENTER = 1, -1, 1


def check_epoch(state: ControllerState, broker_id: int, epoch: int) -> BrokerRegistration:
    """The registration for which a broker speaks. Raises Refused."""
    broker = state.image.brokers.get(broker_id)
    if broker is None:
        raise Refused(ErrorCode.BROKER_ID_NOT_REGISTERED)
    if broker.epoch != epoch:
        raise Refused(ErrorCode.STALE_BROKER_EPOCH)
    return broker


def register_broker(
    state: ControllerState, request: BrokerRegistrationRequest, now_ms: int
) -> tuple[list[Message], BrokerRegistrationResponse]:
    try:
        existing = _check_registration(state, request, now_ms)
    except Refused as refused:
        return [], BrokerRegistrationResponse(error_code=refused.error_code)
    same = existing is not None and existing.incarnation_id == request.incarnation_id
    records: list[Message] = []
    if existing is not None and not same and not existing.fenced:
        # The earlier incarnation left no word. Nobody may take the new one for the same leader: its log may be shorter.
        records += _fence(state, existing.id)
    registration = BrokerRegistration(
        id=request.broker_id,
        epoch=existing.epoch if existing is not None and same else state.next_offset + len(records),
        incarnation_id=request.incarnation_id,
        endpoints=tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in request.listeners),
        features={f.name: (f.min_supported_version, f.max_supported_version) for f in request.features},
        rack=request.rack,
        directories=tuple(request.log_dirs),
    )
    if existing is not None and same:
        registration = replace(
            registration, fenced=existing.fenced, in_controlled_shutdown=existing.in_controlled_shutdown
        )
    records.append(registration.to_record())
    state.contacts.pop(request.broker_id, None)
    return records, BrokerRegistrationResponse(broker_epoch=registration.epoch)


def _check_registration(
    state: ControllerState, request: BrokerRegistrationRequest, now_ms: int
) -> BrokerRegistration | None:
    if request.cluster_id != state.cluster_id:
        raise Refused(ErrorCode.INCONSISTENT_CLUSTER_ID)
    existing = state.image.brokers.get(request.broker_id)
    if existing is not None and existing.incarnation_id != request.incarnation_id:
        contact = state.contacts.get(existing.id)
        if contact is not None and contact[1] == existing.epoch and now_ms - contact[0] < _session_timeout_ms(state):
            raise Refused(ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    level = state.image.features.get(METADATA_VERSION, 0)
    supported = {f.name: (f.min_supported_version, f.max_supported_version) for f in request.features}
    low, high = supported.get(METADATA_VERSION, (0, 0))
    if not low <= level <= high:
        raise Refused(ErrorCode.UNSUPPORTED_VERSION)
    for other in state.image.brokers.values():
        if other.id != request.broker_id and set(other.directories) & set(request.log_dirs):
            raise Refused(ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    return existing


def register_controller(
    state: ControllerState, request: ControllerRegistrationRequest
) -> tuple[list[Message], ControllerRegistrationResponse]:
    registration = ControllerRegistration(
        id=request.controller_id,
        incarnation_id=request.incarnation_id,
        endpoints=tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in request.listeners),
        features={f.name: (f.min_supported_version, f.max_supported_version) for f in request.features},
    )
    return [registration.to_record()], ControllerRegistrationResponse(error_message=None)


def heartbeat(
    state: ControllerState, request: BrokerHeartbeatRequest, now_ms: int
) -> tuple[list[Message], BrokerHeartbeatResponse]:
    try:
        broker = check_epoch(state, request.broker_id, request.broker_epoch)
    except Refused as refused:
        return [], BrokerHeartbeatResponse(error_code=refused.error_code)
    if broker.id != state.node_id:
        state.contacts[broker.id] = (now_ms, broker.epoch)
    caught_up = request.current_metadata_offset >= broker.epoch
    if request.want_shut_down:
        return _shut_down(state, broker, caught_up)
    records: list[Message] = []
    fenced = broker.fenced
    if broker.fenced and not request.want_fence and caught_up:
        records, fenced = _unfence(state, broker), False
    elif not broker.fenced and request.want_fence:
        records, fenced = _fence(state, broker.id), True
    return records, BrokerHeartbeatResponse(is_caught_up=caught_up, is_fenced=fenced)


def _shut_down(
    state: ControllerState, broker: BrokerRegistration, caught_up: bool
) -> tuple[list[Message], BrokerHeartbeatResponse]:
    """A broker that leads something hands it over first and asks again."""
    if broker.fenced:
        return [], BrokerHeartbeatResponse(is_caught_up=caught_up, is_fenced=True, should_shut_down=True)
    if not broker.in_controlled_shutdown and leads_any(state.image, broker.id):
        records: list[Message] = [
            BrokerRegistrationChangeRecord(
                broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=ENTER
            ),
            *_hand_over(state, broker.id),
        ]
        return records, BrokerHeartbeatResponse(is_caught_up=caught_up, is_fenced=False)
    state.contacts.pop(broker.id, None)
    records = _fence(state, broker.id)
    return records, BrokerHeartbeatResponse(is_caught_up=caught_up, is_fenced=True, should_shut_down=True)


def fence_silent_brokers(state: ControllerState, now_ms: int) -> list[Message]:
    """Fences whoever was not heard of for a session timeout."""
    records: list[Message] = []
    for broker_id, (contact_ms, _) in list(state.contacts.items()):
        if now_ms - contact_ms >= _session_timeout_ms(state):
            del state.contacts[broker_id]
            broker = state.image.brokers.get(broker_id)
            if broker is not None and not broker.fenced:
                records += _fence(state, broker_id)
                break  # One at a time: the next one's elections start from what this one's changed.
    return records


def next_session_deadline_ms(state: ControllerState) -> int | None:
    if not state.contacts:
        return None
    return min(contact_ms for contact_ms, _ in state.contacts.values()) + _session_timeout_ms(state)


def _session_timeout_ms(state: ControllerState) -> int:
    return state.config.int("broker.session.timeout.ms")


def _hand_over(state: ControllerState, broker_id: int) -> list[Message]:
    def is_alive(other: int) -> bool:
        return other != broker_id and state.is_active(other)

    return list(fence_records(state.image, broker_id, is_alive, state.unclean_elections()))


def _fence(state: ControllerState, broker_id: int) -> list[Message]:
    broker = state.image.brokers[broker_id]
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=FENCE)
    return [*_hand_over(state, broker_id), change]


def _unfence(state: ControllerState, broker: BrokerRegistration) -> list[Message]:
    def is_alive(other: int) -> bool:
        return other == broker.id or state.is_active(other)

    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCE)
    return [change, *unfence_records(state.image, broker.id, is_alive, state.unclean_elections())]
