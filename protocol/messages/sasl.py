"""Authentication over SASL (KIP-43, KIP-152)."""

from __future__ import annotations

from ..schema import Message, field


class SaslHandshakeRequest(Message, api_key=17, versions="0-1", flexible="none", listeners="broker controller"):
    """The request chooses a SASL mechanism.

    v1 wraps the exchange that follows into SaslAuthenticate requests; after v0 its bytes come bare.
    """

    mechanism: str = field("string")


class SaslHandshakeResponse(Message, api_key=17, versions="0-1", flexible="none"):
    """The mechanisms that the listener offers."""

    error_code: int = field("int16")
    mechanisms: list[str] = field("[]string")


class SaslAuthenticateRequest(Message, api_key=36, versions="0-2", flexible="2+", listeners="broker controller"):
    """One step of the exchange, in the mechanism's own bytes."""

    auth_bytes: bytes = field("bytes")


class SaslAuthenticateResponse(Message, api_key=36, versions="0-2", flexible="2+"):
    """The answer to one step.

    v1 adds the time after which the client must authenticate again (KIP-368).
    """

    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")
    auth_bytes: bytes = field("bytes")
    session_lifetime_ms: int = field("int64", "1+", ignorable=True)
