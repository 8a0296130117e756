"""Nodes register and unregister: Kafka's `ClusterControlManager`. Heartbeats are elsewhere (`heartbeats`).

A broker's epoch is where the log ended when it registered: another incarnation has another one. The record of its
registration may lie behind those that clean up after the last incarnation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pykbroker.long_work import LongWork
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.brokers import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UnregisterControllerRequest,
    UnregisterControllerResponse,
)
from pykbroker.protocol.messages.metadata_records import UnregisterControllerRecord
from pykbroker.protocol.schema import Message
from pykbroker.protocol.uuids import RESERVED_DIRECTORIES

from . import broker_changes
from .controller_state import ControllerState
from .features import UNREGISTERED_CONTROLLERS_SINCE, feature_level
from .image import METADATA_VERSION
from .registrations import BrokerRegistration, ControllerRegistration, Endpoint

KRAFT_VERSION: Final = "kraft.version"


def check_epoch(state: ControllerState, broker_id: int, epoch: int) -> BrokerRegistration:
    """The registration for which a broker speaks. Raises ApiError."""
    broker = state.image.brokers.get(broker_id)
    if broker is None or broker.epoch != epoch:
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH)
    return broker


def register_broker(
    state: ControllerState, request: BrokerRegistrationRequest, now_ms: int
) -> LongWork[tuple[list[Message], BrokerRegistrationResponse]]:
    try:
        existing = _check_registration(state, request, now_ms)
    except ApiError as error:
        return [], BrokerRegistrationResponse(error_code=error.code)
    amended = existing if existing is not None and existing.incarnation_id == request.incarnation_id else None
    records: list[Message] = []
    if amended is None:
        cleanly = existing is not None and existing.epoch == request.previous_broker_epoch
        records += yield from broker_changes.restarted(state, request.broker_id, cleanly=cleanly)
        state.sessions.forget(request.broker_id)
    registration = BrokerRegistration(
        id=request.broker_id,
        epoch=state.next_offset if amended is None else amended.epoch,
        incarnation_id=request.incarnation_id,
        endpoints=tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in request.listeners),
        features=_supported(request),
        rack=request.rack,
        fenced=amended is None or amended.fenced,
        in_controlled_shutdown=amended is not None and amended.in_controlled_shutdown,
        directories=tuple(request.log_dirs),
    )
    records.append(registration.to_record())
    return records, BrokerRegistrationResponse(broker_epoch=registration.epoch)


def _supported(request: BrokerRegistrationRequest) -> dict[str, tuple[int, int]]:
    return {each.name: (each.min_supported_version, each.max_supported_version) for each in request.features}


def _check_registration(
    state: ControllerState, request: BrokerRegistrationRequest, now_ms: int
) -> BrokerRegistration | None:
    """Raises ApiError."""
    if request.cluster_id != state.cluster_id:
        raise ApiError(ErrorCode.INCONSISTENT_CLUSTER_ID)
    existing = state.image.brokers.get(request.broker_id)
    is_another = existing is not None and existing.incarnation_id != request.incarnation_id
    if existing is not None and is_another and state.sessions.is_valid(existing.id, existing.epoch, now_ms):
        raise ApiError(ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    _check_directories(state, request)
    _check_features(state, _supported(request))
    return existing


def _check_directories(state: ControllerState, request: BrokerRegistrationRequest) -> None:
    directories = set(request.log_dirs)
    if not directories or len(directories) < len(request.log_dirs) or directories & RESERVED_DIRECTORIES:
        raise ApiError(ErrorCode.INVALID_REGISTRATION)
    for other in state.image.brokers.values():
        if other.id != request.broker_id and directories & set(other.directories):
            raise ApiError(ErrorCode.INVALID_REGISTRATION)


def _check_features(state: ControllerState, supported: Mapping[str, tuple[int, int]]) -> None:
    """The broker must be able to work at every level that the cluster has finalized; of a feature it may know none."""
    if METADATA_VERSION not in supported:
        raise ApiError(ErrorCode.INVALID_REGISTRATION)
    for name in {*supported, *state.image.features} - {KRAFT_VERSION}:
        low, high = supported.get(name, (0, 0))
        if not low <= state.image.features.get(name, 0) <= high:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)


def unregister_broker(
    state: ControllerState, request: UnregisterBrokerRequest
) -> LongWork[tuple[list[Message], UnregisterBrokerResponse]]:
    """Unregister a broker for good: others lead what it led, and nobody waits for its replicas."""
    broker = state.image.brokers.get(request.broker_id)
    if broker is None:
        message = f"Broker ID {request.broker_id} is not currently registered"
        return [], UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message=message)
    state.sessions.forget(broker.id)
    return (yield from broker_changes.unregistered(state, broker)), UnregisterBrokerResponse()


def register_controller(
    state: ControllerState, request: ControllerRegistrationRequest
) -> tuple[list[Message], ControllerRegistrationResponse]:
    registration = ControllerRegistration(
        id=request.controller_id,
        incarnation_id=request.incarnation_id,
        endpoints=tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in request.listeners),
        features={f.name: (f.min_supported_version, f.max_supported_version) for f in request.features},
    )
    return [registration.to_record()], ControllerRegistrationResponse(error_message="")


def unregister_controller(
    state: ControllerState, request: UnregisterControllerRequest
) -> tuple[list[Message], UnregisterControllerResponse]:
    """Forget a controller that is gone for good, so that the levels that it knows count no more.

    Whether it has a vote is not looked at, as in Kafka; it registers again where it comes back.
    """
    controller_id = request.controller_id
    try:
        if controller_id == state.node_id:
            reason = "Controller cannot unregister itself while it is active."
            raise ApiError(ErrorCode.INVALID_REQUEST, reason)
        if feature_level(state.image, METADATA_VERSION) < UNREGISTERED_CONTROLLERS_SINCE:
            reason = "The current MetadataVersion is too old to support controller unregistration."
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, reason)
        if controller_id not in state.image.controllers:
            reason = f"Controller ID {controller_id} is not currently registered."
            raise ApiError(ErrorCode.CONTROLLER_ID_NOT_REGISTERED, reason)
    except ApiError as error:
        return [], UnregisterControllerResponse(error_code=error.code, error_message=error.message)
    return [UnregisterControllerRecord(controller_id=controller_id)], UnregisterControllerResponse(error_message=None)
