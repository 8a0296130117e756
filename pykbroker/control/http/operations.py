"""All operations of a broker's control. Nothing is imported here of what does them."""

from __future__ import annotations

from typing import Final

from .operation import Operation

_HERE: Final = "pykbroker.control"

OPERATIONS: Final = (
    Operation("node", "GET", "/node", "Tell which node this is, and where it serves.", f"{_HERE}.node_facts:describe"),
    Operation(
        "clients seeking",
        "GET",
        "/clients/seeking",
        "List clients that asked where the broker is, and never came there.",
        f"{_HERE}.node_facts:seeking_clients",
    ),
)
