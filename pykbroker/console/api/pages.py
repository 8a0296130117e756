"""Pages: a long list is sent a part at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from pykbroker.console.endpoint import Arguments

T = TypeVar("T")
RowT = TypeVar("RowT")

DEFAULT_SIZE: Final = 100
MOST_SIZE: Final = 500
_MOST_NUMBER: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class PageAsked:
    """A page that is asked for, from 1."""

    number: int
    size: int

    @classmethod
    def of(cls, given: Arguments) -> PageAsked:
        """Return the page that a request names. Raises BadInput."""
        number = given.whole("page", 1, least=1, most=_MOST_NUMBER)
        return cls(number, given.whole("size", DEFAULT_SIZE, least=1, most=MOST_SIZE))

    def beside(self, given: Arguments, name: str) -> PageAsked:
        """Return the page of one more list, of the same size, that a request asks for by this name. Raises BadInput."""
        return PageAsked(given.whole(name, 1, least=1, most=_MOST_NUMBER), self.size)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page. page: its number, the last one where a later one was asked for; total: the rows of all pages."""

    rows: Sequence[T]
    page: int
    pages: int
    total: int

    def mapped(self, row: Callable[[T], RowT]) -> Page[RowT]:
        """Return the page with each of its rows in another form."""
        return Page([row(each) for each in self.rows], self.page, self.pages, self.total)


def page_of(rows: Sequence[T], asked: PageAsked) -> Page[T]:
    """Return the part of the rows that is asked for."""
    pages = max(1, -(-len(rows) // asked.size))
    number = min(asked.number, pages)
    first = (number - 1) * asked.size
    return Page(rows[first : first + asked.size], number, pages, len(rows))
