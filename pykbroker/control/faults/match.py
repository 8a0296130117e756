"""The requests that a fault means: by their API, their client id and the topics that they name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pykbroker.control.pattern import Pattern

_OWN_CLIENTS: Final = re.compile(r"pykbroker-testing|broker-[0-9]+|raft-client-[0-9]+")


@dataclass(frozen=True, slots=True)
class Match:
    """The requests that are meant. None stands for any.

    client_id: where it is None, those of the nodes of the cluster and of `pykbroker.testing` itself are not meant.
    """

    api_key: int | None = None
    client_id: Pattern | None = None
    topic: Pattern | None = None

    def includes(self, other: Match) -> bool:
        """Tell whether all that the other one means is meant here for sure; patterns are compared by their text."""
        if self.api_key not in (None, other.api_key) or self.topic not in (None, other.topic):
            return False
        if self.client_id is None:
            named = other.client_id
            return named is None or (named.is_exact and _OWN_CLIENTS.fullmatch(named.text) is None)
        return self.client_id == other.client_id

    def fits_header(self, api_key: int, client_id: str | None) -> bool:
        if self.api_key is not None and self.api_key != api_key:
            return False
        if self.client_id is None:
            return client_id is None or _OWN_CLIENTS.fullmatch(client_id) is None
        return self.client_id.fits(client_id or "")

    def fits_topics(self, topics: frozenset[str]) -> bool:
        return self.topic is None or self.topic.fits_any(topics)
