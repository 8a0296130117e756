"""The steps of groups and transactions, as answers have them."""

from __future__ import annotations

from pykbroker.server.coordinators.cause_history import Transition

from .answers import Step


def step_of(transition: Transition) -> Step:
    origin = transition.origin
    return Step(
        timestamp_ms=transition.timestamp_ms,
        why=transition.rebalance,
        causes=transition.causes,
        api=origin.api,
        member_id=origin.member_id,
        client_id=origin.client_id,
        host=origin.client_host.lstrip("/"),
        principal=origin.principal,
        request_number=origin.request_number,
    )
