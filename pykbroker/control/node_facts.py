"""Facts of a node, as control tells them: which one it is, where it serves, and who looks for it in vain."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pykbroker import __version__

from .control import Control


async def describe(control: Control, arguments: Mapping[str, Any]) -> dict[str, Any]:
    ready = control.ready
    return {
        "program": f"pykbroker {__version__}",
        "process": os.getpid(),
        "node": None
        if ready is None
        else {
            "id": ready.node_id,
            "cluster_id": ready.cluster_id,
            "listeners": [
                {"name": each.name, "address": each.address, "security_protocol": each.security_protocol}
                for each in ready.listeners
            ],
            "log_directories": list(ready.log_directories),
        },
    }


async def seeking_clients(control: Control, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    parts = None if control.node is None else control.node.parts
    return [] if parts is None else [asdict(each) for each in parts.seeking.told()]
