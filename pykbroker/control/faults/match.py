"""The requests that a fault means: by their API, their client id and the topics that they name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate
from typing import Final

_WILDCARDS: Final = re.compile(r"[*?]")
_OWN_CLIENTS: Final = re.compile(r"pykbroker-testing|broker-[0-9]+|raft-client-[0-9]+")


class Pattern:
    """A name, in which `*` stands for any text and `?` for one character."""

    __slots__ = ("_fits", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._fits = None if _WILDCARDS.search(text) is None else re.compile(translate(text.replace("[", "[[]"))).match

    @property
    def is_exact(self) -> bool:
        """Tell whether it is one name."""
        return self._fits is None

    def fits(self, name: str) -> bool:
        return name == self.text if self._fits is None else self._fits(name) is not None

    def fits_any(self, names: frozenset[str]) -> bool:
        return self.text in names if self._fits is None else any(map(self._fits, names))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return repr(self.text)


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
