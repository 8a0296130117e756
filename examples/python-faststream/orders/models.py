"""What the topics carry, as JSON."""

from __future__ import annotations

from decimal import Decimal

from pydantic import BaseModel, Field


class Line(BaseModel):
    article: str = Field(min_length=1)
    quantity: int = Field(gt=0, le=1000)


class Order(BaseModel):
    id: str = Field(min_length=1)
    customer: str = Field(min_length=1)
    lines: list[Line] = Field(min_length=1)


class PricedLine(Line):
    price: Decimal


class PricedOrder(BaseModel):
    id: str
    customer: str
    lines: list[PricedLine]
    total: Decimal
