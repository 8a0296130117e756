"""Open transactions of a topic, behind which committed records cannot be told from aborted ones."""

from __future__ import annotations

import time

from .errors import ClusterUnavailable
from .session import Say
from .source import Source, TopicEnds, ends_of

_PATIENCE_S = 120.0
_PAUSE_S = 0.5


def await_transactions(source: Source, ends: TopicEnds, say: Say) -> None:
    """Wait until all records in front of the ends are committed or aborted. Raises ClusterUnavailable.

    ends: of `read_uncommitted`.
    """
    deadline = time.monotonic() + _PATIENCE_S
    said = False
    while True:
        committed = ends_of(source, [ends.name], "read_committed").topics[ends.name].partitions
        held = {each: committed[each].end for each, row in ends.partitions.items() if committed[each].end < row.end}
        if not held:
            return
        where = ", ".join(f"{ends.name}-{each} at offset {offset}" for each, offset in sorted(held.items())[:3])
        if time.monotonic() > deadline:
            raise ClusterUnavailable(
                f"Transactions are open in {where}: what the topic has behind them is not known before they end "
                "(`pykbroker transactions` lists and aborts them)"
            )
        if not said:
            say(f"Waiting for the end of transactions that are open in {where}")
            said = True
        time.sleep(_PAUSE_S)
