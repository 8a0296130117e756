"""The quotas that apply to a client, how much it has had, and for how long it is throttled."""

from __future__ import annotations

from pykbroker.quotas.entities import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from pykbroker.server.node.broker import Broker

from .answers import AppliedQuota, ThrottleAnswer
from .precedence import KEYS, UNITS, client_name, name_of, winning
from .sources import Sources
from .wording import capital, duration


async def why_throttle(sources: Sources, user: str, client_id: str) -> ThrottleAnswer:
    """Say which quotas apply to a client. user: a principal's name, `ANONYMOUS` for one that did not log in."""
    quotas = [each for key in KEYS if (each := _applied(sources, key, user, client_id)) is not None]
    who = client_name(user, client_id)
    throttled = max(quotas, key=lambda each: each.throttle_ms, default=None)
    if throttled is None:
        reason, verdict = "no-quota", f"No quota applies to {who}."
    elif throttled.throttle_ms:
        rate = "" if throttled.rate is None else f"{throttled.rate:,.0f} of "
        allowed = f"{rate}{throttled.limit:,.0f} {UNITS[throttled.key]}"
        reason = "throttled"
        verdict = (
            f"{capital(who)} is throttled by {throttled.key} of {throttled.entity} ({allowed}), "
            f"for {duration(throttled.throttle_ms)} more."
        )
    else:
        applied = ", ".join(f"{each.key} of {each.entity}" for each in quotas)
        reason, verdict = "within-quota", f"{capital(who)} is within its quotas: {applied}."
    facts = [_fact(each) for each in quotas]
    facts += [f"It comes before {', '.join(each.passed_over)} ({each.key})." for each in quotas if each.passed_over]
    if quotas:
        facts.append("Quotas are set by AlterClientQuotas (pykbroker quotas); each broker measures by itself.")
    return ThrottleAnswer(
        verdict=verdict, reason=reason, facts=tuple(facts), user=user, client_id=client_id, quotas=tuple(quotas)
    )


def _applied(sources: Sources, key: str, user: str, client_id: str) -> AppliedQuota | None:
    found = winning(sources.image.client_quotas, key, user, client_id)
    if found is None:
        return None
    entity, limit, passed_over = found
    measured = [_measured(broker, key, user, client_id) for broker in sources.brokers]
    rates = [rate for rate, _ in measured if rate is not None]
    return AppliedQuota(
        key=key,
        entity=name_of(entity),
        limit=limit,
        rate=max(rates) if rates else None,
        throttle_ms=max(throttle_ms for _, throttle_ms in measured),
        passed_over=passed_over,
    )


def _measured(broker: Broker, key: str, user: str, client_id: str) -> tuple[float | None, int]:
    """Return the rate at a broker, and for how long the client is throttled there."""
    quotas, now_ms = broker.client_quotas, broker.clock.monotonic_ms()
    if key == CONTROLLER_MUTATION_RATE:
        return None, quotas.mutations.throttle_ms(user, client_id, now_ms) or 0
    rates = {PRODUCER_BYTE_RATE: quotas.produce, CONSUMER_BYTE_RATE: quotas.fetch, REQUEST_PERCENTAGE: quotas.request}
    rate, throttle_ms = rates[key].look(user, client_id, now_ms) or (None, 0)
    if key == CONSUMER_BYTE_RATE:
        throttle_ms = max(throttle_ms, _held_back_ms(broker, user, client_id, now_ms))
    return rate, throttle_ms


def _held_back_ms(broker: Broker, user: str, client_id: str, now_ms: int) -> int:
    """Return for how much longer a Fetch is held back: it is not counted, so that the rate alone does not tell."""
    until_ms = (
        each.throttled_until_ms
        for each in broker.fetch_sightings or ()
        if each.client_id == client_id and each.principal.partition(":")[2] == user
    )
    return max((each - now_ms for each in until_ms if each is not None and each > now_ms), default=0)


def _fact(quota: AppliedQuota) -> str:
    rate = "nothing was measured yet" if quota.rate is None else f"it has had {quota.rate:,.1f} lately"
    return f"{quota.key} of {quota.entity} allows {quota.limit:,.1f} {UNITS[quota.key]}; {rate}."
