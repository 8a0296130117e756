"""The delegation tokens that an image has, found by their HMACs: the part of Kafka's `DelegationTokenCache` that the
controller asks.

Requests to renew or expire a token name its HMAC alone. A wrong one differs from all right ones in its hash, which has
a key of this process, so that the time of a lookup tells nothing about them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pykbroker.long_work import LongWork, portions
from pykbroker.security.tokens.delegation_token import DelegationToken
from pykbroker.security.tokens.secret import TokenSecret

from .image import ImageChanges, MetadataImage

_PORTION: Final = 200
_STEPS_OF_HMAC: Final = 3


class KnownTokens:
    """The tokens of an image. secret: makes their HMACs; None where tokens are turned off, and none is found."""

    def __init__(self, secret: TokenSecret | None) -> None:
        self.secret = secret
        self._ids: dict[bytes, str] = {}

    @staticmethod
    def of(image: MetadataImage, secret: TokenSecret | None) -> LongWork[KnownTokens]:
        """Return the tokens of the image, which must not change meanwhile."""
        known = KnownTokens(secret)
        for portion in portions(image.delegation_tokens, _PORTION):
            known._add(portion)
            yield len(portion) * _STEPS_OF_HMAC
        return known

    def find(self, image: MetadataImage, hmac: bytes) -> DelegationToken | None:
        """Return the token of this HMAC, expired or not."""
        token_id = self._ids.get(hmac)
        return None if token_id is None else image.delegation_tokens.get(token_id)

    def follow(self, image: MetadataImage, changes: ImageChanges) -> None:
        """Note what has changed; the image has the changes already."""
        if self.secret is None:
            return
        for token_id in changes.delegation_tokens:
            if token_id in image.delegation_tokens:
                self._add((token_id,))
            else:
                self._ids.pop(self.secret.hmac(token_id), None)

    def _add(self, token_ids: Iterable[str]) -> None:
        if self.secret is not None:
            self._ids.update((self.secret.hmac(each), each) for each in token_ids)
