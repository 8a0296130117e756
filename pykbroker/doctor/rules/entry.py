"""Findings about the way in: the bootstrap servers, and how old the broker is. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pykbroker.protocol.api_keys import ApiKey

from ..facts import Facts
from ..findings import Finding, error, warning
from ..knocks import BrokerAnswer
from .connecting import meaning

_OF_KAFKA_2_1: Final = {ApiKey.PRODUCE: 7, ApiKey.FETCH: 10}
"""The newest versions of Kafka 2.1, the oldest broker that Java clients since 4.0 speak to (KIP-896)."""
_SOON_S: Final = 30 * 86_400


def of_entry(facts: Facts, security_protocol: str, now_s: float) -> Iterator[Finding]:
    for knock in facts.knocks:
        if not knock.is_served:
            found = meaning(knock, security_protocol)
            # One of several bootstrap servers is enough for a client.
            make = error if facts.entry is None else warning
            yield make(f"bootstrap-{knock.outcome}", knock.address, found.seen, found.advice)
    for knock in [*facts.knocks, *(each.knock for each in facts.addresses)]:
        if knock.certificate_ends_s is not None and knock.certificate_ends_s - now_s < _SOON_S:
            days = max(int((knock.certificate_ends_s - now_s) // 86_400), 0)
            yield warning(
                "certificate-ends-soon",
                knock.address,
                f"the certificate of its broker ends in {days} days",
                "Renew it in time: `ssl.keystore.location` of a listener may be replaced while the broker runs.",
            )
    if facts.time_over_at is not None and facts.entry is not None:
        yield warning(
            "time-over",
            facts.time_over_at,
            "the time was over before all of it was looked at, and what would have come behind it",
            "Give it more (--timeout): brokers that answer slowly, and addresses that lead nowhere, take seconds each.",
        )
    if facts.entry is not None and facts.entry.answer is not None and is_too_old(facts.entry.answer):
        yield warning(
            "broker-too-old",
            facts.entry.address,
            "the broker is older than Kafka 2.1",
            "Clients of Kafka 4.0 and newer, those of Java among them, do not speak to it: upgrade it, or keep "
            "older clients.",
        )


def is_too_old(answer: BrokerAnswer) -> bool:
    return any(
        api_key not in answer.versions or answer.versions[api_key].high < newest
        for api_key, newest in _OF_KAFKA_2_1.items()
    )
