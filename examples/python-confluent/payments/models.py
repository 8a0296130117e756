"""What the topics carry, as JSON; amounts are cents."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

REMEMBERED = 100


class InvalidPayment(Exception):
    """Bytes that are no payment."""


@dataclass(frozen=True)
class Payment:
    id: str
    account: str
    amount: int
    """What is paid in; negative where it is paid out."""

    @classmethod
    def from_bytes(cls, value: bytes | None) -> Payment:
        """Raises InvalidPayment."""
        try:
            payment = cls(**json.loads(value or b""))
        except (ValueError, TypeError):
            raise InvalidPayment("no JSON object with id, account and amount") from None
        payment.ensure_valid()
        return payment

    def ensure_valid(self) -> None:
        for name in ("id", "account"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name):
                raise InvalidPayment(f"{name} is a text that is not empty")
        if type(self.amount) is not int or self.amount == 0:
            raise InvalidPayment("amount is a whole number of cents other than 0")

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()


@dataclass(frozen=True)
class Account:
    balance: int = 0
    booked: tuple[str, ...] = field(default=())
    """The last payments: one that comes again is known."""

    @classmethod
    def from_bytes(cls, value: bytes) -> Account:
        fields: dict[str, Any] = json.loads(value)
        return cls(fields["balance"], tuple(fields["booked"]))

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def after(self, payment: Payment) -> Account:
        return Account(self.balance + payment.amount, (*self.booked, payment.id)[-REMEMBERED:])


def booking(payment: Payment, status: str, balance: int) -> bytes:
    return json.dumps({**asdict(payment), "status": status, "balance": balance}).encode()
