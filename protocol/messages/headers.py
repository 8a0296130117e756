"""The headers in front of every request and response. `framing` picks their versions."""

from __future__ import annotations

from ..schema import Message, field


class RequestHeader(Message, versions="1-2", flexible="2+"):
    """The header names the API, its version, and the number that the response must repeat.

    v2 adds tagged fields; the client id keeps its old form there, so that any broker can log it.
    """

    request_api_key: int = field("int16")
    request_api_version: int = field("int16")
    correlation_id: int = field("int32")
    client_id: str | None = field("string", "1+", nullable="1+", flexible=False)


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    """The number of the request that this answers.

    v1 adds tagged fields. ApiVersions responses stay at v0: the client does not know the broker's versions yet.
    """

    correlation_id: int = field("int32")
