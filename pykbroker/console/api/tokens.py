"""Delegation tokens: `/api/tokens` lists those that the user may see. Their secrets stay where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pykbroker.client.delegation_tokens import DelegationToken, Principal, describe_tokens
from pykbroker.console.endpoint import Arguments, Asking

from .pages import Page, PageAsked, page_of


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token. Times are in milliseconds of the wall clock."""

    token_id: str
    owner: str
    requester: str
    renewers: Sequence[str]
    issued_ms: int
    expires_ms: int
    max_ms: int


async def tokens(asking: Asking, given: Arguments) -> Page[TokenRow]:
    """Return a page, the oldest first. Raises BadInput, KafkaError, ClientError."""
    page = page_of(await describe_tokens(asking.cluster), PageAsked.of(given))
    return page.mapped(_row)


def _row(token: DelegationToken) -> TokenRow:
    return TokenRow(
        token_id=token.token_id,
        owner=_shown(token.owner),
        requester=_shown(token.requester),
        renewers=[_shown(each) for each in token.renewers],
        issued_ms=token.issued_ms,
        expires_ms=token.expires_ms,
        max_ms=token.max_ms,
    )


def _shown(principal: Principal) -> str:
    return f"{principal[0]}:{principal[1]}"
