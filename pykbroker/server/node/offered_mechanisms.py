"""The mechanisms that a listener offers to clients, made of its settings.

The users of SCRAM and delegation tokens are in the metadata image, users of PLAIN in the JAAS line of their listener. A
token of OAUTHBEARER says itself whose it is, and the keys that vouch for it are fetched.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pykbroker.config import BrokerConfig
from pykbroker.metadata.image import MetadataImage
from pykbroker.security.sasl.mechanism import OAUTHBEARER, PLAIN, Identity, ServerMechanism
from pykbroker.security.sasl.node_settings import MechanismSettings, SaslSettings
from pykbroker.security.sasl.plain import PlainServer, plain_users
from pykbroker.security.sasl.scram_credential import MECHANISMS, ScramMechanism, new_nonce
from pykbroker.security.sasl.scram_server import ScramAccount, ScramServer
from pykbroker.security.sasl.server_handshake import OfferedMechanism
from pykbroker.security.tokens.credentials import TokenCredentials
from pykbroker.security.tokens.delegation_token import USER_TYPE
from pykbroker.security.tokens.secret import token_secret

from .token_keys import TokenKeys

if TYPE_CHECKING:
    from pykbroker.security.sasl.oauthbearer.server import TokenValidator

_log = logging.getLogger(__name__)

GetImage = Callable[[], MetadataImage]


@dataclass(frozen=True, slots=True)
class SaslParts:
    """The parts of a node that its SASL listeners share. tokens: None where delegation tokens are turned off."""

    image: GetImage
    token_keys: TokenKeys
    tokens: TokenCredentials | None


def token_credentials(config: BrokerConfig) -> TokenCredentials | None:
    """The credentials of delegation tokens, for all listeners of a node; None where tokens are turned off."""
    secret = token_secret(config)
    return None if secret is None else TokenCredentials(secret, lambda: new_nonce(secrets.randbits).encode())


def offered_mechanisms(settings: SaslSettings, listener: str, parts: SaslParts) -> dict[str, OfferedMechanism]:
    """The mechanisms of a listener by name. listener: its name, for the log."""
    offered = {}
    for each in settings.mechanisms:
        is_bearer = each.name == OAUTHBEARER
        new = _token_server(each, listener, parts.token_keys) if is_bearer else _server(each, parts)
        offered[each.name] = OfferedMechanism(new, each.max_reauth_ms)
    return offered


def _token_server(mechanism: MechanismSettings, listener: str, token_keys: TokenKeys) -> Callable[[], ServerMechanism]:
    from pykbroker.security.sasl.oauthbearer.server import OAuthBearerServer
    from pykbroker.security.sasl.oauthbearer.unsecured import UnsecuredValidator

    rules = mechanism.tokens
    assert rules is not None, "OAUTHBEARER has rules for tokens"
    validator: TokenValidator
    if isinstance(rules, UnsecuredValidator):
        _log.warning(
            "the listener %s takes tokens of OAUTHBEARER without a signature: whoever connects may be anybody", listener
        )
        validator = rules
    else:
        validator = token_keys.validator(rules)
    return partial(OAuthBearerServer, validator)


def _server(mechanism: MechanismSettings, parts: SaslParts) -> Callable[[], ServerMechanism]:
    if mechanism.name == PLAIN:
        return partial(PlainServer, plain_users(mechanism.options))
    return partial(_scram_server, MECHANISMS[mechanism.name], parts)


def _scram_server(mechanism: ScramMechanism, parts: SaslParts) -> ScramServer:
    return ScramServer(mechanism, partial(_account, mechanism, parts), new_nonce(secrets.randbits))


def _account(mechanism: ScramMechanism, parts: SaslParts, name: str, by_token: bool) -> ScramAccount | None:
    if by_token:
        return None if parts.tokens is None else _token_account(mechanism, parts.image(), parts.tokens, name)
    credential = parts.image().scram_credentials.get((mechanism.type, name))
    return None if credential is None else ScramAccount(credential, Identity(name))


def _token_account(
    mechanism: ScramMechanism, image: MetadataImage, tokens: TokenCredentials, token_id: str
) -> ScramAccount | None:
    """A token whose owner is no user lets nobody in: it would speak for the user of that name."""
    token = image.delegation_tokens.get(token_id)
    if token is None:
        return None
    kind, _, name = token.owner.partition(":")
    if kind != USER_TYPE:
        return None
    identity = Identity(name, token.expiry_timestamp, by_token=True)
    return ScramAccount(tokens.of(mechanism, token_id), identity)
