"""The remedy says what to do about a damaged metadata log, in the line that tells of the damage.

A node of several has nothing in it that others lack; what it must not lose is its vote, in `quorum-state`. A quorum of
one has `pykbroker verify`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pykbroker.config import BrokerConfig
from pykbroker.storage.files.errors import CorruptLog

FETCH_AGAIN = (
    "while a majority of the other controllers has the metadata, all files of that directory but quorum-state may be "
    "moved away, and this node fetches them again"
)
VERIFY = "`pykbroker verify` tells what is left of it"


def remedy(config: BrokerConfig) -> str:
    others = set(config.quorum_voters) - {config.node_id} or config.quorum_bootstrap_servers
    return FETCH_AGAIN if others else VERIFY


@contextmanager
def telling(remedy_of_damage: str) -> Iterator[None]:
    """Raises CorruptLog with the remedy in the place of one without."""
    try:
        yield
    except CorruptLog as damage:
        raise CorruptLog(f"{damage}; {remedy_of_damage}") from damage
