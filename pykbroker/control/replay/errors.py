"""Errors of a way back to a point of the journal. Every message is one clear line."""

from __future__ import annotations

from pykbroker.control.savepoints.errors import SavepointRefused


class PointLost(SavepointRefused):
    """The point is none of the journal, or what the node had then is not there any more."""
