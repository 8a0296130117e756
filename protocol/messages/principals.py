"""A principal as bytes, for requests that are forwarded (KIP-590)."""

from __future__ import annotations

from ..schema import Message, field


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    """Type and name of a principal, and whether it came by a delegation token."""

    type: str = field("string")
    name: str = field("string")
    token_authenticated: bool = field("bool")
