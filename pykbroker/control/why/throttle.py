"""Which quotas apply to a client by Kafka's precedence, how much it has had, and for how long it is throttled."""

from __future__ import annotations

from typing import Final

from pykbroker.quotas.entities import (
    CLIENT_ID,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    ClientQuotaEntity,
    ordered,
)
from pykbroker.server.node.broker import Broker
from pykbroker.server.runtime.log_lines import printable

from .answers import AppliedQuota, ThrottleAnswer
from .sources import Sources
from .wording import duration

_KEYS: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
_UNITS: Final = {
    PRODUCER_BYTE_RATE: "bytes a second",
    CONSUMER_BYTE_RATE: "bytes a second",
    REQUEST_PERCENTAGE: "percent of the broker's thread",
    CONTROLLER_MUTATION_RATE: "partitions a second",
}


async def why_throttle(sources: Sources, user: str, client_id: str) -> ThrottleAnswer:
    """Say which quotas apply to a client. user: a principal's name, `ANONYMOUS` for one that did not log in."""
    quotas = [each for key in _KEYS if (each := _applied(sources, key, user, client_id)) is not None]
    who = _who(user, client_id)
    throttled = max(quotas, key=lambda each: each.throttle_ms, default=None)
    if throttled is None:
        reason, verdict = "no-quota", f"No quota applies to {who}."
    elif throttled.throttle_ms:
        rate = "" if throttled.rate is None else f"{throttled.rate:,.0f} of "
        allowed = f"{rate}{throttled.limit:,.0f} {_UNITS[throttled.key]}"
        reason = "throttled"
        verdict = (
            f"{who[:1].upper()}{who[1:]} is throttled by {throttled.key} of {throttled.entity} ({allowed}), "
            f"for {duration(throttled.throttle_ms)} more."
        )
    else:
        applied = ", ".join(f"{each.key} of {each.entity}" for each in quotas)
        reason, verdict = "within-quota", f"{who[:1].upper()}{who[1:]} is within its quotas: {applied}."
    facts = [_fact(each) for each in quotas]
    facts += [f"It comes before {', '.join(each.passed_over)} ({each.key})." for each in quotas if each.passed_over]
    if quotas:
        facts.append("Quotas are set by AlterClientQuotas (pykbroker quotas); each broker measures by itself.")
    return ThrottleAnswer(
        verdict=verdict, reason=reason, facts=tuple(facts), user=user, client_id=client_id, quotas=tuple(quotas)
    )


def _who(user: str, client_id: str) -> str:
    named = f"client {printable(client_id)}" if client_id else "a client without an id"
    return f"{named} of user {printable(user)}" if user else named


def precedence(user: str, client_id: str) -> list[ClientQuotaEntity]:
    """Return the entities whose quota may apply, the one that wins first (`quotas.limits`)."""
    entities: list[ClientQuotaEntity] = []
    if client_id:
        entities += [frozenset({(USER, user), (CLIENT_ID, client_id)}), frozenset({(USER, user), (CLIENT_ID, None)})]
    entities.append(frozenset({(USER, user)}))
    if client_id:
        entities += [frozenset({(USER, None), (CLIENT_ID, client_id)}), frozenset({(USER, None), (CLIENT_ID, None)})]
    entities.append(frozenset({(USER, None)}))
    if client_id:
        entities += [frozenset({(CLIENT_ID, client_id)}), frozenset({(CLIENT_ID, None)})]
    return entities


def _applied(sources: Sources, key: str, user: str, client_id: str) -> AppliedQuota | None:
    image = sources.image
    found = [
        (entity, image.client_quotas[entity][key])
        for entity in precedence(user, client_id)
        if key in image.client_quotas.get(entity, {})
    ]
    if not found:
        return None
    (entity, limit), *others = found
    measured = [_measured(broker, key, user, client_id) for broker in sources.brokers]
    rates = [rate for rate, _ in measured if rate is not None]
    return AppliedQuota(
        key=key,
        entity=_entity(entity),
        limit=limit,
        rate=max(rates) if rates else None,
        throttle_ms=max(throttle_ms for _, throttle_ms in measured),
        passed_over=tuple(f"{_entity(each)} with {value:g}" for each, value in others),
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


def _entity(entity: ClientQuotaEntity) -> str:
    """Return such as "user alice, the default client-id"."""
    parts = sorted(ordered(entity), key=lambda part: part[0] != USER)
    return ", ".join(f"the default {kind}" if name is None else f"{kind} {printable(name)}" for kind, name in parts)


def _fact(quota: AppliedQuota) -> str:
    rate = "nothing was measured yet" if quota.rate is None else f"it has had {quota.rate:,.1f} lately"
    return f"{quota.key} of {quota.entity} allows {quota.limit:,.1f} {_UNITS[quota.key]}; {rate}."
