"""The credentials with which a client, or a node of a cluster, authenticates: a mechanism and a JAAS line for it.

Kafka's login modules read the same options: `username`, `password`, and for SCRAM `tokenauth`. Tokens of OAUTHBEARER
are fetched by `pykbroker.client.oauth_tokens`.
"""

from __future__ import annotations

import secrets
from typing import Final, Protocol

from pykbroker.config.keys import InvalidValue

from .jaas import LoginModule
from .mechanism import GSSAPI, OAUTHBEARER, PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, ClientMechanism
from .plain import PlainClient
from .scram_client import ScramClient, ScramPassword
from .scram_credential import MECHANISMS, new_nonce

LOGIN_MODULES: Final = {
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    SCRAM_SHA_256: "org.apache.kafka.common.security.scram.ScramLoginModule",
    SCRAM_SHA_512: "org.apache.kafka.common.security.scram.ScramLoginModule",
    OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
"""The mechanisms that are offered, and the login modules that their JAAS lines name."""

TOKEN_AUTH: Final = "tokenauth"  # noqa: S105 - no password
"""The option of SCRAM's login module with which name and password are those of a delegation token."""


class Credentials(Protocol):
    """One user's way to authenticate. is_blocking: `new_exchange` waits for a disk or a network."""

    @property
    def mechanism(self) -> str: ...
    @property
    def is_blocking(self) -> bool: ...

    def new_exchange(self) -> ClientMechanism:
        """Begin the client's side of an exchange. Raises AuthenticationFailed."""
        ...


class ClientCredentials:
    """One user's name and password for one mechanism. extensions: of SCRAM."""

    def __init__(self, mechanism: str, name: str, password: str, extensions: dict[str, str] | None = None) -> None:
        self.mechanism = mechanism
        self.is_blocking = False
        self._name = name
        self._password = password
        self._scram = ScramPassword(name, password)
        self._extensions = extensions or {}

    def new_exchange(self) -> ClientMechanism:
        """Begin the client's side of an exchange."""
        if self.mechanism == PLAIN:
            return PlainClient(self._name, self._password)
        nonce = new_nonce(secrets.randbits)
        return ScramClient(MECHANISMS[self.mechanism], self._scram, nonce, self._extensions)


def check_mechanism(key: str, mechanism: str) -> None:
    """Raises InvalidValue for a mechanism that is not offered."""
    if mechanism not in LOGIN_MODULES:
        reason = f"{', '.join(LOGIN_MODULES)} are offered"
        if mechanism == GSSAPI:
            reason = f"GSSAPI (Kerberos), Kafka's default, is not offered; {reason}"
        raise InvalidValue(key, mechanism, reason)


def check_module(key: str, mechanism: str, module: LoginModule) -> None:
    """Raises InvalidValue for the login module of another mechanism. key: of the JAAS line."""
    if module.module != LOGIN_MODULES[mechanism]:
        raise InvalidValue(key, "[hidden]", f"the login module of {mechanism} is {LOGIN_MODULES[mechanism]}")


def client_credentials(key: str, mechanism: str, module: LoginModule) -> ClientCredentials:
    """The credentials in a JAAS line. key: of that line. Raises InvalidValue."""
    check_module(key, mechanism, module)
    missing = [option for option in ("username", "password") if not module.options.get(option)]
    if missing:
        raise InvalidValue(key, "[hidden]", f"{' and '.join(missing)} must be given")
    by_token = mechanism != PLAIN and module.options.get(TOKEN_AUTH, "").lower() == "true"
    return ClientCredentials(
        mechanism,
        module.options["username"],
        module.options["password"],
        {TOKEN_AUTH: "true"} if by_token else None,
    )
