"""Names of clients, topics and files, as whoever controls a broker writes them."""

from __future__ import annotations

import re
from collections.abc import Set
from fnmatch import translate
from typing import Final

_WILDCARDS: Final = re.compile(r"[*?]")


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

    def fits_any(self, names: Set[str]) -> bool:
        return self.text in names if self._fits is None else any(map(self._fits, names))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return repr(self.text)
