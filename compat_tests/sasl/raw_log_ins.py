"""Log-ins by raw requests, one after another: quicker than stock clients, and with whatever tokens."""

from __future__ import annotations

import secrets

from compat_tests.wire import Wire
from pykbroker.protocol.messages.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest
from pykbroker.security.sasl.mechanism import ClientMechanism
from pykbroker.security.sasl.scram_client import ScramClient, ScramPassword
from pykbroker.security.sasl.scram_credential import ScramMechanism, new_nonce


def scram_exchange(mechanism: ScramMechanism, password: ScramPassword) -> ScramClient:
    return ScramClient(mechanism, password, new_nonce(secrets.randbits), {})


def shake_hands(wire: Wire, mechanism: str) -> None:
    wire.call(SaslHandshakeRequest(mechanism=mechanism), 1)


def send_token(wire: Wire, token: bytes) -> SaslAuthenticateResponse:
    answer = wire.call(SaslAuthenticateRequest(auth_bytes=token), 2)
    assert isinstance(answer, SaslAuthenticateResponse)
    return answer


def log_in(address: tuple[str, int], mechanism: str, exchange: ClientMechanism) -> None:
    """Connect and authenticate; the connection is closed then. Fails where the broker refuses."""
    with Wire(address) as wire:
        shake_hands(wire, mechanism)
        token = exchange.step(b"")
        while not exchange.is_complete:
            answer = send_token(wire, token)
            assert answer.error_code == 0, answer.error_message
            token = exchange.step(answer.auth_bytes)
