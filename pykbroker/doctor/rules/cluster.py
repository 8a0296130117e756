"""Findings about controllers, fenced brokers and the clock. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..facts import Facts
from ..findings import Finding, error, warning

_SKEW_MS: Final = 10_000
"""Beyond it tokens, retention by time and timestamps of records go wrong visibly."""


def of_cluster(facts: Facts) -> Iterator[Finding]:
    quorum = facts.quorum
    if quorum is not None and quorum.leader_id is None:
        reason = f" ({quorum.error})" if quorum.error else ""
        yield error(
            "no-controller",
            "controllers",
            f"there is no active controller{reason}",
            "Topics cannot be created, and no partition gets another leader: see that most of the controllers of "
            "`controller.quorum.voters` (or `controller.quorum.bootstrap.servers`) run and reach each other.",
        )
    for node_id in facts.fenced or ():
        yield warning(
            "broker-fenced",
            f"broker {node_id}",
            "it is registered and takes no part: it has stopped, or does not reach the controller",
            "Start it, or see its log; if it is gone for good, take its replicas elsewhere and unregister it.",
        )
    if quorum is not None and quorum.clock_ahead_ms is not None:
        apart_ms = abs(quorum.clock_ahead_ms) - quorum.uncertain_ms
        if apart_ms > _SKEW_MS:
            way = "ahead of" if quorum.clock_ahead_ms > 0 else "behind"
            yield warning(
                "clock-skew",
                f"controller {quorum.leader_id}",
                f"its clock is {round(apart_ms / 1000)} s {way} the one of this machine",
                "Let both machines take their time from the network: timestamps of records, retention by time, tokens "
                "and certificates go by these clocks.",
            )
