"""Clients that asked a broker where to go, and never came there: the broker knows them, and tells who controls it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..findings import Finding, warning


def clients_that_never_came(seeking: Iterable[Mapping[str, Any]]) -> list[Finding]:
    """Return a finding for each client. seeking: the answer of control to `clients seeking`."""
    return [_finding(each, str(each["where"])) for each in seeking]


def _finding(client: Mapping[str, Any], where: str) -> Finding:
    seconds = client["since_ms"] // 1000
    return warning(
        "client-never-came",
        f"client {client['client_id'] or 'without an id'} of {client['host']}",
        f"it has asked {client['questions']} times in {seconds} s where to go, was told {where}, and has sent no more",
        f"{where} leads nowhere from where it runs, if it has gone there: run the doctor there, and set "
        "advertised.listeners to an address that it reaches, or to auto.",
    )
