"""The diagnosis: facts gathered one after the other within a time, then the rules."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import trio

from pykbroker.client.errors import ClientError

from .access import Access
from .addresses import AddressLook
from .brokers import look_at_brokers
from .facts import Facts
from .findings import Finding
from .groups import watch_groups
from .knocking import knock
from .knocks import Knock, Outcome
from .quorum import look_at_quorum, look_for_fenced
from .reach import cluster_of
from .rules import findings_of
from .topics import look_at_topics

MOST_BOOTSTRAP_SERVERS: Final = 10
MOST_LOOKS: Final = 7


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a diagnosis. watch_s: between the two looks at groups; 0 leaves groups out."""

    timeout_s: float = 60.0
    watch_s: float = 6.0
    most_topics: int = 1000
    most_groups: int = 200


@dataclass(frozen=True, slots=True)
class Diagnosis:
    facts: Facts
    findings: list[Finding]


async def diagnose(
    servers: Sequence[tuple[str, int]],
    access: Access,
    bounds: Bounds,
    on_look: Callable[[str], None] | None = None,
) -> Diagnosis:
    """Never raises for what a cluster does; what could not be looked at stands in `Facts.unknown`.

    on_look: called with what is looked at next, at most `MOST_LOOKS` times.
    """
    facts = Facts(knocks=[])
    step = "the bootstrap servers"

    def begin(what: str) -> None:
        nonlocal step
        step = what
        if on_look is not None:
            on_look(what)

    begin(step)
    with trio.move_on_after(bounds.timeout_s) as time_for_all:
        await _gather(facts, servers, access, bounds, begin)
    if time_for_all.cancelled_caught:
        facts.time_over_at = step
    return Diagnosis(facts, findings_of(facts, access.security_protocol, time.time()))


async def _gather(
    facts: Facts,
    servers: Sequence[tuple[str, int]],
    access: Access,
    bounds: Bounds,
    begin: Callable[[str], None],
) -> None:
    await _knock_at_all(facts, servers[:MOST_BOOTSTRAP_SERVERS], access)
    if len(servers) > MOST_BOOTSTRAP_SERVERS:
        facts.unknown.append(f"{len(servers) - MOST_BOOTSTRAP_SERVERS} bootstrap servers were not tried")
    entry = next((each for each in facts.knocks if each.is_served), None)
    if entry is None:
        return
    facts.entry = entry
    begin("the advertised addresses")
    await AddressLook(access, entry).look(facts)
    async with cluster_of(access, entry, facts.addresses) as cluster:
        looks: dict[str, Callable[[], Awaitable[None]]] = {
            "the controllers": partial(look_at_quorum, cluster, facts),
            "fenced brokers": partial(look_for_fenced, cluster, facts),
            "topics": partial(look_at_topics, cluster, facts, bounds.most_topics),
            "brokers": partial(look_at_brokers, cluster, facts),
        }
        if bounds.watch_s:
            looks["groups"] = partial(watch_groups, cluster, facts, bounds.most_groups, bounds.watch_s)
        for what, look in looks.items():
            begin(what)
            try:
                await look()
            except ClientError as error:
                facts.unknown.append(f"{what} were not looked at: {error}")


async def _knock_at_all(facts: Facts, servers: Sequence[tuple[str, int]], access: Access) -> None:
    """Knock at all servers at once, and add the outcomes in their order. One without an answer in time is silent."""
    found = {(host, port): Knock(host, port, Outcome.SILENT, "the time was over") for host, port in servers}

    async def knock_at(host: str, port: int) -> None:
        found[host, port] = await knock(host, port, access)

    try:
        async with trio.open_nursery() as nursery:
            for host, port in found:
                nursery.start_soon(knock_at, host, port)
    finally:
        facts.knocks = list(found.values())
