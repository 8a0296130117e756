"""The time of a diagnosis is bounded, and what it did not suffice for is told."""

from __future__ import annotations

import pytest
import trio

from pykbroker.doctor import diagnosis
from pykbroker.doctor.access import Access
from pykbroker.doctor.addresses import AddressLook
from pykbroker.doctor.diagnosis import MOST_BOOTSTRAP_SERVERS, Bounds, Diagnosis, diagnose
from pykbroker.doctor.facts import Facts
from pykbroker.doctor.findings import Severity
from pykbroker.doctor.knocks import Knock

from .cluster_facts import served

PLAIN = Access("PLAINTEXT", None, None)
SERVERS = [("127.0.0.1", 9092)]


def run(bounds: Bounds) -> Diagnosis:
    return trio.run(diagnose, SERVERS, PLAIN, bounds)


async def _never(*_: object) -> Knock:
    await trio.sleep_forever()
    raise AssertionError


async def _served(*_: object) -> Knock:
    return served(brokers=3)


def test_time_that_is_over_at_the_first_knock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "knock", _never)
    found = run(Bounds(timeout_s=0.1))
    assert [(each.id, each.severity) for each in found.findings] == [("bootstrap-silent", Severity.ERROR)]


def test_time_that_is_over_among_the_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were not tried are no findings."""

    async def look(self: AddressLook, facts: Facts) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(diagnosis, "knock", _served)
    monkeypatch.setattr(AddressLook, "look", look)
    found = run(Bounds(timeout_s=0.1))
    assert [(each.id, each.subject) for each in found.findings] == [("time-over", "the advertised addresses")]


def test_more_servers_than_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "knock", _never)
    many = [("127.0.0.1", port) for port in range(1, 100)]
    found = trio.run(diagnose, many, PLAIN, Bounds(timeout_s=0.1))
    assert len(found.facts.knocks) == MOST_BOOTSTRAP_SERVERS
