"""Which quota holds for a client, and with whom it shares its rate."""

from __future__ import annotations

import itertools

import pytest

from pykbroker.quotas.entities import ClientQuotaEntity
from pykbroker.quotas.limits import QuotaLimits


def entity(**parts: str | None) -> ClientQuotaEntity:
    return frozenset((kind.replace("_", "-"), name) for kind, name in parts.items())


PRECEDENCE = [
    (entity(user="bob", client_id="c"), ("bob", "c")),
    (entity(user="bob", client_id=None), ("bob", "c")),
    (entity(user="bob"), ("bob", "")),
    (entity(user=None, client_id="c"), ("bob", "c")),
    (entity(user=None, client_id=None), ("bob", "c")),
    (entity(user=None), ("bob", "")),
    (entity(client_id="c"), ("", "c")),
    (entity(client_id=None), ("", "c")),
]
OF_OTHERS = [entity(user="eve"), entity(user="bob", client_id="d"), entity(client_id="d")]


@pytest.mark.parametrize("chosen", list(itertools.product((False, True), repeat=len(PRECEDENCE))))
def test_of_all_quotas_that_are_set_the_closest_one_holds(chosen: tuple[bool, ...]) -> None:
    limits = QuotaLimits()
    for other in OF_OTHERS:
        limits.set(other, 999.0)
    for number, is_set in enumerate(chosen):
        if is_set:
            limits.set(PRECEDENCE[number][0], float(number))
    found = limits.find("bob", "c")
    first = chosen.index(True) if True in chosen else None
    assert found == (None if first is None else (PRECEDENCE[first][1], float(first)))


def test_a_client_without_an_id_has_the_quotas_of_users_alone() -> None:
    limits = QuotaLimits()
    for parts in (entity(user="bob", client_id=None), entity(user=None, client_id=None), entity(client_id=None)):
        limits.set(parts, 1.0)
    assert limits.find("bob", "") is None
    limits.set(entity(user=None), 2.0)
    assert limits.find("bob", "") == (("bob", ""), 2.0)
    limits.set(entity(user="bob"), 3.0)
    assert limits.find("bob", "") == (("bob", ""), 3.0)


def test_a_quota_that_is_taken_away_leaves_the_next_one() -> None:
    limits = QuotaLimits()
    limits.set(entity(user="bob"), 1.0)
    limits.set(entity(user=None), 2.0)
    limits.set(entity(user="bob"), None)
    limits.set(entity(user="bob"), None)
    assert limits.find("bob", "c") == (("bob", ""), 2.0)
    assert len(limits) == 1
