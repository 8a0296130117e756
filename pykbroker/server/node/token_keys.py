"""The keys for tokens of OAUTHBEARER, one task for each address, whichever listeners take its tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..runtime.threads import Threads

if TYPE_CHECKING:
    from pykbroker.security.sasl.oauthbearer.secured import SecuredValidator
    from pykbroker.security.sasl.oauthbearer.unsecured import UnsecuredValidator
    from pykbroker.security.sasl.oauthbearer.validator_settings import JwksAddress, SecuredTokens

    from ..network.jwks_refresh import JwksRefresh


class TokenKeys:
    """The refreshes that a node has to run; none where no listener takes signed tokens."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._refreshes: dict[JwksAddress, JwksRefresh] = {}

    def validator(self, rules: SecuredTokens) -> SecuredValidator:
        """The validator of one listener, whose keys are fetched as soon as the refreshes run."""
        from pykbroker.security.sasl.oauthbearer.secured import SecuredValidator

        from ..network.jwks_refresh import JwksRefresh

        refresh = self._refreshes.get(rules.jwks)
        if refresh is None:
            refresh = self._refreshes[rules.jwks] = JwksRefresh(rules.jwks, self._threads)
        return SecuredValidator(refresh.keys, rules.expected)

    def has_keys_of(self, rules: SecuredTokens | UnsecuredValidator | None) -> bool:
        """Tell whether the keys for such tokens are fetched already, or none are needed."""
        from pykbroker.security.sasl.oauthbearer.validator_settings import SecuredTokens

        return not isinstance(rules, SecuredTokens) or rules.jwks in self._refreshes

    @property
    def refreshes(self) -> list[JwksRefresh]:
        return list(self._refreshes.values())
