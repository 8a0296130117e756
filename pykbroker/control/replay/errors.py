"""Errors of a way back to a point of the journal. Every message is one clear line."""

from __future__ import annotations

from pykbroker.control.savepoints.errors import SavepointRefused


class PointLost(SavepointRefused):
    """What the node had at that point is not there any more, or the point is none of the journal."""
