"""SCRAM credentials of delegation tokens, as Kafka's `DelegationTokenManager` prepares them.

Kafka computes both credentials of every token whenever it hears of one; each takes some milliseconds. Here a credential
is computed when somebody logs in with its token for the first time, so that a node with ten thousand tokens starts at
once. Whoever names a token that is not there makes nobody compute anything.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from ..sasl.scram_credential import MIN_ITERATIONS, ScramCredential, ScramMechanism
from .secret import TokenSecret

MOST_CREDENTIALS: Final = 20_000
"""Remembered at a time, some 600 bytes each: those of ten thousand tokens in both mechanisms."""


class TokenCredentials:
    """The credentials of tokens by mechanism and id; those that were not used for longest are forgotten.

    new_salt: a fresh one for each credential. most: how many are remembered.
    """

    def __init__(self, secret: TokenSecret, new_salt: Callable[[], bytes], most: int = MOST_CREDENTIALS) -> None:
        self._secret = secret
        self._new_salt = new_salt
        self._most = most
        self._known: OrderedDict[tuple[str, str], ScramCredential] = OrderedDict()

    def of(self, mechanism: ScramMechanism, token_id: str) -> ScramCredential:
        """Return the credential of a token that exists: it follows from the id and the secret alone."""
        key = mechanism.name, token_id
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known
        salt = self._new_salt()
        salted = mechanism.salted_password(self._secret.password(token_id), salt, MIN_ITERATIONS)
        credential = self._known[key] = mechanism.credential(salted, salt, MIN_ITERATIONS)
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return credential
