"""The tokens of OAUTHBEARER with which a node or a command authenticates: made, read from a file, or asked for.

A token is kept until 80 percent of its lifetime are over (`sasl.login.refresh.window.factor`), and fetched anew for the
next connection then; where that fails, the old one serves until it expires. Kafka renews it in the background.
"""

from __future__ import annotations

import json
import logging
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Callable
from typing import Final
from urllib.parse import quote_plus

from pykbroker.config.keys import ConfigurationError
from pykbroker.config.urls import without_secrets
from pykbroker.security.sasl.mechanism import OAUTHBEARER, AuthenticationFailed
from pykbroker.security.sasl.oauthbearer.client import OAuthBearerClient
from pykbroker.security.sasl.oauthbearer.compact_token import MAX_TOKEN_CHARS, InvalidToken
from pykbroker.security.sasl.oauthbearer.login_settings import EndpointLogin, FileLogin, Login
from pykbroker.security.sasl.oauthbearer.login_token import LoginToken
from pykbroker.security.sasl.oauthbearer.remote_keys import waits_ms
from pykbroker.security.sasl.oauthbearer.unsecured_login import UnsecuredLogin
from pykbroker.security.tls.contexts import client_context

from .https import CONNECT_TIMEOUT_S, TOTAL_TIMEOUT_S, FetchFailed, fetch
from .small_files import read_small_file

_log = logging.getLogger(__name__)

_NAMES: Final = ("access_token", "id_token")
"""Of a token in the answer of a token endpoint, as in Kafka (`JwtResponseParser`)."""


class BearerCredentials:
    """One user's tokens. now_ms: the wall clock."""

    def __init__(self, login: Login, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self.mechanism = OAUTHBEARER
        self.is_blocking = not isinstance(login.source, UnsecuredLogin)
        self._login = login
        self._now_ms = now_ms
        self._one_at_a_time = threading.Lock()
        self._kept: tuple[LoginToken, int] | None = None

    def new_exchange(self) -> OAuthBearerClient:
        """Begin an exchange with a token that is fresh. Raises AuthenticationFailed where there is none."""
        with self._one_at_a_time:
            return OAuthBearerClient(self._token().text, self._login.extensions)

    def _token(self) -> LoginToken:
        now_ms = self._now_ms()
        if self._kept is not None and self._kept[0].is_fresh(now_ms, self._kept[1], self._login.refresh_factor):
            return self._kept[0]
        try:
            token = LoginToken.read(_fetched(self._login, now_ms), self._login.principal_claim)
        except (InvalidToken, FetchFailed, ConfigurationError) as error:
            reason = f"the token cannot be used: {error}" if isinstance(error, InvalidToken) else str(error)
            if self._kept is None or self._kept[0].expires_ms <= now_ms:
                raise AuthenticationFailed(f"there is no token to authenticate with: {reason}") from None
            _log.warning("the token is not renewed, and the old one serves while it can: %s", reason)
            return self._kept[0]
        self._kept = token, now_ms
        return token


def _fetched(login: Login, now_ms: int) -> str:
    """The text of a new token. Raises FetchFailed; ConfigurationError where stores of keys cannot be read."""
    match login.source:
        case UnsecuredLogin() as source:
            return source.token(now_ms)
        case FileLogin(path):
            return read_small_file(path, MAX_TOKEN_CHARS + 2).decode("ascii", "replace").strip()
        case EndpointLogin() as endpoint:
            return _asked(endpoint)


def _asked(endpoint: EndpointLogin) -> str:
    """Ask the token endpoint, again where that may help. Raises FetchFailed, ConfigurationError."""
    context = client_context(endpoint.tls)
    context.check_hostname = True
    waits = waits_ms(endpoint.backoff_ms, endpoint.backoff_max_ms)
    while True:
        try:
            return _token_of(endpoint.url, _post(endpoint, context))
        except FetchFailed as error:
            wait_ms = None if error.is_final else next(waits, None)
            if wait_ms is None:
                raise FetchFailed(f"{without_secrets(endpoint.url)}: {error}{_told(error.body)}") from None
        time.sleep(wait_ms / 1000)


def _post(endpoint: EndpointLogin, context: ssl.SSLContext) -> bytes:
    name, secret, scope = endpoint.client_id, endpoint.client_secret, endpoint.scope
    if endpoint.is_header_encoded:
        name, secret = quote_plus(name), quote_plus(secret)
    form = "grant_type=client_credentials" + ("" if scope is None else f"&scope={quote_plus(scope)}")
    return fetch(
        endpoint.url,
        context,
        form=form.encode(),
        headers={
            "Accept": "application/json",
            "Authorization": f"Basic {b64encode(f'{name}:{secret}'.encode()).decode()}",
            "Cache-Control": "no-cache",
            "Content-Type": "application/x-www-form-urlencoded",
        },
        connect_timeout_s=(endpoint.connect_timeout_ms or CONNECT_TIMEOUT_S * 1000) / 1000,
        total_timeout_s=(endpoint.read_timeout_ms or TOTAL_TIMEOUT_S * 1000) / 1000,
    )


def _token_of(url: str, body: bytes) -> str:
    answer = _json(body)
    for name in _NAMES:
        token = answer.get(name)
        if isinstance(token, str) and token.strip():
            return token.strip()
    raise FetchFailed("its answer has no access_token", is_final=True)


def _told(body: bytes) -> str:
    """The error of a refusal (RFC 6749, section 5.2), which is meant to be shown; its description may be anything."""
    error = _json(body).get("error")
    return f", error {error[:100]!r}" if isinstance(error, str) else ""


def _json(body: bytes) -> dict[str, object]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}
