"""The prices of articles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Protocol


class UnknownArticle(Exception):
    """No such article: to ask again does not help."""


class CatalogueDown(Exception):
    """The catalogue does not answer: it may the next time."""


class Catalogue(Protocol):
    async def price(self, article: str) -> Decimal:
        """Raises UnknownArticle and CatalogueDown."""


class FixedCatalogue:
    """A catalogue whose prices stay what they are."""

    def __init__(self, prices: Mapping[str, Decimal]) -> None:
        self._prices = dict(prices)

    @classmethod
    def from_file(cls, path: Path) -> FixedCatalogue:
        return cls({article: Decimal(price) for article, price in json.loads(path.read_text()).items()})

    async def price(self, article: str) -> Decimal:
        try:
            return self._prices[article]
        except KeyError:
            raise UnknownArticle(f"no article {article}") from None
