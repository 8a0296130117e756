"""The pages of a group's partitions and members: for groups of all types they are asked for, and in order, alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pykbroker.console.endpoint import Arguments

from .pages import Page, PageAsked, page_of


class Lagging(Protocol):
    """A row of a partition. lag: None where it is not known."""

    @property
    def lag(self) -> int | None: ...


class Named(Protocol):
    """A member."""

    @property
    def client_id(self) -> str: ...

    @property
    def member_id(self) -> str: ...


LaggingT = TypeVar("LaggingT", bound=Lagging)
NamedT = TypeVar("NamedT", bound=Named)


@dataclass(frozen=True, slots=True)
class GroupPagesAsked:
    """The pages that are asked for. by_lag: the partitions with the largest lag first, else by name."""

    partitions: PageAsked
    members: PageAsked
    by_lag: bool

    @classmethod
    def of(cls, given: Arguments) -> GroupPagesAsked:
        """Return what a request names. Raises BadInput."""
        partitions = PageAsked.of(given)
        members = partitions.beside(given, "members_page")
        return cls(partitions, members, given.one_of("sort", ("name", "lag"), "name") == "lag")

    def partition_page(self, rows: list[LaggingT]) -> Page[LaggingT]:
        """Return the part of the rows that is asked for. rows: by name."""
        if self.by_lag:
            rows = sorted(rows, key=lambda row: -1 if row.lag is None else row.lag, reverse=True)
        return page_of(rows, self.partitions)

    def member_page(self, members: Iterable[NamedT]) -> Page[NamedT]:
        """Return the part of the members that is asked for, by their clients."""
        return page_of(sorted(members, key=lambda each: (each.client_id, each.member_id)), self.members)
